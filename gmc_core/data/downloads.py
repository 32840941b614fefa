"""Downloads that are checked, kept, and never half done."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import platformdirs

from gmc_core.base.errors import FetchError, brief
from gmc_core.base.extras import require
from gmc_core.data.hashes import file_sha256

Progress = Callable[[int, int], None]
"""Called with the bytes done and the bytes in total (0 if the server does not say)."""

CHUNK_BYTES = 1 << 18
TIMEOUT_SECONDS = 30
MAX_REDIRECTS = 5
MAX_BYTES = 2 * 1000**3  # the largest set that is downloaded has a tenth of it

_UNREACHABLE = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN)
_TOO_LARGE = f"it is larger than {MAX_BYTES / 1e9:g} GB, which no data set here is"

log = logging.getLogger(__name__)


def cache_folder() -> Path:
    """``GMC_CACHE`` if it is set, else this user's cache folder."""
    chosen = os.environ.get("GMC_CACHE")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_path("gmc"))


def download(
    urls: Sequence[str],
    folder: Path,
    file_name: str,
    checksum: str | None,
    progress: Progress | None = None,
) -> Path:
    """The file, from the cache or the first mirror that gives the right one.

    With ``checksum`` ("md5:…" or "sha256:…") a cached file is checked too and
    replaced if it is wrong. Without, the sha256 of the first download is kept
    beside the file, logged, and compared each time after.

    Raises
    ------
    FetchError
        If no mirror gave the right file; names each with what went wrong.
    MissingPackageError
        If it must be downloaded and the packages for that are not installed.
    Exception
        Whatever ``progress`` raises, which is how a download is cancelled.
    """
    target, record = folder / file_name, folder / f"{file_name}.sha256"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FetchError(
            f"The cache folder {folder} cannot be made ({error.strerror}); set GMC_CACHE to a "
            "folder that you can write to."
        ) from error
    if target.exists():
        if checksum is None:
            _compare(target, record)
            return target
        if checksum in checksums(target):
            return target
    require("download", "Downloading")
    import pooch  # type: ignore[import-untyped, unused-ignore]

    pooch.get_logger().setLevel("WARNING")  # the progress callback tells the person
    failures = []
    for url in urls:
        _refuse_insecure(url)
        downloader = _Downloader(progress)
        try:
            pooch.retrieve(
                url,
                known_hash=checksum,
                fname=file_name,
                path=folder,
                downloader=downloader,
            )
        except Exception as error:  # requests, urllib3 and pooch raise many kinds
            if downloader.interrupted:
                raise  # raised by the caller's progress function, as by a cancelled download
            failures.append((url, _failure(error, downloader.arrived)))
            continue
        if checksum is None:
            _record(target, record)
        return target
    raise FetchError(_explain(failures, target))


def _refuse_insecure(url: str) -> None:
    """Only https; plain http is for tests against this machine itself."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname == "127.0.0.1"):
        raise FetchError(f"{url} is not https; a download must be protected. Give an https URL.")


class _Downloader:
    """Writes a URL's content to a file for pooch, which moves it into place when checked."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.interrupted = False
        self.arrived = False

    def __call__(self, url: str, output_file: Any, pup: object) -> None:
        import requests  # type: ignore[import-untyped, unused-ignore]  # slow to import

        for _ in range(MAX_REDIRECTS):
            response = requests.get(
                url, stream=True, timeout=TIMEOUT_SECONDS, allow_redirects=False
            )
            if not response.is_redirect:
                break
            response.close()
            # Every redirect is checked before it is followed: none may lead to plain http.
            url = urljoin(url, response.headers["location"])
            _refuse_insecure(url)
        else:
            raise OSError(f"more than {MAX_REDIRECTS} redirects")
        with response:
            response.raise_for_status()
            total = int(response.headers.get("content-length", 0))
            if total > MAX_BYTES:
                raise OSError(_TOO_LARGE)
            done = 0
            with open(output_file, "wb") as file:
                for chunk in response.iter_content(CHUNK_BYTES):
                    file.write(chunk)
                    done += len(chunk)
                    if done > MAX_BYTES:
                        raise OSError(_TOO_LARGE)
                    if self.progress is not None:
                        self.interrupted = True
                        self.progress(done, total)
                        self.interrupted = False
        if total and done < total:
            raise OSError(f"the connection ended after {done:,} of {total:,} bytes")
        self.arrived = True


def checksums(path: Path) -> set[str]:
    """ "sha256:…" and "md5:…" of a file."""
    with path.open("rb") as file:
        md5 = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False))
    return {f"sha256:{file_sha256(path)}", f"md5:{md5.hexdigest()}"}


def _record(target: Path, record: Path) -> None:
    digest = file_sha256(target)
    known = record.read_text(encoding="ascii").split() if record.exists() else []
    if known and known[0] != digest:
        log.warning(
            "%s differs from the one downloaded before: sha256 %s, was %s",
            target.name,
            digest,
            known[0],
        )
    record.write_text(f"{digest}  {target.name}\n", encoding="ascii")
    log.info("%s has no published checksum; its sha256 is %s", target.name, digest)


def _compare(target: Path, record: Path) -> None:
    if not record.exists():
        _record(target, record)
        return
    known = record.read_text(encoding="ascii").split()
    if not known or known[0] != file_sha256(target):
        raise FetchError(
            f"{target} has changed since it was downloaded. Delete it and {record.name} beside it "
            "to download it again."
        )


@dataclass(frozen=True)
class _Failure:
    """Why a URL gave nothing. offline : whether it looks as if no server could be reached."""

    reason: str
    offline: bool = False


def _failure(error: Exception, arrived: bool = False) -> _Failure:
    """The sentence for an error. arrived : whether the whole file had been received."""
    import requests  # type: ignore[import-untyped, unused-ignore]  # slow to import
    from urllib3 import exceptions as urllib3

    if isinstance(error, FetchError):
        return _Failure(" ".join(str(error).split()))
    if arrived and isinstance(error, ValueError):  # pooch has no class of its own for it
        return _Failure("the file has another checksum than it should have, so it was thrown away")
    causes = _causes(error)

    def any_is(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    if any_is(ssl.SSLError, requests.exceptions.SSLError, urllib3.SSLError):
        return _Failure("the server's certificate is not valid (expired, perhaps)")
    if any_is(socket.gaierror):
        return _Failure("the server's name cannot be resolved (this machine may be offline)", True)
    unreachable = any(isinstance(one, OSError) and one.errno in _UNREACHABLE for one in causes)
    # In this order: urllib3 counts a refused connection among those that took too long.
    if not (unreachable or any_is(ConnectionRefusedError, urllib3.NewConnectionError)):
        if any_is(TimeoutError, requests.exceptions.Timeout, urllib3.TimeoutError):
            return _Failure(f"no answer within {TIMEOUT_SECONDS} seconds")
        if not any_is(urllib3.MaxRetryError):
            return _Failure(f"{type(error).__name__}: {brief(error)}")
    return _Failure("no connection (this machine may be offline)", True)


def _causes(error: BaseException) -> list[BaseException]:
    """An error with all that it wraps: requests and urllib3 put them into several places."""
    found: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        one = waiting.pop()
        if isinstance(one, BaseException) and not any(one is other for other in found):
            found.append(one)
            waiting += [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
    return found


def _explain(failures: Sequence[tuple[str, _Failure]], target: Path) -> str:
    lines = [f"{target.name} could not be downloaded."]
    lines += [f"  {url}: {failure.reason}" for url, failure in failures]
    if all(failure.offline for _, failure in failures):
        lines.append("No server could be reached: this machine seems to be offline.")
    lines.append(f"Download it by hand in a browser and give its path, or save it as {target}.")
    return "\n".join(lines)

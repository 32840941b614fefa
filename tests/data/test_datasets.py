"""Names, conditions, and the download against a server on this machine."""

from __future__ import annotations

import errno
import hashlib
import http.server
import socket
import ssl
import threading
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
import requests
from reader_files import EACHMOVIE, ML1M, ML100K, ML_CSV, folder, text_file, zipped

from gmc_core.base.errors import DataError, FetchError
from gmc_core.data import datasets, downloads


@pytest.fixture
def good(tmp_path):
    """The bytes of a small archive in the layout of MovieLens 1M."""
    return zipped(tmp_path / "served.zip", ML1M, "ml-1m/").read_bytes()


@pytest.fixture
def server(good):
    """URL of a server with a good, a wrong, a truncated and a redirected file."""

    class Handler(http.server.BaseHTTPRequestHandler):
        requests: list[str] = []

        def do_GET(self):
            Handler.requests.append(self.path)
            if self.path == "/away.zip":
                self.send_response(302)
                self.send_header("Location", "http://localhost:1/ml-1m.zip")
                self.end_headers()
                return
            body = {"/good.zip": good, "/wrong.zip": good + b"x", "/cut.zip": good[:200]}
            if self.path not in body:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(good) + (self.path == "/wrong.zip")))
            self.end_headers()
            self.wfile.write(body[self.path])

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}", Handler.requests
        running.shutdown()
        thread.join()


@pytest.fixture
def registry(monkeypatch, good):
    """The registry with the sum of the small archive for ml-1m and none for ml-latest-small."""
    entry = replace(
        datasets.DATASETS["ml-1m"], checksum=f"sha256:{hashlib.sha256(good).hexdigest()}"
    )
    changed = {**datasets.DATASETS, "ml-1m": entry}
    monkeypatch.setattr(datasets, "DATASETS", MappingProxyType(changed))


def left_in(cache):
    return sorted(path.name for path in cache.iterdir())


def test_download_with_progress_and_cache(tmp_path, server, registry, good):
    url, requests = server
    cache, seen = tmp_path / "cache", []
    path = datasets.fetch(
        "ml-1m", urls=(f"{url}/good.zip",), cache=cache, progress=lambda *x: seen.append(x)
    )
    assert path.read_bytes() == good and left_in(cache) == ["ml-1m.zip"]
    assert seen[-1] == (len(good), len(good))
    loaded = datasets.load_named("ml-1m", urls=(f"{url}/good.zip",), cache=cache)
    assert requests == ["/good.zip"]  # the second time from the cache
    assert loaded.ratings.name == "ml-1m" and "10.1145/2827872" in loaded.ratings.citation
    assert "no redistribution" in loaded.ratings.licence.replace("no commercial use and ", "")


def test_a_download_is_cancelled_by_its_progress(tmp_path, server, registry):
    url, requests = server

    def cancel(done, total):
        raise InterruptedError("cancelled")

    cache = tmp_path / "cache"
    with pytest.raises(InterruptedError):
        datasets.fetch("ml-1m", urls=(f"{url}/good.zip",) * 2, cache=cache, progress=cancel)
    assert requests == ["/good.zip"] and left_in(cache) == []


def test_mirrors_are_tried_in_order(tmp_path, server, registry):
    url, requests = server
    places = tuple(f"{url}/{name}.zip" for name in ("none", "wrong", "cut", "away", "good"))
    path = datasets.fetch("ml-1m", urls=places, cache=tmp_path / "cache")
    assert requests == ["/none.zip", "/wrong.zip", "/cut.zip", "/away.zip", "/good.zip"]
    assert path.exists()


def test_every_failure_is_named(tmp_path, server, registry):
    url, _ = server
    cache = tmp_path / "cache"
    places = tuple(f"{url}/{name}.zip" for name in ("none", "wrong", "cut", "away"))
    with pytest.raises(FetchError) as caught:
        datasets.fetch("ml-1m", urls=places, cache=cache)
    text = str(caught.value)
    assert "none.zip" in text and "404" in text
    assert "wrong.zip: the file has another checksum" in text
    assert "cut.zip" in text and "offline" not in text
    assert "localhost" in text and "not https" in text  # where the redirect leads
    assert "by hand" in text and str(cache / "ml-1m.zip") in text
    assert left_in(cache) == []  # nothing half done


def test_a_damaged_cached_file_is_replaced(tmp_path, server, registry, good):
    url, _ = server
    cache = folder(tmp_path / "cache", {"ml-1m.zip": good[:100]})
    assert datasets.fetch("ml-1m", urls=(f"{url}/good.zip",), cache=cache).read_bytes() == good


def test_offline(tmp_path, registry):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(FetchError, match="(?s)no connection.*seems to be offline.*by hand"):
        datasets.fetch("ml-1m", urls=(f"http://127.0.0.1:{port}/x.zip",), cache=tmp_path / "c")


def test_without_a_known_sum_the_found_one_is_kept_and_compared(tmp_path, server, good, caplog):
    url, _ = server
    cache = tmp_path / "cache"
    places = (f"{url}/good.zip",)
    caplog.set_level("INFO")
    path = datasets.fetch("ml-latest-small", urls=places, cache=cache)
    digest = hashlib.sha256(good).hexdigest()
    assert digest in caplog.text
    assert (cache / "ml-latest-small.zip.sha256").read_text().split()[0] == digest
    assert datasets.fetch("ml-latest-small", urls=places, cache=cache) == path
    path.write_bytes(good + b"x")
    with pytest.raises(FetchError, match="has changed since it was downloaded"):
        datasets.fetch("ml-latest-small", urls=places, cache=cache)
    path.unlink()
    assert datasets.fetch("ml-latest-small", urls=places, cache=cache).read_bytes() == good


@pytest.mark.parametrize(
    "url", ["http://files.example.org/a.zip", "ftp://127.0.0.1/a.zip", "file:///etc/passwd"]
)
def test_only_https(tmp_path, url):
    with pytest.raises(FetchError, match="not https"):
        datasets.fetch("ml-1m", urls=(url,), cache=tmp_path)


def test_certificates_are_always_checked():
    # A reader of an error about a certificate must not find a switch for it.
    source = Path(downloads.__file__).read_text(encoding="utf-8")
    assert "verify=" not in source
    error = requests.exceptions.SSLError("x")
    assert "certificate is not valid" in downloads._failure(error).reason
    error = ssl.SSLCertVerificationError("x")
    assert "certificate is not valid" in downloads._failure(error).reason


def test_why_a_download_failed_is_told_by_the_class_of_the_error():
    refused, lost = ConnectionRefusedError(), socket.gaierror()
    wrapped = requests.exceptions.ConnectionError("x")
    wrapped.__cause__ = lost
    for error, words, offline in (
        (refused, "no connection", True),
        (wrapped, "cannot be resolved", True),
        (requests.exceptions.ReadTimeout("x"), "no answer", False),
        (OSError(errno.ENETUNREACH, "x"), "no connection", True),
        # Words of others' messages mean nothing.
        (ValueError("hash of SSLError CERTIFICATE_VERIFY_FAILED"), "ValueError", False),
        (OSError("offline: timed out, Connection refused, getaddrinfo"), "OSError", False),
    ):
        found = downloads._failure(error)
        assert words in found.reason
        assert found.offline == offline
    assert not downloads._explain([("u", downloads._failure(error))], Path("x")).count("seems")


def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("GMC_CACHE", str(tmp_path))
    assert downloads.cache_folder() == tmp_path
    monkeypatch.delenv("GMC_CACHE")
    assert "gmc" in str(downloads.cache_folder())
    blocked = text_file(tmp_path, "x", "blocked")
    with pytest.raises(FetchError, match="GMC_CACHE"):
        datasets.fetch("ml-1m", cache=blocked / "inside")


def test_registry():
    names = "sample ml-100k ml-latest-small ml-1m ml-10m ml-20m ml-25m ml-32m eachmovie jester"
    assert list(datasets.DATASETS) == names.split()
    for entry in datasets.DATASETS.values():
        assert entry.licence and entry.citation and entry.title and entry.description
        assert all(url.startswith("https://") for url in entry.urls)
    for name in ("eachmovie", "jester", "sample"):
        assert not datasets.info(name).downloadable
        with pytest.raises(FetchError):
            datasets.fetch(name)
    with pytest.raises(FetchError, match="Withdrawn in 2004: give the path"):
        datasets.load_named("eachmovie")


def test_unknown_names_list_the_known_ones(tmp_path):
    with pytest.raises(DataError, match=r"'ml-2m'.*sample, ml-100k.*path"):
        datasets.load_named("ml-2m")
    with pytest.raises(DataError, match=r"no such file.*ml-1m"):
        datasets.load_named(tmp_path / "none.csv")


def test_options_of_reading_that_the_sample_ignores_are_told():
    plain = datasets.load_named("sample")
    given = datasets.load_named("sample", beside=True, separator=None)
    assert given.report.notes[: len(plain.report.notes)] == plain.report.notes
    assert given.report.notes[len(plain.report.notes) :] == (
        "how to read a file (beside) has no effect here: the sample comes with this program",
    )


def test_the_sample_needs_no_network():
    assert datasets.load_named("sample").ratings.name == "sample"


def test_conditions_follow_the_files(tmp_path):
    own = zipped(tmp_path / "votes.zip", EACHMOVIE)
    assert "Digital Equipment" in datasets.load_named(own).ratings.licence
    small = folder(tmp_path / "ml-latest-small", ML_CSV)
    assert "passed on" in datasets.load_named(small).ratings.licence
    other = folder(tmp_path / "unnamed", ML_CSV)
    assert "no redistribution" in datasets.load_named(other).ratings.licence.replace(
        "no commercial use and ", ""
    )
    assert "GroupLens" in datasets.load_named(folder(tmp_path / "x", ML100K)).ratings.licence
    mine = datasets.load_named(text_file(tmp_path, "a,b,5\nc,b,4\n"))
    assert mine.ratings.licence == "unknown" and mine.ratings.citation == ""


def test_files_are_recognised_by_their_sum(tmp_path, registry, good, monkeypatch):
    monkeypatch.setattr(datasets, "_ENTRIES", tuple(datasets.DATASETS.values()))
    path = text_file(tmp_path, good, "renamed.zip")
    assert datasets.recognise(path, "movielens-dat").name == "ml-1m"


def test_check(tmp_path):
    report = datasets.check(folder(tmp_path, ML1M), duplicates="first")
    assert report.ratings == 5 and report.duplicate_policy == "first"


@pytest.mark.parametrize("name", ["ml-25m", "ml-32m"])
def test_the_large_sets_are_read_by_name_from_their_archives(tmp_path, monkeypatch, name):
    others = {
        "links.csv": b"movieId,imdbId,tmdbId\r\n31,112792,9909\r\n",
        "tags.csv": b"userId,movieId,tag,timestamp\r\n1,31,good,1445714994\r\n",
        "README.txt": b"Summary\r\n",
    }
    path = zipped(tmp_path / f"{name}.zip", {**ML_CSV, **others}, inside=f"{name}/")
    entry = datasets.info(name)
    known = replace(entry, checksum=f"md5:{hashlib.md5(path.read_bytes()).hexdigest()}")
    monkeypatch.setattr(datasets, "DATASETS", MappingProxyType({**datasets.DATASETS, name: known}))
    loaded = datasets.load_named(name, cache=tmp_path)
    ratings = loaded.ratings
    assert (ratings.name, loaded.report.format, len(ratings)) == (name, "movielens-csv", 3)
    assert ratings.item_info.titles == ("American President, The (1995)", "Nothing Known")
    assert ratings.item_info.genres == (("Comedy", "Drama", "Romance"), ())
    assert ratings.has_times
    assert ratings.licence == entry.licence and ratings.citation == entry.citation
    assert entry.size and entry.checksum and entry.downloadable and not entry.redistributable

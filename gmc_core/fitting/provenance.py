"""Which files an experiment reads, by their hashes, so that a repetition notices another file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.data.datasets import DATASETS
from gmc_core.data.downloads import cache_folder
from gmc_core.data.hashes import DATA_FILES, FILES, READ, file_sha256, given_name, option
from gmc_core.fitting.config import ExperimentConfig


def paths(config: ExperimentConfig) -> dict[str, Path]:
    """Role → path of every file (or folder) that the experiment reads; none for the sample."""
    found: dict[str, Path] = {}
    if config.protocol == "pair":
        found["train"], found["test"] = Path(config.train_file or ""), Path(config.test_file or "")
    elif config.data in DATASETS:
        if config.data != "sample":
            found["data"] = cache_folder() / DATASETS[config.data].file_name
    else:
        found["data"] = Path(config.data)
    if isinstance(config.fit.noise, str):
        found["noise"] = Path(config.fit.noise)
    return found


def file_hashes(config: ExperimentConfig, roles: Collection[str] = FILES) -> dict[str, str]:
    """Role → SHA-256 of the bytes of each file; folders and what cannot be read are left out."""
    found = {}
    for role, path in paths(config).items():
        if role not in roles:
            continue
        try:
            place = path.expanduser()
            if place.is_file():
                found[role] = file_sha256(place)
        except (OSError, ValueError, RuntimeError):
            continue  # the reader of the data explains why
    return found


def of_data(files: object) -> dict[str, str]:
    """Those of the hashes that are of data: the noise is an experiment's own."""
    if not isinstance(files, Mapping):
        return {}
    return {role: files[role] for role in DATA_FILES if role in files}


def with_noise(config: ExperimentConfig, data: Mapping[str, Any]) -> dict[str, Any]:
    """A description of data, with the hash of this experiment's file of noise variances.

    data : :func:`gmc_core.fitting.preparing.describe`; a hash of noise in it is another's.
    """
    noise = file_hashes(config, ("noise",))
    if "files" not in data and not noise:
        return dict(data)  # written by a version that kept no hashes
    return {**data, "files": {**of_data(data.get("files")), **noise}}


def check_known(
    config: ExperimentConfig, data_sha256: str, files: object, times_sha256: str | None
) -> None:
    """Compare data that were read before with those that the configuration expects.

    files : hashes of the files as they were read, as far as they are known. times_sha256 : of the
        times; None if a version has read them that kept no times.

    Raises
    ------
    GmcError
        As :func:`check_files`, :func:`check_ratings` and :func:`check_times`.
    """
    known = of_data(files)
    unknown = set(config.expected) - set(known) - set(READ)
    check_files(config, {**file_hashes(config, unknown), **known})
    check_ratings(config, data_sha256)
    if times_sha256 is not None:
        check_times(config, times_sha256)


def check_files(config: ExperimentConfig, found: Mapping[str, str]) -> None:
    """Compare the files with those that the configuration expects.

    found : of :func:`file_hashes`. A file that is not there is left to its reader.

    Raises
    ------
    DataError
        If a file is another, with both hashes and the remedy.
    """
    named = paths(config)
    for role, wanted in config.expected.items():
        if role in READ:
            continue
        if role not in named:
            raise ConfigError(f"{option(role)} is about a file, and this experiment reads none.")
        if role in found and not same_hash(found[role], wanted):
            raise DataError(
                f"This is another file than the one that is to be used again: its SHA-256 is "
                f"{found[role]}, that of the original begins with {wanted}. Give the path of "
                f"the original, or leave out {option(role)} (and {option('ratings')}) to take "
                "this one.",
                path=named[role],
            )
        if role not in found and named[role].is_dir():
            raise DataError(
                f"{option(role)} is the hash of one file, and this is a folder. Give the path of "
                "the file.",
                path=named[role],
            )


def check_ratings(config: ExperimentConfig, sha256: str) -> None:
    """Compare the ratings, as read and filtered, with those expected.

    Raises
    ------
    DataError
        If they are others, with both hashes and the remedy.
    """
    wanted = config.expected.get("ratings")
    if wanted is None or same_hash(sha256, wanted):
        return
    known = [role for role in DATA_FILES if role in config.expected]
    why = (
        "The file is the original one, so it is read or filtered in another way: give the "
        "original's reading and filter options, or use the version of this program that made it"
        if known
        else "Give the path of the original data"
    )
    raise DataError(
        f"These are other ratings than those that are to be used again: their SHA-256 is {sha256}, "
        f"that of the original ones begins with {wanted}. {why}; or leave out "
        f"{option('ratings')} to take these.",
        path=given_name(config.data or config.train_file or ""),
    )


def check_times(config: ExperimentConfig, sha256: str) -> None:
    """Compare when the ratings were given with what is expected.

    sha256 : of the times; "" if none is known.

    Raises
    ------
    DataError
        If they are others, with both hashes and the remedy.
    """
    wanted = config.expected.get("times")
    if wanted is None or same_hash(sha256, wanted):
        return
    found = f"their SHA-256 is {sha256}" if sha256 else "none is known"
    raise DataError(
        f"These ratings have other times than those that are to be used again: {found}, that of "
        f"the original ones begins with {wanted}. Give the path of the original data, and read the "
        f"same column of times; or leave out {option('times')} to take these.",
        path=given_name(config.data or config.train_file or ""),
    )


def same_hash(found: str, wanted: str) -> bool:
    """Whether a hash begins with the digits that are expected."""
    return found.startswith(wanted.lower())

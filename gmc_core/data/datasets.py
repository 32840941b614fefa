"""Data sets by name: what they are, where they come from, under which conditions.

A name stands for a download that is checked and kept; a path stands for itself.
The registry's conditions and citation travel with the ratings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gmc_core.base.errors import DataError, FetchError
from gmc_core.data import sample
from gmc_core.data.downloads import Progress, cache_folder, checksums, download
from gmc_core.data.readers import Loaded, LoadReport, load

MOVIELENS_CITATION = sample.CITATION
GROUPLENS = "https://files.grouplens.org/datasets/movielens"
MOVIELENS_LICENCE = (
    "GroupLens: research use; cite the paper; no endorsement implied; no commercial use and no "
    "redistribution without permission"
)
MOVIELENS_SHARED_LICENCE = (
    "GroupLens: research use; cite the paper; may be passed on under the same conditions; no "
    "endorsement implied; no commercial use without permission"
)
JESTER_CITATION = (
    "Ken Goldberg, Theresa Roeder, Dhruv Gupta, and Chris Perkins. 2001. Eigentaste: A Constant "
    "Time Collaborative Filtering Algorithm. Information Retrieval 4, 2, 133-151."
)


@dataclass(frozen=True)
class Dataset:
    """One entry of the registry.

    Attributes
    ----------
    name, title, description : for lists.
    users, items, ratings : nominal counts; of items, those with ratings (EachMovie: as
        published, items and users without votes included).
    format : of ``gmc_core.data.readers.FORMATS``, or "sample".
    licence, citation : conditions in short, and the paper to cite.
    urls : where to download it, tried in order.
    checksum : "sha256:…", or "md5:…" as its publishers state it; None if not known.
    size : bytes of the download, about, for display; None if not known.
    homepage : where a person finds it.
    downloadable : whether it can be fetched; otherwise the person brings the files.
    redistributable : whether it may be passed on (under its own conditions).
    """

    name: str
    title: str
    description: str
    users: int
    items: int
    ratings: int
    format: str
    licence: str
    citation: str
    urls: tuple[str, ...] = ()
    checksum: str | None = None
    size: int | None = None
    homepage: str = "https://grouplens.org/datasets/movielens/"
    redistributable: bool = False

    @property
    def downloadable(self) -> bool:
        """Whether there is a place to fetch it from."""
        return bool(self.urls)

    @property
    def file_name(self) -> str:
        """The name of the downloaded file."""
        return f"{self.name}.zip"


def _movielens(
    name: str,
    counts: tuple[int, int, int],
    megabytes: float,
    checksum: str | None,
    format: str,
    *,
    description: str,
    shared: bool = False,
) -> Dataset:
    users, items, ratings = counts
    edition = name.removeprefix("ml-")
    return Dataset(
        name=name,
        title=f"MovieLens {edition if 'latest' in edition else edition.upper()}",
        description=description,
        users=users,
        items=items,
        ratings=ratings,
        format=format,
        licence=MOVIELENS_SHARED_LICENCE if shared else MOVIELENS_LICENCE,
        citation=MOVIELENS_CITATION,
        urls=(f"{GROUPLENS}/{name}.zip",),
        checksum=checksum,
        size=round(megabytes * 1_000_000),
        redistributable=shared,
    )


_ENTRIES = (
    Dataset(
        name="sample",
        title="Sample (MovieLens latest-small, 2016)",
        description="Half-star ratings that come with this program; nothing to download.",
        users=671,
        items=9_066,
        ratings=100_004,
        format="sample",
        licence=sample.LICENCE,
        citation=sample.CITATION,
        redistributable=True,
    ),
    _movielens(
        "ml-100k",
        (943, 1_682, 100_000),
        4.9,
        "md5:0e33842e24a9c977be4e0107933c0723",
        "movielens-100k",
        description="Whole-star ratings of 1997-1998, with age, gender and occupation of users.",
    ),
    _movielens(
        "ml-latest-small",
        (610, 9_724, 100_836),
        1.0,
        None,  # GroupLens replaces this file from time to time
        "movielens-csv",
        description="A small half-star set for development, edition of 2018.",
        shared=True,
    ),
    _movielens(
        "ml-1m",
        (6_040, 3_706, 1_000_209),
        5.9,
        "sha256:a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
        "movielens-dat",
        description="The whole-star set of the paper's experiments, 2000-2003.",
    ),
    _movielens(
        "ml-10m",
        (69_878, 10_677, 10_000_054),
        65.6,
        "md5:ce571fd55effeba0271552578f2648bd",
        "movielens-dat",
        description="Half-star ratings up to 2009.",
    ),
    _movielens(
        "ml-20m",
        (138_493, 26_744, 20_000_263),
        198.7,
        "md5:cd245b17a1ae2cc31bb14903e1204af3",
        "movielens-csv",
        description="Half-star ratings up to 2015.",
    ),
    _movielens(
        "ml-25m",
        (162_541, 59_047, 25_000_095),
        261.9,
        "md5:6b51fb2759a8657d3bfcbfc42b592ada",
        "movielens-csv",
        description="Half-star ratings up to 2019.",
    ),
    _movielens(
        "ml-32m",
        (200_948, 84_432, 32_000_204),
        239.0,
        "md5:d472be332d4daa821edc399621853b57",
        "movielens-csv",
        description="Half-star ratings up to 2023.",
    ),
    Dataset(
        name="eachmovie",
        title="EachMovie",
        description="Six-level votes of 1996-1997. Withdrawn in 2004: give the path of your copy.",
        users=72_916,
        items=1_628,
        ratings=2_811_983,
        format="eachmovie",
        licence=(
            "Digital Equipment Corporation, 1997: non-commercial research; credit Digital "
            "Equipment Corporation; copies for internal use only"
        ),
        citation=(
            "Paul McJones. 1997. EachMovie collaborative filtering data set. Digital Equipment "
            "Corporation, Systems Research Center."
        ),
        homepage="https://grouplens.org/datasets/eachmovie/",
    ),
    Dataset(
        name="jester",
        title="Jester (data set 1)",
        description=(
            "Continuous ratings of 100 jokes. Published as Excel sheets: save them as CSV and "
            "give the path."
        ),
        users=73_421,
        items=100,
        ratings=4_136_360,
        format="jester",
        licence="Free for research use; cite the paper",
        citation=JESTER_CITATION,
        homepage="https://eigentaste.berkeley.edu/dataset/",
    ),
)

DATASETS: Mapping[str, Dataset] = MappingProxyType({entry.name: entry for entry in _ENTRIES})


def info(name: str) -> Dataset:
    """The registry's entry.

    Raises
    ------
    DataError
        If there is no such name; the message lists the names.
    """
    try:
        return DATASETS[name]
    except KeyError:
        raise DataError(
            f"There is no data set named {name!r}; the names are {', '.join(DATASETS)}. The path "
            "of a folder, zip or file works as well."
        ) from None


def fetch(
    name: str,
    *,
    progress: Progress | None = None,
    cache: str | os.PathLike[str] | None = None,
    urls: tuple[str, ...] | None = None,
) -> Path:
    """The path of a data set's file, downloaded unless it is in the cache.

    Parameters
    ----------
    name : of the registry.
    progress : called with (bytes done, bytes in total; 0 if unknown).
    cache : folder; by default ``GMC_CACHE`` or the user's cache folder.
    urls : mirrors instead of the registry's, https only.

    Raises
    ------
    FetchError
        If no mirror gave the right file, or the set cannot be downloaded.
    DataError
        If there is no such name.
    """
    entry = info(name)
    places = urls or entry.urls
    if entry.format == "sample":
        raise FetchError("The sample comes with this program; there is nothing to download.")
    if not places:
        raise FetchError(
            f"{entry.title} cannot be downloaded by this program. {entry.description} See "
            f"{entry.homepage}."
        )
    folder = cache_folder() if cache is None else Path(cache)
    return download(places, folder, entry.file_name, entry.checksum, progress)


def load_named(
    name_or_path: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    cache: str | os.PathLike[str] | None = None,
    urls: tuple[str, ...] | None = None,
    **reading: Any,
) -> Loaded:
    """Ratings of a data set by its name in the registry, or by a path.

    progress is told of a download; ``reading`` are the keywords of
    :func:`gmc_core.data.readers.load`. A name wins
    over a file of the same name in the current folder; write ``./name`` for that.

    Raises
    ------
    FetchError, DataError
        As :func:`fetch` and :func:`gmc_core.data.readers.load`.
    """
    text = os.fspath(name_or_path)
    if text == "sample":
        return _read_as_it_is(sample.load(), reading)
    if text in DATASETS:
        path = fetch(text, progress=progress, cache=cache, urls=urls)
        reading = {"name": text, **reading}
        return _with_conditions(load(path, **reading), DATASETS[text])
    if not _exists(text):
        if os.sep in text or "." in text:
            raise DataError(
                "There is no such file or folder; check the path, or use a name: "
                f"{', '.join(DATASETS)}.",
                path=text,
            )
        info(text)  # raises, with the list of names
    loaded = load(text, **reading)
    entry = recognise(Path(text), loaded.report.format)
    return loaded if entry is None else _with_conditions(loaded, entry)


def _exists(text: str) -> bool:
    """Whether a path exists, or cannot be looked at for a reason that its reader will report."""
    try:
        return Path(text).expanduser().exists()
    except (OSError, RuntimeError):  # too long, no such ~user: the reader says it
        return True


def check(path: str | os.PathLike[str], **reading: Any) -> LoadReport:
    """The report of reading a path or a named data set; the ratings are not kept."""
    return load_named(path, **reading).report


def recognise(path: Path, format: str) -> Dataset | None:
    """The registry's entry that a person's own file belongs to, if that is clear.

    A file belongs to an entry of its format if its checksum is the entry's, or a
    part of its path is the entry's name. EachMovie and Jester are the only sets
    in their formats. For a MovieLens layout without a known name, the strictest
    conditions of that layout hold.
    """
    candidates = [entry for entry in _ENTRIES if entry.format == format]
    if len(candidates) <= 1:
        return candidates[0] if candidates else None
    names = {part.lower().removesuffix(".zip") for part in path.resolve().parts[-2:]}
    for entry in candidates:
        if entry.name in names:
            return entry
    if path.is_file() and _may_be_one_of(path, candidates):
        sums = checksums(path)
        for entry in candidates:
            if entry.checksum in sums:
                return entry
    return next((entry for entry in candidates if not entry.redistributable), None)


def _may_be_one_of(path: Path, entries: list[Dataset]) -> bool:
    """Whether a file's checksum is worth its time: not for a large one of no entry's size."""
    size = path.stat().st_size
    near = (abs(size - entry.size) < 0.02 * size for entry in entries if entry.size)
    return size < 20_000_000 or any(near)


def _read_as_it_is(loaded: Loaded, reading: Mapping[str, Any]) -> Loaded:
    """The sample, and a note on options of reading, which have no effect on it."""
    wishes = {name: value for name, value in reading.items() if name != "on_read"}
    given = [name for name, value in wishes.items() if value not in (None, False)]
    if not given:
        return loaded
    words = ", ".join(name.replace("_", " ") for name in given)
    note = f"how to read a file ({words}) has no effect here: the sample comes with this program"
    return replace(loaded, report=replace(loaded.report, notes=(*loaded.report.notes, note)))


def _with_conditions(loaded: Loaded, entry: Dataset) -> Loaded:
    ratings = replace(loaded.ratings, licence=entry.licence, citation=entry.citation)
    return Loaded(ratings, loaded.report)

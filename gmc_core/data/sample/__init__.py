"""A sample of real ratings that comes with the package, under its own conditions.

It is the 2016 edition of MovieLens ml-latest-small: 100,004 half-star ratings of
9,066 movies by 671 users. ``NOTICE.md`` beside this file states the conditions.
"""

from __future__ import annotations

from importlib.resources import as_file, files

import numpy as np

from gmc_core.data.rating_times import day_text
from gmc_core.data.ratings import ItemInfo, Ratings, Vocabulary, frozen
from gmc_core.data.readers.report import Loaded, LoadReport
from gmc_core.data.readers.scales import HALF_STARS

NAME = "sample"
LICENCE = "GroupLens terms for MovieLens latest-small (research use, no commercial use); see NOTICE"
CITATION = (
    "F. Maxwell Harper and Joseph A. Konstan. 2015. The MovieLens Datasets: History and Context. "
    "ACM Transactions on Interactive Intelligent Systems 5, 4, Article 19. "
    "https://doi.org/10.1145/2827872"
)


def notice() -> str:
    """The conditions of use, as Markdown."""
    return files(__package__).joinpath("NOTICE.md").read_text(encoding="utf-8")


def load() -> Loaded:
    """The sample, with a report like that of any reading."""
    with as_file(files(__package__).joinpath("ratings.npz")) as path, np.load(path) as archive:
        stored = {key: archive[key] for key in archive.files}
    users = Vocabulary(stored["user_ids"], "user")
    items = Vocabulary(stored["item_ids"], "item")
    ratings = Ratings(
        users=users,
        items=items,
        indptr=np.concatenate([[0], np.cumsum(stored["user_counts"], dtype=np.int64)]),
        indices=stored["items"].astype(np.int32),
        values=stored["half_stars"] / 2,
        scale=HALF_STARS,
        item_info=_item_info(stored),
        name=NAME,
        licence=LICENCE,
        citation=CITATION,
        times=stored["times"].astype(np.int64),
    )
    untitled = ratings.item_info.titles.count(None)
    ends = [int(second) for second in (stored["times"].min(), stored["times"].max())]
    report = LoadReport(
        source="the sample of this package",
        format="sample",
        encoding="utf-8",
        rows_read=len(ratings),
        ratings=len(ratings),
        dropped=(),
        duplicates=0,
        duplicate_policy="last",
        blank_lines=0,
        scale=HALF_STARS,
        scale_found="known: MovieLens half stars",
        users=len(users),
        items=len(items),
        notes=(
            f"times from {day_text(ends[0])} to {day_text(ends[1])} (UTC)",
            f"{untitled:,} rated items have no title",
        ),
    )
    return Loaded(ratings, report)


def _item_info(stored: dict[str, np.ndarray]) -> ItemInfo:
    names = stored["titles"].tobytes().decode().split("\n")
    genres = stored["genres"].tobytes().decode().split("\n")
    years = stored["years"].tolist()
    titles = (
        (f"{name} ({year})" if year else name) if name else None
        for name, year in zip(names, years, strict=True)
    )
    return ItemInfo(
        titles=tuple(titles),
        genres=tuple(tuple(text.split("|")) if text else () for text in genres),
        years=frozen(np.array([year or np.nan for year in years], dtype=float)),
    )

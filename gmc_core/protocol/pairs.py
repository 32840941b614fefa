"""Putting separate training and test ratings on one vocabulary and one scale."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.data.rating_times import taken
from gmc_core.data.ratings import ItemInfo, Ratings, RatingScale, Vocabulary


def merge_pair(train: Ratings, test: Ratings) -> tuple[Ratings, Ratings]:
    """Both tables on the union of their users, items and scales.

    Titles, genres, years and user attributes come from ``train`` where it knows
    them, otherwise from ``test``.

    Raises
    ------
    DataError
        If a table is empty, the scales do not fit together, or a (user, item)
        pair is in both tables.
    """
    for ratings, role in ((train, "training"), (test, "test")):
        if len(ratings) == 0:
            raise DataError(f"The {role} ratings are empty. Give a file that has ratings.")
    scale = union_scale(train.scale, test.scale)
    users, train_users, test_users = _union(train.users, test.users)
    items, train_items, test_items = _union(train.items, test.items)
    item_info = _merge_items(
        len(items), (train.item_info, train_items), (test.item_info, test_items)
    )
    user_info = {
        key: _merge_column(
            len(users),
            [
                (table.user_info[key], where)
                for table, where in ((test, test_users), (train, train_users))
                if key in table.user_info
            ],
        )
        for key in dict.fromkeys([*train.user_info, *test.user_info])
    }

    def recode(
        table: Ratings, of_user: npt.NDArray[np.int64], of_item: npt.NDArray[np.int64]
    ) -> Ratings:
        rows, columns = of_user[table.rows], of_item[table.indices]
        order = np.lexsort((columns, rows))
        counts = np.bincount(rows, minlength=len(users))
        return Ratings(
            users=users,
            items=items,
            indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            indices=columns[order].astype(np.int32),
            values=table.values[order],
            scale=scale,
            item_info=item_info,
            user_info=user_info,
            name=train.name,
            licence=train.licence,
            citation=train.citation,
            times=taken(table.times, order),
        )

    merged = recode(train, train_users, train_items), recode(test, test_users, test_items)
    _refuse_overlap(*merged)
    return merged


def union_scale(first: RatingScale, second: RatingScale) -> RatingScale:
    """The lowest low, the highest high and the smallest step of two scales.

    A continuous scale makes the union continuous.

    Raises
    ------
    DataError
        If values of one scale would fall between the levels of the union.
    """
    low, high = min(first.low, second.low), max(first.high, second.high)
    if first.step is None or second.step is None:
        return RatingScale(low, high, None)
    problem = DataError(
        f"The training scale ({first}) and the test scale ({second}) have no common levels. "
        "Give the scale of both files explicitly."
    )
    try:
        union = RatingScale(low, high, min(first.step, second.step))
    except ConfigError as error:
        raise problem from error
    for scale in (first, second):
        levels = scale.levels
        if levels is not None and not np.allclose(union.project(levels), levels):
            raise problem
    return union


def _union(
    first: Vocabulary, second: Vocabulary
) -> tuple[Vocabulary, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The union, and where each position of either vocabulary goes in it."""
    if first.are_integers == second.are_integers:
        a, b = first.ids, second.ids
    else:
        a, b = _as_text(first.ids), _as_text(second.ids)
    union = Vocabulary(np.unique(np.concatenate([a, b])), first.kind)
    return union, union.find(a), union.find(b)


def _as_text(ids: npt.NDArray[np.generic]) -> npt.NDArray[np.object_]:
    return np.array([str(value) for value in ids.tolist()], dtype=object)


def _merge_items(
    count: int,
    first: tuple[ItemInfo, npt.NDArray[np.int64]],
    second: tuple[ItemInfo, npt.NDArray[np.int64]],
) -> ItemInfo:
    titles: list[str | None] = [None] * count
    genres: list[tuple[str, ...]] = [()] * count
    years = np.full(count, np.nan)
    for info, where in (first, second):
        for old, new in enumerate(where.tolist()):
            titles[new] = titles[new] or info.titles[old]
            genres[new] = genres[new] or info.genres[old]
            if np.isnan(years[new]):
                years[new] = info.years[old]
    return ItemInfo(tuple(titles), tuple(genres), years)


def _merge_column(count: int, parts: list[tuple[np.ndarray, npt.NDArray[np.int64]]]) -> np.ndarray:
    """One attribute of all users; a later part overrides an earlier one.

    A user of neither part gets NaN in a column of numbers, None in any other.
    """
    covered = np.zeros(count, dtype=bool)
    for _, where in parts:
        covered[where] = True
    numeric = all(column.dtype.kind in "iuf" for column, _ in parts)
    merged: np.ndarray
    if numeric:
        merged = np.full(count, np.nan)
        whole = all(column.dtype.kind in "iu" for column, _ in parts)
    else:
        merged, whole = np.full(count, None, dtype=object), False
    for column, where in parts:
        merged[where] = column
    return merged.astype(np.int64) if whole and covered.all() else merged


def _refuse_overlap(train: Ratings, test: Ratings) -> None:
    common = np.intersect1d(_cells(train), _cells(test), assume_unique=True)
    if len(common):
        row, column = divmod(int(common[0]), train.n_items)
        # tolist() gives plain Python values, which print as in the file.
        user, item = train.users.ids.tolist()[row], train.items.ids.tolist()[column]
        raise DataError(
            f"{len(common):,} (user, item) pairs are in both the training and the test ratings, "
            f"the first of them user {user!r}, item {item!r}; "
            "testing on them would measure memory. Remove them from one of the files."
        )


def _cells(table: Ratings) -> npt.NDArray[np.int64]:
    """(nnz,) one number for the (user, item) of each rating."""
    return table.rows.astype(np.int64) * table.n_items + table.indices

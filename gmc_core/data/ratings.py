"""The ratings: an immutable sparse table of users × items with its vocabulary.

Everything downstream (splits, model, pages) works on positions 0..M-1 and
0..N-1; the original ids, integers or strings, are mapped once, here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
from scipy import sparse

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.data.rating_times import Times, checked_times, taken, times_sha256
from gmc_core.data.user_info import attribute_column, side_sha256
from gmc_core.data.vocabulary import Vocabulary as Vocabulary
from gmc_core.data.vocabulary import encode
from gmc_core.data.vocabulary import frozen as frozen

FloatArray = npt.NDArray[np.floating]


@dataclass(frozen=True)
class RatingScale:
    """The values that a rating can take: ``low, low + step, …, high``.

    ``step`` is ``None`` for a continuous scale (Jester's -10..10).
    """

    low: float
    high: float
    step: float | None = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low) and np.isfinite(self.high)):
            raise ConfigError(f"A rating scale needs finite ends, not {self.low}..{self.high}.")
        if self.high < self.low:
            raise ConfigError(
                f"A rating scale runs from low to high; {self.low}..{self.high} does not."
            )
        if self.step is not None:
            if not self.step > 0:
                raise ConfigError(f"The step of a rating scale must be positive, not {self.step}.")
            levels = (self.high - self.low) / self.step
            none = self.high > self.low and levels < 0.5
            if none or abs(levels - round(levels)) > 1e-6:
                raise ConfigError(
                    f"The scale {self.low}..{self.high} is not a whole number of steps of "
                    f"{self.step}; give another step, or none for a continuous scale."
                )

    @property
    def levels(self) -> FloatArray | None:
        """All values of the scale in rising order, or None if it is continuous."""
        if self.step is None:
            return None
        count = round((self.high - self.low) / self.step) + 1
        return self.low + self.step * np.arange(count)

    @property
    def midpoint(self) -> float:
        """The middle of the scale."""
        return (self.low + self.high) / 2

    @property
    def is_stars(self) -> bool:
        """Whether this is a 1..5, 1..6 or half-star scale, for which the paper's
        defaults (initial value 3, ε = .3) were meant."""
        return self.low in (0.5, 1.0) and self.high in (5.0, 6.0)

    @property
    def nmae_divisor(self) -> float:
        """The NMAE divisor: E|a - b| for a, b independent and uniform on the scale.

        For V levels a step s apart this is s (V² - 1) / (3 V): 1.6 on 1..5 and
        35/18 = 1.944 on 1..6, the paper's factors. On a continuous scale it is
        (high - low) / 3.

        Raises
        ------
        ConfigError
            If the scale has one value only: no error can be normalised by it.
        """
        if self.high == self.low:
            raise ConfigError(
                f"All ratings equal {self.low:g}, so NMAE has no divisor: there is nothing to "
                "predict. Use data with at least two rating values."
            )
        levels = self.levels
        if levels is None or self.step is None:
            return (self.high - self.low) / 3
        count = len(levels)
        return self.step * (count**2 - 1) / (3 * count)

    def project(self, values: npt.ArrayLike) -> FloatArray:
        """The nearest value of the scale, inside its range (halves round up).

        values : of any shape, which the result has too; NaN stays NaN. On a continuous scale this
            only clips.
        """
        clipped = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)
        if self.step is None:
            return clipped
        steps = np.floor((clipped - self.low) / self.step + 0.5)
        return np.minimum(self.low + self.step * steps, self.high)

    def __str__(self) -> str:
        step = "continuous" if self.step is None else f"step {self.step:g}"
        return f"{self.low:g}..{self.high:g}, {step}"


@dataclass(frozen=True)
class ItemInfo:
    """What the source says of each item, aligned with the item vocabulary.

    titles : tuple of N strings (None where the source has no title).
    genres : tuple of N tuples of strings (empty where unknown).
    years : float array of N (NaN where unknown).
    """

    titles: tuple[str | None, ...]
    genres: tuple[tuple[str, ...], ...]
    years: FloatArray

    @classmethod
    def unknown(cls, count: int) -> ItemInfo:
        """Nothing known of ``count`` items."""
        return cls((None,) * count, ((),) * count, frozen(np.full(count, np.nan)))

    def subset(self, positions: np.ndarray) -> ItemInfo:
        """The same for the items at ``positions`` (indices, not a mask)."""
        return ItemInfo(
            tuple(self.titles[p] for p in positions),
            tuple(self.genres[p] for p in positions),
            frozen(np.asarray(self.years, dtype=float)[positions]),
        )


@dataclass(frozen=True, eq=False)
class Ratings:
    """An immutable sparse users × items table, in compressed rows (CSR).

    Attributes
    ----------
    users, items : the vocabularies, of length M and N.
    indptr : (M + 1,) int64; user i's ratings are ``indptr[i]:indptr[i + 1]``.
    indices : (nnz,) int32 item positions, rising within each user.
    values : (nnz,) float64 ratings, finite.
    scale : the rating scale.
    item_info : titles, genres and years of the items.
    user_info : attribute name → (M,) array of that attribute (age, gender, …), as
        :func:`gmc_core.data.user_info.attribute_column` makes it.
    name, licence, citation : of the data set, for display and saved models.
    times : (nnz,) int64 when each rating was given, in seconds since 1970 (UTC), with
        :data:`gmc_core.data.rating_times.UNKNOWN_TIME` where that is not known; None if no
        time is known. They are no part of :attr:`sha256`.
    folds : (nnz,) int8 the published test set that each rating belongs to, counted from 1, 0
        for none; None where the data came without. No part of :attr:`sha256` either.

    Users and items without ratings are allowed (a filter or a split can leave
    some); missing and 0 are different things.
    """

    users: Vocabulary
    items: Vocabulary
    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]
    scale: RatingScale
    item_info: ItemInfo
    user_info: Mapping[str, np.ndarray] = field(default_factory=dict)
    name: str = "ratings"
    licence: str = "unknown"
    citation: str = ""
    times: Times | None = None
    folds: npt.NDArray[np.int8] | None = None

    def __post_init__(self) -> None:
        m, n = len(self.users), len(self.items)
        if self.indptr.shape != (m + 1,) or self.indptr[-1] != len(self.indices):
            raise DataError("The row pointers do not fit the number of users and ratings.")
        if len(self.values) != len(self.indices):
            raise DataError("Each rating needs one item and one value.")
        if len(self.indices) and not (0 <= self.indices.min() and self.indices.max() < n):
            raise DataError("An item position lies outside the item vocabulary.")
        if not np.all(np.isfinite(self.values)):
            raise DataError("Ratings must be finite numbers; leave a missing rating out.")
        if len(self.item_info.titles) != n:
            raise DataError("The item information does not fit the item vocabulary.")
        for array in (self.indptr, self.indices, self.values, self.folds):
            if array is not None:
                frozen(array)
        info = {str(key): frozen(attribute_column(own)) for key, own in self.user_info.items()}
        if len(info) != len(self.user_info):
            raise DataError("Two attributes of the users have the same name; rename one.")
        object.__setattr__(self, "user_info", MappingProxyType(info))
        object.__setattr__(self, "times", checked_times(self.times, len(self.values)))

    @classmethod
    def from_triplets(
        cls,
        user_ids: npt.ArrayLike,
        item_ids: npt.ArrayLike,
        values: npt.ArrayLike,
        scale: RatingScale,
        *,
        users: Vocabulary | None = None,
        items: Vocabulary | None = None,
        item_info: ItemInfo | None = None,
        user_info: Mapping[str, np.ndarray] | None = None,
        name: str = "ratings",
        licence: str = "unknown",
        citation: str = "",
        times: npt.ArrayLike | None = None,
    ) -> Ratings:
        """Build from three (n,) arrays of ids (integers or texts) and values, one entry a rating;
        ``times`` alike.

        ``users`` and ``items`` default to the distinct ids present. Two ratings of one item by one
        user are an error here: the readers apply the duplicate policy and count it in their report.
        """
        user_ids, item_ids = np.asarray(user_ids), np.asarray(item_ids)
        users, rows = encode(user_ids, users, "user")
        items, columns = encode(item_ids, items, "item")
        matrix_values = np.asarray(values, dtype=np.float64)
        order = np.lexsort((columns, rows))
        rows, columns, matrix_values = rows[order], columns[order], matrix_values[order]
        same = (rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1])
        if same.any():
            where = int(np.flatnonzero(same)[0])
            user, item = users.ids[rows[where]], items.ids[columns[where]]
            raise DataError(
                f"User {user} has rated item {item} more than once; keep one of the ratings."
            )
        counts = np.bincount(rows, minlength=len(users))
        return cls(
            users=users,
            items=items,
            indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            indices=columns.astype(np.int32),
            values=matrix_values,
            scale=scale,
            item_info=item_info or ItemInfo.unknown(len(items)),
            user_info=user_info or {},
            name=name,
            licence=licence,
            citation=citation,
            times=taken(checked_times(times, len(order)), order),
        )

    def __len__(self) -> int:
        """The number of ratings."""
        return len(self.values)

    @property
    def n_users(self) -> int:
        """M, the number of users."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """N, the number of items."""
        return len(self.items)

    @property
    def fill_ratio(self) -> float:
        """Ratings ÷ (users × items), the paper's "available data ratio"."""
        cells = self.n_users * self.n_items
        return len(self) / cells if cells else 0.0

    @cached_property
    def user_counts(self) -> npt.NDArray[np.int64]:
        """(M,) number of ratings of each user, the paper's N_i."""
        return frozen(np.diff(self.indptr))

    @cached_property
    def item_counts(self) -> npt.NDArray[np.int64]:
        """(N,) number of ratings of each item."""
        return frozen(np.bincount(self.indices, minlength=self.n_items).astype(np.int64))

    @cached_property
    def value_counts(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """The distinct ratings in rising order, and how often each was given."""
        parts = [
            np.unique(self.values[start : start + 2**18], return_counts=True)
            for start in range(0, max(len(self), 1), 2**18)
        ]
        values, which = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
        counts = np.zeros(len(values), dtype=np.int64)
        np.add.at(counts, which, np.concatenate([part[1] for part in parts]))
        return frozen(values), frozen(counts)

    def user_blocks(self, most: int = 2**20) -> Iterator[tuple[int, int]]:
        """(first, last + 1) of users one after another with about ``most`` ratings together."""
        starts = np.searchsorted(self.indptr, np.arange(0, len(self), most))
        yield from pairwise([*np.unique(starts).tolist(), self.n_users])

    @cached_property
    def rows(self) -> npt.NDArray[np.int32]:
        """(nnz,) user position of each rating."""
        return frozen(np.repeat(np.arange(self.n_users, dtype=np.int32), self.user_counts))

    def to_csr(self) -> sparse.csr_matrix:
        """The ratings as a SciPy matrix; an explicit 0 is a rating of 0."""
        return sparse.csr_matrix(
            (self.values, self.indices, self.indptr), shape=(self.n_users, self.n_items)
        )

    def of_user(self, user: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Item positions and values, both (n,), of the n ratings of the user at a position."""
        where = slice(self.indptr[user], self.indptr[user + 1])
        return self.indices[where], self.values[where]

    def title(self, item: int) -> str:
        """The item's title, or its id where the source has none."""
        return self.item_info.titles[item] or str(self.items.ids[item])

    @cached_property
    def sha256(self) -> str:
        """Hash of ids, ratings and scale; row order of the source has no effect."""
        digest = hashlib.sha256(b"gmc ratings 1\n")
        for vocabulary in (self.users, self.items):
            text = "\0".join(str(value) for value in vocabulary.ids.tolist())
            digest.update(f"{vocabulary.are_integers} {len(vocabulary)}\n{text}\n".encode())
        digest.update(np.ascontiguousarray(self.indptr, "<i8").data)
        digest.update(np.ascontiguousarray(self.indices, "<i4").data)
        digest.update(np.ascontiguousarray(self.values, "<f8").data)
        digest.update(repr((self.scale.low, self.scale.high, self.scale.step)).encode())
        return digest.hexdigest()

    @cached_property
    def side_sha256(self) -> str:
        """Hash of what models can read besides the ratings: users' attributes and genres;
        "" where there is nothing."""
        return side_sha256(self.user_info, self.item_info.genres)

    @property
    def has_times(self) -> bool:
        """Whether the time of any rating is known."""
        return self.times is not None

    @cached_property
    def times_sha256(self) -> str:
        """Hash of the times, for the key of a fit that uses them; "" where there are none."""
        return times_sha256(self.times)

    def keep_ratings(self, keep: npt.NDArray[np.bool_]) -> Ratings:
        """The same users and items with only the ratings where ``keep``, (n,), is true."""
        kept = np.zeros(self.n_users, dtype=np.int64)
        rated = self.user_counts > 0
        if rated.any():
            kept[rated] = np.add.reduceat(keep, self.indptr[:-1][rated], dtype=np.int64)
        return replace(
            self,
            indptr=np.concatenate([[0], np.cumsum(kept)]),
            indices=self.indices[keep],
            values=self.values[keep],
            times=taken(self.times, keep),
            folds=taken(self.folds, keep),
        )

    def select(
        self, users: npt.NDArray[np.bool_] | None = None, items: npt.NDArray[np.bool_] | None = None
    ) -> Ratings:
        """Only the users and items where the masks, of length M and N, are true.

        The table itself where that is all of them: it is immutable, and may be large.
        """
        keep_users = np.ones(self.n_users, bool) if users is None else np.asarray(users, bool)
        keep_items = np.ones(self.n_items, bool) if items is None else np.asarray(items, bool)
        if keep_users.all() and keep_items.all():
            return self
        user_positions, item_positions = np.flatnonzero(keep_users), np.flatnonzero(keep_items)
        matrix = self.keep_ratings(keep_users[self.rows] & keep_items[self.indices])
        new_item = (np.cumsum(keep_items) - 1).astype(np.int32)
        return replace(
            matrix,
            users=self.users.subset(user_positions),
            items=self.items.subset(item_positions),
            indptr=np.concatenate([[0], np.cumsum(matrix.user_counts[user_positions])]).astype(
                np.int64
            ),
            indices=new_item[matrix.indices],
            item_info=self.item_info.subset(item_positions),
            user_info={key: column[user_positions] for key, column in self.user_info.items()},
        )

"""Signals: the parts of the table that the Gaussian describes.

The paper takes each row (a user) as one signal, and mentions columns and 2-D
sub-matrices rendered in 1-D. All three are a sparse set of M vectors of N
coordinates; this module owns the way from (user, item) to (signal, coordinate).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from gmc_core.base.errors import ConfigError
from gmc_core.data.rating_times import seconds_of
from gmc_core.data.ratings import Ratings, frozen

SignalKind = Literal["rows", "columns", "blocks"]
KINDS: tuple[SignalKind, ...] = ("rows", "columns", "blocks")


@dataclass(frozen=True)
class Layout:
    """How a users × items table is cut into signals.

    kind : "rows" (a signal is a user), "columns" (an item) or "blocks"
        (non-overlapping 2-D sub-matrices, scanned row by row, each rendered row
        by row; ragged edges are padded with unobserved entries).
    users, items : shape of the table.
    block : height and width of a block, used for "blocks" only.
    """

    kind: SignalKind
    users: int
    items: int
    block: tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"Signals are {', '.join(KINDS)}, not {self.kind!r}.")
        if min(self.block) < 1:
            raise ConfigError(
                f"A block needs at least one row and one column, not {self.block[0]}x"
                f"{self.block[1]}."
            )

    @property
    def _blocks_per_row(self) -> int:
        return -(-self.items // self.block[1])

    @property
    def count(self) -> int:
        """M, the number of signals."""
        if self.kind == "rows":
            return self.users
        if self.kind == "columns":
            return self.items
        return -(-self.users // self.block[0]) * self._blocks_per_row

    @property
    def dimension(self) -> int:
        """N, the number of coordinates of a signal."""
        if self.kind == "rows":
            return self.items
        if self.kind == "columns":
            return self.users
        return self.block[0] * self.block[1]

    def locate(
        self, users: npt.NDArray[np.integer], items: npt.NDArray[np.integer]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Signal and coordinate of each (user, item) position."""
        row, column = users.astype(np.int64), items.astype(np.int64)
        if self.kind == "rows":
            return row, column
        if self.kind == "columns":
            return column, row
        height, width = self.block
        signals = row // height * self._blocks_per_row + column // width
        return signals, row % height * width + column % width


@dataclass(frozen=True, eq=False)
class Signals:
    """M partly observed vectors of N coordinates, in compressed rows.

    layout : the way from (user, item) to (signal, coordinate).
    indptr : (M + 1,) int64. indices : (nnz,) int32, rising in each signal.
    values : (nnz,) float64, the observations y.
    covariates : (M, G) float64, the x that move the signals' means by B x, see
        :mod:`gmc_core.gaussian.covariates`; None for none, which is x = 0. Of the signals that a
        model learns from, they add up to 0.
    times : (nnz,) float64 when each observation was made, in seconds, NaN where that is not
        known; None where it has no meaning. Read by noise that observations share, see
        :class:`gmc_core.gaussian.noise.SessionNoise`.
    offsets : (nnz,) float64, a known part of each observation that the Gaussian does not
        describe: y - offset is drawn from it; None for none.
    """

    layout: Layout
    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]
    covariates: npt.NDArray[np.float64] | None = None
    times: npt.NDArray[np.float64] | None = None
    offsets: npt.NDArray[np.float64] | None = None

    @classmethod
    def of(cls, ratings: Ratings, layout: Layout) -> Signals:
        """Cut ``ratings`` into signals."""
        if layout.kind == "rows":
            return cls(layout, ratings.indptr, ratings.indices, ratings.values)
        signals, coordinates = layout.locate(ratings.rows, ratings.indices)
        order = np.lexsort((coordinates, signals))
        counts = np.bincount(signals, minlength=layout.count)
        return cls(
            layout,
            frozen(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)),
            frozen(coordinates[order].astype(np.int32)),
            frozen(ratings.values[order]),
        )

    def at_times(self, ratings: Ratings) -> Signals:
        """The same with the times of ``ratings``, which these are the rows of.

        Raises
        ------
        ConfigError
            If the signals are no rows.
        """
        if self.layout.kind != "rows":
            raise ConfigError(
                "Noise that ratings of one session share is about the ratings of one user; take "
                "rows as signals."
            )
        times = None if ratings.times is None else frozen(seconds_of(ratings.times))
        return replace(self, times=times)

    @classmethod
    def of_table(cls, table: npt.NDArray[np.float64]) -> Signals:
        """The rows of a table (M, N) that holds NaN where nothing was observed."""
        observed = ~np.isnan(table)
        indptr = np.concatenate([[0], np.cumsum(observed.sum(axis=1))]).astype(np.int64)
        return cls(
            Layout("rows", *table.shape),
            frozen(indptr),
            frozen(np.nonzero(observed)[1].astype(np.int32)),
            frozen(table[observed]),
        )

    @property
    def count(self) -> int:
        """M, the number of signals."""
        return len(self.indptr) - 1

    @property
    def dimension(self) -> int:
        """N, the number of coordinates."""
        return self.layout.dimension

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """(M,) observed coordinates of each signal, the paper's N_i."""
        return frozen(np.diff(self.indptr))

    @cached_property
    def owners(self) -> npt.NDArray[np.int32]:
        """(nnz,) the signal of each observation."""
        return frozen(np.repeat(np.arange(self.count, dtype=np.int32), self.sizes))

    @cached_property
    def heavy_first(self) -> npt.NDArray[np.int64]:
        """Signals with observations, by falling N_i: the order in which to solve."""
        order = np.argsort(-self.sizes, kind="stable")
        return frozen(order[: np.count_nonzero(self.sizes)])

    @cached_property
    def by_coordinate(
        self,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.integer], npt.NDArray[np.integer]]:
        """The same entries by coordinate: pointers (N + 1,), CSR position of each
        entry, and CSR position at which the entry's signal starts."""
        counts = np.bincount(self.indices, minlength=self.dimension)
        pointers = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        position = np.int32 if len(self.indices) < 2**31 else np.int64
        entries = np.argsort(self.indices, kind="stable").astype(position)
        starts = np.repeat(self.indptr[:-1].astype(position), self.sizes)[entries]
        return frozen(pointers), frozen(entries), frozen(starts)

    def matrix(self, numbers: npt.NDArray[np.floating]) -> sparse.csr_matrix:
        """(M, N) with these numbers, (nnz,), in place of the observations."""
        shape = (self.count, self.dimension)
        return sparse.csr_matrix((numbers, self.indices, self.indptr), shape=shape)

    def entries(self, signals: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """Positions, among all observations, of those of these signals in this order."""
        sizes = self.sizes[signals]
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        return np.repeat(self.indptr[signals] - (ends - sizes), sizes) + np.arange(total)

    def take(self, signals: npt.NDArray[np.integer]) -> Signals:
        """Only the signals at these positions, in this order.

        The result keeps the layout's coordinates, but its signals are no longer
        those of ``layout.locate``.
        """
        indptr = np.concatenate([[0], np.cumsum(self.sizes[signals])]).astype(np.int64)
        where = self.entries(signals)
        own = None if self.covariates is None else self.covariates[signals]
        times = None if self.times is None else self.times[where]
        known = None if self.offsets is None else self.offsets[where]
        return Signals(
            self.layout, indptr, self.indices[where], self.values[where], own, times, known
        )

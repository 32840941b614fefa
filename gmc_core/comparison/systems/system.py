"""What the systems of the paper's tables share: how settings are chosen, tables by user and item.

A system says what it may be set to (``candidates``) and how one setting learns and predicts
(``attempt``). Which setting that is, is decided inside the training ratings of every split:
some of each user's are held out, and the setting of least NMAE on them, each user weighing alike,
learns from all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import Bounds, minimize

from gmc_core.base.errors import DataError
from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.gaussian.estep import read_only
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.protocol.metrics import normalized_errors
from gmc_core.protocol.splits import Split
from gmc_core.protocol.validation import hold_out

Floats = npt.NDArray[np.float64]

# More levels than any survey has; tables of probabilities have one number for each.
MOST_LEVELS = 256
SMOOTHING = 5.0
# Shape and rate of the Gamma prior of a precision that is learned.
VAGUE = 1e-6
# Pieces of work at most, and entries in one at least.
_PIECES, _LEAST = 64, 2000


@dataclass(frozen=True)
class System(ABC):
    """A method of the comparison that learns from the training ratings of a split alone.

    Subclasses are frozen dataclasses, whose fields are all that their predictions depend on.

    name, label : as of :class:`gmc_core.comparison.comparators.method.Method`.
    seed : of all that is random, the ratings held out to choose a setting on included.
    """

    name: str
    label: str
    seed: int = 0
    # Raised whenever the same settings would give other predictions.
    version: ClassVar[int] = 1

    @property
    def identity(self) -> str:
        """Name, version and settings."""
        own = [repr(getattr(self, one.name)) for one in fields(self) if one.name != "label"]
        return f"{type(self).__name__} {self.version} {' '.join(own)}"

    @property
    @abstractmethod
    def candidates(self) -> Sequence[Any]:
        """The settings to choose from; the first of equals is taken."""

    @abstractmethod
    def attempt(self, split: Split, setting: Any, team: ThreadPool) -> Floats:
        """(n_test,) raw predictions of one setting, learned from ``split.train``.

        Where there is a query set, the items' side is learned without it, and the users' side
        of the novel users follows from their ratings in it.
        """

    def predict(self, split: Split, team: ThreadPool) -> Floats:
        """(n_test,) raw predictions with the setting that :meth:`choose` finds.

        Raises
        ------
        DataError
            If there are no training ratings, or none can be held out to choose a setting on.
        NumericalError
            If the computation breaks down.
        """
        team.check()
        if not len(split.train):
            raise DataError("There are no training ratings to learn from. Train on some.")
        return self.attempt(split, self.choose(split.train, team), team)

    def choose(self, train: Ratings, team: ThreadPool) -> Any:
        """The candidate of least NMAE on ratings held out of ``train``."""
        candidates = self.candidates
        if len(candidates) == 1:
            return candidates[0]
        inner, (held,) = hold_out(train, self.seed)
        errors = [
            float(
                held.by_user(
                    normalized_errors(
                        self.attempt(inner, setting, team), inner.test_values, train.scale
                    )
                ).mean()
            )
            for setting in candidates
        ]
        return candidates[int(np.argmin(errors))]


class Chain(Protocol):
    """The state of a Gibbs sampler."""

    def sweep(self, team: ThreadPool) -> None:
        """Draw everything once."""

    def predictions(self, split: Split, team: ThreadPool) -> Floats:
        """(n_test,) under the present state."""


class Sampler(System):
    """A system that predicts the mean over the sweeps of a chain.

    sweeps : in all. burn_in : how many of them come before the first that counts. Both are fields
        of the subclasses, after their own.
    """

    sweeps: int
    burn_in: int

    @abstractmethod
    def chain(self, split: Split, setting: Any) -> Chain:
        """The sampler before its first sweep."""

    def attempt(self, split: Split, setting: Any, team: ThreadPool) -> Floats:
        """(n_test,) means of the predictions over the sweeps that count."""
        chain = self.chain(split, setting)
        total = np.zeros(split.n_test)
        for sweep in range(self.sweeps):
            chain.sweep(team)
            if sweep >= self.burn_in:
                total += chain.predictions(split, team)
        return total / (self.sweeps - self.burn_in)


class Rows(NamedTuple):
    """A sparse table in compressed rows: by user, or by item; read-only, so that compiled
    functions are made once.

    indptr : (rows + 1,) int64. indices : (nnz,) int32 columns. values : (nnz,) float64.
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: Floats

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.indptr) - 1


def by_user(ratings: Ratings, values: Floats | None = None) -> Rows:
    """The ratings, or other (nnz,) numbers in their places, by user."""
    numbers = ratings.values if values is None else values
    return Rows(read_only(ratings.indptr), read_only(ratings.indices), read_only(numbers))


def by_item(ratings: Ratings, values: Floats | None = None) -> Rows:
    """The same by item; the columns are users."""
    table = sparse.csr_matrix(
        (ratings.values if values is None else values, ratings.indices, ratings.indptr),
        shape=(ratings.n_users, ratings.n_items),
    ).tocsc()
    table.sort_indices()
    indptr, indices = table.indptr.astype(np.int64), table.indices.astype(np.int32)
    return Rows(read_only(indptr), read_only(indices), read_only(table.data))


def pieces(rows: Rows) -> Iterator[tuple[int, int]]:
    """All rows, cut into ranges of about equally many entries."""
    count = int(np.clip(rows.indptr[-1] // _LEAST, 1, _PIECES))
    goals = np.linspace(0, rows.indptr[-1], count + 1)[1:-1]
    cuts = np.unique(np.concatenate([[0], np.searchsorted(rows.indptr, goals), [rows.size]]))
    return iter(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))


def over_rows(rows: Rows, task: Callable[[int, int], object], team: ThreadPool) -> None:
    """Call ``task(start, stop)`` on ranges that make up all rows, on the pool's threads."""

    def one(span: tuple[int, int], _: None) -> None:
        task(*span)

    team.run(one, pieces(rows), lambda: None)


def generator(seed: int) -> np.random.Generator:
    """The one source of a system's random numbers."""
    return np.random.Generator(np.random.PCG64(seed))


def drawn_precision(count: int, squares: float, random: np.random.Generator) -> float:
    """A draw of the precision of ``count`` normal numbers with mean 0 and this sum of squares,
    its prior Gamma(10⁻⁶, 10⁻⁶)."""
    drawn = random.gamma(VAGUE + count / 2) / (VAGUE + squares / 2)
    return float(np.clip(drawn, VAGUE, 1 / VAGUE))


def levels_of(scale: RatingScale, label: str) -> Floats:
    """The V values that a rating can take.

    Raises
    ------
    DataError
        If there are none, or more than a table of their probabilities is for.
    """
    levels = scale.levels
    if levels is None or len(levels) > MOST_LEVELS:
        many = "any number" if levels is None else f"{len(levels):,} values"
        raise DataError(
            f"{label} has a probability or threshold for each value of the scale, and ratings of "
            f"these data may be {many}. Leave it out, or give a scale with a coarser step."
        )
    return np.asarray(levels, dtype=np.float64)


def codes(ratings: Ratings) -> Floats:
    """(nnz,) which level each rating is, 0 … V - 1, as whole float64."""
    scale = ratings.scale
    assert scale.step is not None
    return np.asarray(np.rint((scale.project(ratings.values) - scale.low) / scale.step))


def frequencies(ratings: Ratings) -> Floats:
    """(N, V) how often each item gets each level, smoothed: as if it had ``SMOOTHING`` ratings
    more, drawn from all ratings of all items and one of each level."""
    scale = ratings.scale
    assert scale.levels is not None
    count = len(scale.levels)
    own = np.zeros((ratings.n_items, count))
    np.add.at(own, (ratings.indices, codes(ratings).astype(np.int64)), 1.0)
    own += SMOOTHING * (own.sum(axis=0) + 1) / (own.sum() + count)
    return np.asarray(own / own.sum(axis=1, keepdims=True))


def medians(probabilities: Floats, levels: Floats) -> Floats:
    """(n,) the median level of each distribution, (n, V); it has the least expected absolute
    error."""
    reached = np.cumsum(probabilities, axis=1) >= 0.5 * probabilities.sum(axis=1, keepdims=True)
    return np.asarray(levels[reached.argmax(axis=1)])


def descend(
    objective: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    iterations: int,
    team: ThreadPool,
    lowest: Floats | None = None,
) -> Floats:
    """Where L-BFGS (Liu and Nocedal 1989) ends after at most ``iterations`` steps from ``start``.

    objective : point (n,) → value and gradient (n,), which is read before the next call.
    lowest : (n,) bounds from below, -∞ where there is none.
    """

    def checked(point: Floats) -> tuple[float, Floats]:
        team.check()
        return objective(point)

    found = minimize(
        checked, start, jac=True, method="L-BFGS-B",
        bounds=None if lowest is None else Bounds(lowest, np.inf),
        options={"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 10},
    )  # fmt: skip
    return np.asarray(found.x, dtype=np.float64)

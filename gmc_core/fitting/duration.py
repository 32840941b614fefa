"""How long a fit will take, before it starts and while it runs.

One place for the pages and the command line. The estimate is the work of each iteration
(arithmetic at rates that depend on the size of the systems, and numbers that must be
moved), plus what is not arithmetic: starting a process, reading, compiling, saving.
Rates are shares of this machine's own matrix product rate, which is measured once.
The shares come from ``python -m benchmarks.estimates``, which compares estimate and
clock for every model; they hold within a factor of 1.5 on an idle machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core.fitting.compiling import compile_seconds
from gmc_core.fitting.cost import core_rate
from gmc_core.fitting.inputs import AnyFit
from gmc_core.fitting.records import IterationRecord
from gmc_core.gaussian.estep import factored_flops
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.mstep import choose_form
from gmc_core.gaussian.settings import FitSettings

Sizes = npt.NDArray[np.integer]

# Shares of the matrix product rate, by what is computed; see :func:`_solve_seconds`.
_SOLVE_SHARE, _SOLVE_HALF = 0.45, 30.0
_INVERT_SHARE, _INVERT_HALF = 0.45, 60.0
_PRODUCT_SHARE = 0.7
_SPARSE_SHARE = 0.25
# Seconds to gather or add one number of Σ at a random place, and to go through one in order.
_SCATTERED = 1.2e-9
_IN_ORDER = 0.5e-9
# Seconds to find one latent response under a Gaussian of low rank.
_LATENT = 0.4e-6

_TOGETHER = 0.95  # n cores reach this power of n times the rate of one

STARTING = 1.8  # a process with everything imported
READING = 0.7e-6  # a rating
_SAVING = 1.0e-8  # a number of Σ
_ITERATION = 0.02  # recording
LONGEST = 1e15  # seconds; longer is no estimate, nor is NaN


@dataclass(frozen=True)
class Estimate:
    """Estimated seconds on this machine, if it has nothing else to do.

    starting : of the process and of reading the data, once.
    compiling : once on this machine; 0 where the compiled code is there.
    preparing : before the first iteration of a repetition.
    iterations : (L,) each iteration of a repetition.
    saving : after the last one.
    repetitions : how many.
    """

    starting: float
    compiling: float
    preparing: float
    iterations: tuple[float, ...]
    saving: float
    repetitions: int = 1

    @property
    def repetition(self) -> float:
        """Seconds of one repetition."""
        return self.preparing + sum(self.iterations)

    @property
    def computing(self) -> float:
        """All but compiling."""
        return self.starting + self.repetitions * self.repetition + self.saving

    @property
    def total(self) -> float:
        """All of it."""
        return self.compiling + self.computing

    def remaining(self, done: Sequence[IterationRecord]) -> float:
        """Seconds still to go after the records ``done`` of all repetitions.

        What the iterations of a kind have taken, in the estimate's terms, is what the
        others of this kind are expected to take; an estimate of a kind of which none is
        done is scaled as all that are done, half-way.
        """
        length = len(self.iterations)
        if not done:
            return self.total - self.starting
        spent, planned = np.zeros(length), np.zeros(length)
        for record in done:
            place = min(record.iteration, length) - 1
            spent[place] += record.seconds
            planned[place] += self.iterations[place]
        overall = float(spent.sum() / max(planned.sum(), 1e-9))
        each = [
            seconds * _pace(seconds, self.iterations, spent, planned, overall)
            for seconds in self.iterations
        ]
        whole, begun = divmod(len(done), max(length, 1))
        left = (self.repetitions - whole) * sum(each) - sum(each[:begun])
        others = max(self.repetitions - whole - (1 if begun else 0), 0)
        return float(max(left, 0.0)) + others * self.preparing + self.saving

    def as_dict(self) -> dict[str, object]:
        """For JSON; :meth:`from_dict` is the way back."""
        return {
            "starting": self.starting,
            "compiling": self.compiling,
            "preparing": self.preparing,
            "iterations": list(self.iterations),
            "saving": self.saving,
            "repetitions": self.repetitions,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Estimate:
        """Read what :meth:`as_dict` wrote.

        Raises
        ------
        ValueError
            If a part is missing, or is no finite number of at least 0.
        """
        if not isinstance(values, dict) or not isinstance(values.get("iterations"), list):
            raise ValueError("This is no estimate.")
        parts = ("starting", "compiling", "preparing", "saving")
        repetitions = _amount(values.get("repetitions"))
        if not repetitions.is_integer():
            raise ValueError(f"{repetitions} is no number of repetitions.")
        return cls(
            **{name: _amount(values.get(name)) for name in parts},
            iterations=tuple(_amount(seconds) for seconds in values["iterations"]),
            repetitions=int(repetitions),
        )


def _amount(value: object) -> float:
    """A finite number of at least 0."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ValueError(f"{str(value)[:40]!r} is no number.")
    if not 0 <= value < LONGEST:
        raise ValueError(f"{str(value)[:40]} is no length of time.")
    return float(value)


def _pace(
    seconds: float,
    estimated: tuple[float, ...],
    spent: npt.NDArray[np.float64],
    planned: npt.NDArray[np.float64],
    overall: float,
) -> float:
    """How many times the estimate an iteration of ``seconds`` will take."""
    alike = [k for k, other in enumerate(estimated) if 0.8 <= other / max(seconds, 1e-9) <= 1.25]
    known = float(planned[alike].sum())
    if known > 0:
        return float(spent[alike].sum()) / known
    return float(np.sqrt(overall))


def estimate_seconds(
    settings: FitSettings,
    sizes: Sizes,
    dimension: int,
    *,
    query_sizes: Sizes | None = None,
    repetitions: int = 1,
    groups: int = 0,
) -> Estimate:
    """Estimated seconds of a fit.

    Parameters
    ----------
    settings : complete, see :meth:`FitSettings.resolved`.
    sizes : (M,) the N_i of the training signals. dimension : N.
    query_sizes : of the novel users under strong generalization, None otherwise.
    groups : of users, by their attributes.
    """
    ratings = float(sizes.sum())
    # Two cores share caches and memory.
    rate = core_rate(settings.dtype) * ThreadPool().size ** _TOGETHER
    work = _Work(settings, sizes, dimension, rate)
    evaluating = 0.0
    if query_sizes is not None:
        query = _Work(settings, query_sizes, dimension, work.rate)
        evaluating = query.fold_in()
    warm = settings.warm or 1
    iterations = []
    for t in range(1, settings.iterations + 1):
        if not settings.is_exact:
            seconds = work.map_em(first=t == 1)
        elif settings.model == "factor":
            seconds = work.factors(first=t == 1, last=t == settings.iterations)
        else:
            seconds = work.exact(t, warm, last=t == settings.iterations)
            alone = max(settings.user_start or 1, warm)
            if settings.model == "two-sided" and t > alone:
                seconds += work.users_step(first=t == alone + 1)
            if settings.average_rank:
                seconds += work.factors(first=t == 1, last=t == settings.iterations)
        iterations.append(seconds + evaluating + _ITERATION)
    numbers = float(min(len(sizes), dimension)) * dimension if work.factored else dimension**2.0
    if settings.model == "factor":
        numbers = float(dimension) * (settings.rank or 1)
    return Estimate(
        starting=STARTING + READING * ratings,
        compiling=compile_seconds(settings),
        preparing=work.preparing(groups),
        iterations=tuple(iterations),
        saving=_SAVING * numbers + 0.1,
        repetitions=repetitions,
    )


def estimate_of_fit(fit: AnyFit, repetitions: int = 1) -> Estimate:
    """The estimate of a fit that is about to begin."""
    novel = fit.query_signals is not fit.signals
    return estimate_seconds(
        fit.settings,
        fit.signals.sizes,
        fit.signals.dimension,
        query_sizes=fit.query_signals.sizes if novel else None,
        repetitions=repetitions,
        groups=len(fit.groups),
    )


class _Work:
    """Seconds of the parts of an iteration."""

    def __init__(self, settings: FitSettings, sizes: Sizes, dimension: int, rate: float) -> None:
        self.settings, self.dimension, self.rate = settings, float(dimension), rate
        self.sizes = sizes[sizes > 0].astype(np.float64)
        self.count = float(len(sizes))
        self.form = choose_form(sizes, dimension, dense=settings.is_exact)
        self.components = settings.components or 1
        self.item = np.dtype(settings.dtype).itemsize / 8
        self.squares = float((self.sizes**2).sum())
        self.ratings = float(self.sizes.sum())

    @property
    def factored(self) -> bool:
        return self.form == "factor"

    def _at(self, flops: npt.NDArray[np.float64] | float, share: float, half: float = 0.0) -> float:
        """Seconds of ``flops``, at a rate that small systems reach a part of."""
        if half:
            return float((flops * (1 + half / self.sizes)).sum()) / (self.rate * share)
        return float(np.sum(flops)) / (self.rate * share)

    def e_step(self) -> float:
        """Cholesky solves of all signals."""
        gather = self.squares * _SCATTERED * self.item
        if self.factored:
            inside = factored_flops(self.sizes, int(self.count))
            return self._at(inside, _SOLVE_SHARE, _SOLVE_HALF)
        return self._at(self.sizes**3 / 3, _SOLVE_SHARE, _SOLVE_HALF) + gather

    def inverses(self) -> float:
        """Inverses of all signals' systems, added to G."""
        moved = 2 * self.squares * _SCATTERED * self.item
        return self._at(self.sizes**3, _INVERT_SHARE, _INVERT_HALF) + moved

    def m_step(self) -> float:
        """The paper's M-step in its cheapest form."""
        m, n, passes = self.count, self.dimension, 6 * _IN_ORDER * self.item
        if self.form == "factor":
            products = self._at(3 * m * m * n, _PRODUCT_SHARE)
            return products + self._at(2 * self.ratings * m, _SPARSE_SHARE) + passes * m * n
        if self.form == "product":
            products = self._at(m * n * n, _PRODUCT_SHARE)
            return products + self._at(2 * self.ratings * n, _SPARSE_SHARE) + passes * n * n
        scattered = self.squares * _SCATTERED * self.item
        return self._at(3 * n**3, _PRODUCT_SHARE) + scattered + passes * n * n

    def first_m_step(self) -> float:
        """The first M-step, whose estimates differ from the initial value where known."""
        return self.m_step() if self.form == "congruence" else 0.5 * self.m_step()

    def exact_m_step(self) -> float:
        """Σ G Σ, the passes that mix it with the prior, and the test of the step's length."""
        n = self.dimension
        factor = self._at(n**3 / 3, _PRODUCT_SHARE)
        return self._at(3 * n**3, _PRODUCT_SHARE) + factor + 12 * _IN_ORDER * self.item * n * n

    def map_em(self, *, first: bool) -> float:
        """One iteration of MAP-EM, of every component of a mixture."""
        m_step = self.first_m_step() if first else self.m_step()
        return self.components * (m_step + self.e_step())

    def exact(self, t: int, warm: int, *, last: bool) -> float:
        """Iteration t of exact EM: the M-step, then the E-step that the next one needs."""
        m_step = self.exact_m_step() if t > warm else self.m_step()
        return m_step + (self.e_step() if t < warm or last else self.inverses())

    def users_step(self, *, first: bool) -> float:
        """The factors of the items and, but for the first time, the loadings of the users."""
        rank = float(self.settings.user_rank or 1)
        packed = rank * (rank + 1) / 2
        e_step = self._at(self.ratings * rank**2 + self.dimension * rank**3, _SOLVE_SHARE)
        m_step = self.ratings * packed * _IN_ORDER * self.item
        m_step += self._at(self.count * rank**3, _SOLVE_SHARE)
        return e_step + (0.0 if first else m_step)

    def factors(self, *, first: bool, last: bool) -> float:
        """An iteration of low rank: the users' factors, what they say of the items, and W."""
        rank = float(self.settings.rank or self.settings.average_rank or 1)
        e_step = self._at(self.ratings * rank**2 + self.count * rank**3, _SOLVE_SHARE)
        if self.settings.is_ordered:
            e_step += self.ratings * _LATENT
        added = self.ratings * (rank + 1) * (rank + 2) / 2 * _IN_ORDER * self.item
        m_step = self._at(self.dimension * rank**3, _SOLVE_SHARE)
        return e_step + (0.0 if last else added) + (0.0 if first else m_step)

    def fold_in(self) -> float:
        """What novel users' ratings say, once an iteration."""
        if self.settings.model == "factor":
            return self.factors(first=True, last=True)
        return self.inverses() if self.settings.is_ordered else self.e_step()

    def preparing(self, groups: int) -> float:
        """The split, the first state, and the prior of exact EM."""
        seconds = 0.1 + 4e-7 * self.ratings
        if self.settings.is_exact:
            directions = (self.settings.rank or 60) + (self.settings.user_rank or 0)
            directions += self.settings.average_rank
            seconds += directions * 20 * self.ratings * 2e-9
            if self.settings.model != "factor":
                seconds += self.dimension**2 * 2 * _IN_ORDER
        return seconds + groups * self.ratings * 1e-9

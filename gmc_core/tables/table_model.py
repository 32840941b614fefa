"""The Gaussian of a plain table: rows are cases, columns are quantities in any units.

Each column is standardised with the mean and the standard deviation of its given
entries, so that one ε suits all of them and the initial value of a blank is its
column's mean, 0. A column without entries, or one whose entries are all equal, says
nothing of the others and stays outside the Gaussian.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gmc_core.base.errors import ConfigError, NotPositiveDefiniteError, NumericalError
from gmc_core.fitting.cost import check_memory, estimate
from gmc_core.gaussian.covariance import FactoredCovariance
from gmc_core.gaussian.em import EmState, EmStep, initial_state, map_em
from gmc_core.gaussian.estep import e_step, predict_pairs
from gmc_core.gaussian.exact import exact_em
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.settings import FitSettings, Precision
from gmc_core.gaussian.signals import Signals
from gmc_core.model.completion import Floats, estimates

Mask = npt.NDArray[np.bool_]
Method = Literal["paper", "exact"]
METHODS: tuple[Method, ...] = ("paper", "exact")

# As shares of a column's variance, large to small: each fit starts from the one before.
EPSILONS: dict[Method, tuple[float, ...]] = {
    "paper": (1.0, 0.5, 0.2, 0.1, 0.03),
    "exact": (0.5, 0.2, 0.1, 0.03, 0.01),
}
HIDDEN_SHARE = 0.1
# Below some hundred hidden entries one draw does not tell one ε from the next.
HIDDEN_WANTED, MOST_DRAWS = 1000, 5
FEWEST_ENTRIES = 50
FIRST_ITERATIONS, MORE_ITERATIONS = 10, 5


@dataclass(frozen=True, eq=False)
class Standards:
    """How columns are standardised; all arrays (columns,).

    means, scales : mean and standard deviation of the given entries; the scale is 1
        where all are equal, both are NaN where there is none.
    constant : whether all given entries are equal. empty : whether there is none.
    """

    means: Floats
    scales: Floats
    constant: Mask
    empty: Mask

    @classmethod
    def of(cls, values: Floats) -> Standards:
        """Of a table (rows, columns) with NaN where it is blank."""
        given = ~np.isnan(values)
        counts = given.sum(axis=0)
        empty = counts == 0
        # Sums of squares would overflow for entries beyond 1e154.
        largest = np.where(given, np.abs(values), 0.0).max(axis=0, initial=0.0)
        unit = np.where(largest > 0, largest, 1.0)
        scaled = np.where(given, values / unit, 0.0)
        number = np.maximum(counts, 1)
        means = scaled.sum(axis=0) / number
        away = np.where(given, scaled - means, 0.0)
        scales = np.sqrt((away**2).sum(axis=0) / number) * unit
        low = np.where(given, values, np.inf).min(axis=0, initial=np.inf)
        high = np.where(given, values, -np.inf).max(axis=0, initial=-np.inf)
        # Entries that differ by less than the precision have no spread to divide by.
        constant = ~empty & ((low == high) | ~(scales > 0))
        return cls(
            means=np.where(empty, np.nan, np.where(low == high, low, means * unit)),
            scales=np.where(empty, np.nan, np.where(constant, 1.0, scales)),
            constant=constant,
            empty=empty,
        )

    @cached_property
    def informative(self) -> npt.NDArray[np.int64]:
        """(n,) positions of the columns that the Gaussian describes."""
        return np.flatnonzero(~self.constant & ~self.empty)

    def apply(self, values: Floats) -> Floats:
        """(rows, n) the informative columns of a table in standard deviations from their means.

        values : (rows, all columns), NaN where one is missing.
        """
        own = self.informative
        return (values[:, own] - self.means[own]) / self.scales[own]


@dataclass(frozen=True, eq=False)
class TableModel:
    """What a fit learned of a table.

    standards : of the training table's columns.
    gaussian : of the standardised informative columns.
    noise : Σ_w in the same units.
    log_likelihoods : of the standardised given entries, one per iteration.
    """

    standards: Standards
    gaussian: Gaussian
    noise: Noise
    log_likelihoods: tuple[float, ...]

    def fill(self, values: Floats, *, sd: bool, team: ThreadPool) -> tuple[Floats, Floats | None]:
        """A table without blanks, and the posterior standard deviations.

        Parameters
        ----------
        values : (rows, columns) with NaN where blank; the columns of the training table.
        sd : whether the standard deviations are wanted.

        Returns
        -------
        (rows, columns) in the table's units, given entries as they are. The standard
        deviation of a given entry and of a constant column is 0. Of a column without
        training entries nothing is known: its blanks stay NaN in both.
        """
        own, given = self.standards.informative, ~np.isnan(values)
        result = np.broadcast_to(self.standards.means, values.shape).copy()
        deviations = None
        signals = Signals.of_table(self.standards.apply(values))
        standard, variances = estimates(signals, self.gaussian, self.noise, sd=sd, team=team)
        result[:, own] += standard * self.standards.scales[own]
        result[given] = values[given]
        if variances is not None:
            deviations = np.zeros(values.shape)
            deviations[:, own] = np.sqrt(variances) * self.standards.scales[own]
            deviations[:, self.standards.empty] = np.nan
            deviations[given] = 0.0
        return result, deviations

    def row_log_likelihoods(self, values: Floats, team: ThreadPool) -> Floats:
        """(rows,) log density of each row's given entries, in the table's units.

        Constant and empty columns have no density and are left out; a row without
        other entries has 0.
        """
        signals = Signals.of_table(self.standards.apply(values))
        found = e_step(signals, self.gaussian, self.noise, team)
        logs = np.log(2 * np.pi) + 2 * np.log(self.standards.scales[self.standards.informative])
        rows = np.repeat(np.arange(signals.count), signals.sizes)
        units = np.bincount(rows, weights=logs[signals.indices], minlength=signals.count)
        return -0.5 * (found.quadratic + found.log_det + units)

    def mean_and_covariance(self) -> tuple[Floats, Floats]:
        """μ (columns,) and Σ (columns, columns) in the table's units.

        0 for a constant column's covariances, NaN for those of an empty one.
        """
        standards, own = self.standards, self.standards.informative
        mean = standards.means.copy()
        mean[own] += self.gaussian.mean * standards.scales[own]
        covariance = np.zeros((len(mean), len(mean)))
        every = np.arange(len(own))
        inner = self.gaussian.covariance.submatrix(every, every)
        covariance[np.ix_(own, own)] = inner * np.outer(
            standards.scales[own], standards.scales[own]
        )
        covariance[standards.empty, :] = covariance[:, standards.empty] = np.nan
        return mean, covariance

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        """(count, columns) new rows drawn from the model, noise included."""
        own = self.standards.informative
        result = np.broadcast_to(self.standards.means, (count, len(self.standards.means))).copy()
        latent, noise = self._draw(count, rng)
        result[:, own] += (latent + noise) * self.standards.scales[own]
        return result

    def sample_blanks(self, values: Floats, rng: np.random.Generator, team: ThreadPool) -> Floats:
        """(rows, columns) a table whose blanks are drawn from their distribution given the rest.

        values : (rows, columns), NaN where one is missing.

        A draw f, w of the model, moved by Σ[:, o] K⁻¹ (y - f[o] - w[o]), is a draw of
        the posterior (Matheron's rule). What is filled in is an observation, noise
        included, as the standard deviations are.
        """
        own, given = self.standards.informative, ~np.isnan(values)
        latent, noise = self._draw(len(values), rng)
        apart = Signals.of_table(self.standards.apply(values) - latent - noise)
        centred = Gaussian(np.zeros(len(own)), self.gaussian.covariance)
        moved, _ = estimates(apart, centred, self.noise, sd=False, team=team)
        result = np.broadcast_to(self.standards.means, values.shape).copy()
        result[:, own] += (latent + noise + moved) * self.standards.scales[own]
        result[given] = values[given]
        return result

    def _draw(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Independent standardised signals and their noise, each (count, informative)."""
        covariance, size = self.gaussian.covariance, self.gaussian.dimension
        normal = rng.standard_normal((count, size))
        if isinstance(covariance, FactoredCovariance):
            factor = covariance.factor.astype(np.float64)
            deviations = normal * np.sqrt(covariance.epsilon)
            deviations += rng.standard_normal((count, factor.shape[1])) @ factor.T
        else:
            deviations = normal @ _cholesky(covariance.matrix.astype(np.float64)).T
        spread = np.sqrt(self.noise.variances(np.arange(size)))
        noise = rng.standard_normal((count, size)) * spread
        return self.gaussian.mean + deviations, noise


@dataclass(frozen=True)
class EpsilonChoice:
    """An ε chosen on entries hidden from the fit.

    epsilon : the best. tried : all ε. errors : root mean squared error of the hidden
        entries for each, in standard deviations of their columns; infinite where the
        fit broke down. Both are empty if there were too few entries to hide any.
    hidden : number of entries that each error rests on.
    """

    epsilon: float
    tried: tuple[float, ...]
    errors: tuple[float, ...]
    hidden: int


def fit_table(
    values: Floats,
    *,
    epsilon: float,
    iterations: int,
    noise: float = 0.0,
    method: Method = "paper",
    dtype: Precision = "float64",
    tol: float = 0.0,
    team: ThreadPool | None = None,
) -> TableModel:
    """Fit the Gaussian to the rows of a table.

    Parameters
    ----------
    values : (rows, columns) with NaN where blank. Rows without any entry are left out.
    epsilon : ε of equation (7), as a share of each column's variance.
    iterations : L; 0 is the model of independent columns.
    noise : variance of an entry's noise, in the same units.
    method : "paper", its MAP-EM, or "exact", EM with the posterior covariance.
    tol : end earlier, once ‖Σ_t - Σ_{t-1}‖ ≤ tol ‖Σ_{t-1}‖; 0 never does.

    Raises
    ------
    ConfigError, NumericalError, ResourceError
        As for a fit.
    """
    check_settings(epsilon, iterations, noise, method, dtype)
    team = team or ThreadPool()
    standards = Standards.of(values)
    signals = _training_signals(standards.apply(values))
    state, likelihoods = initial_state(signals, 0.0, dtype), []
    sigma_w = Noise.of(noise, signals.dimension)
    if signals.count and signals.dimension:
        _check_room(signals, method, dtype, team)
        for step in _steps(signals, state, epsilon, iterations, sigma_w, method, team):
            state = step.state
            likelihoods.append(step.log_likelihood)
            if step.covariance_change is not None and step.covariance_change <= tol:
                break
    return TableModel(standards, state.gaussian, sigma_w, tuple(likelihoods))


def choose_epsilon(
    values: Floats,
    rng: np.random.Generator,
    *,
    noise: float = 0.0,
    method: Method = "paper",
    dtype: Precision = "float64",
    tried: Sequence[float] | None = None,
    default: float,
    team: ThreadPool | None = None,
) -> EpsilonChoice:
    """The ε that predicts hidden entries of a table best.

    A tenth of the given entries is hidden, in small tables several times over, and
    predicted from the rest. Each ε continues from the fit of the next larger one, so
    that all together cost little more than one fit.

    Parameters
    ----------
    values, noise, method, dtype : as for :func:`fit_table`.
    tried : candidates; default :data:`EPSILONS`.
    default : ε for a table with too few entries to hide any.

    Raises
    ------
    ConfigError, ResourceError
        As for :func:`fit_table`.
    """
    check_settings(default, 1, noise, method, dtype)
    team = team or ThreadPool()
    grid = sorted(EPSILONS[method] if tried is None else tried, reverse=True)
    standards = Standards.of(values)
    standard = standards.apply(values)
    rows, columns = np.nonzero(~np.isnan(standard))
    if len(rows) < FEWEST_ENTRIES or not grid:
        return EpsilonChoice(default, (), (), 0)
    share = max(1, int(HIDDEN_SHARE * len(rows)))
    squares, hidden = np.zeros(len(grid)), 0
    for _ in range(min(MOST_DRAWS, -(-HIDDEN_WANTED // share))):
        chosen = rng.choice(len(rows), share, replace=False)
        found, count = _hidden_errors(
            standard, rows[chosen], columns[chosen], grid, noise, method, dtype, team
        )
        squares += found
        hidden += count
    if not hidden or not np.isfinite(squares).any():
        return EpsilonChoice(default, (), (), 0)
    errors = np.sqrt(squares / hidden)
    return EpsilonChoice(grid[int(np.argmin(errors))], tuple(grid), tuple(errors.tolist()), hidden)


def _hidden_errors(
    standard: Floats,
    rows: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int64],
    grid: Sequence[float],
    noise: float,
    method: Method,
    dtype: Precision,
    team: ThreadPool,
) -> tuple[Floats, int]:
    """Sum of squared errors of some hidden entries for each ε, and their number."""
    rest = standard.copy()
    rest[rows, columns] = np.nan
    again = Standards.of(rest)
    place = np.full(standard.shape[1], -1)
    place[again.informative] = np.arange(len(again.informative))
    usable = place[columns] >= 0
    rows, columns = rows[usable], columns[usable]
    # With all rows, so that hidden entries are found by their row.
    signals = Signals.of_table(again.apply(rest))
    _check_room(signals, method, dtype, team)
    sigma_w = Noise.of(noise, signals.dimension)
    state = initial_state(signals, 0.0, dtype)
    squares = np.full(len(grid), np.inf)
    if not len(rows):
        return squares, 0
    for at, epsilon in enumerate(grid):
        last = state.iteration + (MORE_ITERATIONS if at else FIRST_ITERATIONS)
        try:
            for step in _steps(signals, state, epsilon, last, sigma_w, method, team):
                state = step.state
        except NumericalError:
            break  # a smaller ε breaks down as well
        found = predict_pairs(
            signals, state.weights, state.gaussian, rows, place[columns], team
        )  # fmt: skip
        values = found * again.scales[columns] + again.means[columns]
        squares[at] = float(((values - standard[rows, columns]) ** 2).sum())
    return squares, len(rows)


def _check_room(signals: Signals, method: Method, dtype: Precision, team: ThreadPool) -> None:
    """Raise ResourceError for a table with too many columns for the memory."""
    exact, sizes = method == "exact", signals.sizes
    cost = estimate(sizes, signals.dimension, dtype, exact=exact, threads=team.size)
    check_memory(cost, low_rank=False)


def _steps(
    signals: Signals,
    start: EmState,
    epsilon: float,
    iterations: int,
    noise: Noise,
    method: Method,
    team: ThreadPool,
) -> Iterator[EmStep]:
    """The iterations of either method."""
    run = map_em if method == "paper" else exact_em
    return run(signals, start, epsilon=epsilon, iterations=iterations, noise=noise, team=team)


def check_settings(epsilon: float, iterations: int, noise: float, method: str, dtype: str) -> None:
    """Raise ConfigError for settings without a meaning."""
    if method not in METHODS:
        raise ConfigError(f"The method is {' or '.join(METHODS)}, not {method!r}.")
    FitSettings(epsilon=epsilon, iterations=iterations, noise=noise, dtype=dtype)  # type: ignore[arg-type]


def _training_signals(standard: Floats) -> Signals:
    """The rows that have entries: one without says nothing of how columns vary together."""
    return Signals.of_table(standard[~np.isnan(standard).all(axis=1)])


def _cholesky(matrix: Floats) -> Floats:
    """Lower factor of Σ."""
    try:
        return scipy.linalg.cholesky(matrix, lower=True)
    except np.linalg.LinAlgError:
        raise NotPositiveDefiniteError(
            "The model's covariance is singular, so nothing can be drawn from it; fit with a "
            "larger ε."
        ) from None

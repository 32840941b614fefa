"""Small planted data for the lesson, and the algorithm on them in half-steps.

Everything that is learned or filled in comes from the functions that fit real data
(:func:`gmc_core.gaussian.em.map_em`, :func:`gmc_core.gaussian.exact.exact_em`,
:func:`gmc_core.gaussian.estep.e_step`,
:class:`gmc_core.model.gaussian_model.GaussianModel`); this module owns the planted truth, and
cuts iterations in two so that one can step through them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from gmc_core.base.errors import ConfigError, NumericalError
from gmc_core.data.ratings import ItemInfo, RatingScale, Vocabulary, frozen
from gmc_core.gaussian.covariance import DenseCovariance
from gmc_core.gaussian.em import EmState, EmStep, initial_state, map_em
from gmc_core.gaussian.estep import e_step
from gmc_core.gaussian.exact import exact_em
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.settings import PAPER_INITIAL, PAPER_ITERATIONS, FitSettings
from gmc_core.gaussian.signals import Layout, Signals
from gmc_core.model.gaussian_model import GaussianModel

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Method = Literal["paper", "exact"]
StepKind = Literal["start", "M", "E"]

SCALE = RatingScale(1.0, 5.0, None)
PAIR = ("Star Harbour", "Moon Patrol")
PAIR_MEAN = (3.2, 3.0)
# Invented titles; each belongs to the taste that it stands under, and those of
# ``MIXED`` to a second one as well.
TASTES: dict[str, tuple[str, ...]] = {
    "space": (
        *("Star Harbour", "Moon Patrol", "Red Orbit", "The Long Signal"),
        *("Comet Riders", "Silent Dock", "Zero Tide"),
    ),
    "love": (
        *("Letters in May", "The Tea House", "Two Umbrellas", "Late Train Home"),
        *("Paper Hearts", "A Summer Apart", "The Florist"),
    ),
    "crime": (
        *("Cold Ledger", "The Ninth Witness", "Harbour Knives", "Blind Alibi"),
        *("Night Shift", "The Quiet Cell"),
    ),
}
MIXED = {"Silent Dock": "crime", "Late Train Home": "crime", "Night Shift": "love"}
_COMMON, _OWN, _SECOND, _RESIDUAL = 0.35, 0.8, 0.5, 0.2


@dataclass(frozen=True, eq=False)
class Planted:
    """Signals drawn from a known Gaussian, of which only some entries are seen.

    names : (N,) of the items. truth : the (μ, Σ) drawn from.
    complete : (M, N) the noise-free signals f, which no method sees.
    ratings : (M, N) f + w, the ratings that would be given. known : (M, N) the mask H.
    noise : variance of w, which the methods are told.
    """

    names: tuple[str, ...]
    truth: Gaussian
    complete: Floats
    ratings: Floats
    known: Mask
    noise: float

    @cached_property
    def signals(self) -> Signals:
        """The known entries as the core takes them, rows as signals."""
        return Signals.of_table(np.where(self.known, self.ratings, np.nan))

    def error(self, estimates: Floats) -> float:
        """RMSE at the entries that nobody rated; NaN if there are none. estimates : (M, N)."""
        missing = ~self.known
        if not missing.any():
            return float("nan")
        return float(np.sqrt(np.mean((estimates - self.complete)[missing] ** 2)))


@dataclass(frozen=True, eq=False)
class Frame:
    """The state after one half-step.

    kind : "start" (unknown entries hold the initial value), "M" or "E".
    iteration : t, 0 at the start. gaussian : (μ_t, Σ_t), None at the start.
    estimates : (M, N) the f̃: after "M" still those that the M-step averaged.
    log_likelihood : of the observed ratings under (μ_t, Σ_t), None at the start.
    """

    kind: StepKind
    iteration: int
    gaussian: Gaussian | None
    estimates: Floats
    log_likelihood: float | None


@dataclass(frozen=True, eq=False)
class Story:
    """All half-steps of a run; ``problem`` says why it ended early, "" if it did not."""

    frames: tuple[Frame, ...]
    problem: str

    @property
    def last(self) -> Frame:
        """Where it ended."""
        return self.frames[-1]

    @property
    def gaussians(self) -> list[Gaussian]:
        """(μ_t, Σ_t) for t = 1 …"""
        return [f.gaussian for f in self.frames if f.kind == "E" and f.gaussian is not None]


@dataclass(frozen=True)
class FillPoint:
    """What is reached at one fill ratio: RMSE at the unknown entries.

    learned : of the fit, NaN where it broke down. best : with the planted (μ, Σ), which
        no method can beat on average. means : with the means of the items' ratings.
    """

    fill: float
    learned: float
    best: float
    means: float


def matrix(gaussian: Gaussian) -> Floats:
    """Σ as an array (N, N)."""
    everything = np.arange(gaussian.dimension)
    return gaussian.covariance.submatrix(everything, everything)


def eigenvalues(gaussian: Gaussian) -> Floats:
    """(N,) the variances of Σ along its axes, rising."""
    values: Floats = np.linalg.eigvalsh(matrix(gaussian)).astype(np.float64)
    return values


def pair_gaussian(
    correlation: float,
    deviations: tuple[float, float] = (1.0, 1.0),
    mean: tuple[float, float] = PAIR_MEAN,
) -> Gaussian:
    """The Gaussian of two movies.

    Raises
    ------
    ConfigError
        If the correlation is not inside -1..1, or a standard deviation not positive.
    """
    if not -1 < correlation < 1:
        raise ConfigError(f"A correlation lies between -1 and 1, not at {correlation}.")
    if not min(deviations) > 0:
        raise ConfigError(f"A standard deviation must be positive, not {min(deviations)}.")
    covariance = np.outer(deviations, deviations) * [[1.0, correlation], [correlation, 1.0]]
    return Gaussian(frozen(np.array(mean)), DenseCovariance(frozen(covariance)))


def two_movies(
    users: int, both: float, correlation: float, noise: float = 0.0, seed: int = 0
) -> Planted:
    """A cloud of users and two movies.

    both : share in 0..1 of users that rated both; the others rated one, in turn the
        first and the second. Where the shares differ only, so do the masks.
    """
    _check_share("share of users who rated both", both)
    truth = pair_gaussian(correlation)
    known = np.ones((users, 2), bool)
    single = np.arange(round(both * users), users)
    known[single, (single - len(known)) % 2] = False
    return _draw(PAIR, truth, known, noise, seed)


def changed(
    planted: Planted, changes: Mapping[int, Sequence[float] | None]
) -> tuple[Planted, tuple[int, ...]]:
    """The same table with users put elsewhere, taken away or added.

    changes : user to the ratings (N,) that they give now, NaN where these stay as they are, or
        None for a user who is taken away. Users from M on are added, with every entry known.

    Returns
    -------
    planted : with the changes; signals change with the ratings where an entry is known, and
        stay hidden, as they were, where it is not.
    users : (M',) the number that each row of it had, or has been given.

    Raises
    ------
    ConfigError
        If a user is named who is not there, an added one has an unknown rating, or nobody is left.
    """
    complete, ratings = planted.complete.copy(), planted.ratings.copy()
    known, users = planted.known.copy(), list(range(len(ratings)))
    for user, given in sorted(changes.items()):
        if user < 0 or (given is None and user >= len(planted.ratings)):
            raise ConfigError(f"There is no user {user}; they count from 0 to {len(ratings) - 1}.")
        if given is None:
            continue
        row = np.asarray(given, np.float64)
        if user >= len(planted.ratings):
            if not np.isfinite(row).all():
                raise ConfigError(f"The added user {user} needs a rating of every movie.")
            complete, ratings = np.vstack([complete, row]), np.vstack([ratings, row])
            known = np.vstack([known, np.ones(len(row), bool)])
            users.append(user)
        else:
            new = np.isfinite(row) & known[user]
            complete[user, new] = ratings[user, new] = row[new]
    kept = np.array([changes.get(user, ()) is not None for user in users])
    if not kept.any():
        raise ConfigError("All users are taken away: at least one has to stay.")
    return (
        Planted(
            planted.names, planted.truth, frozen(complete[kept]), frozen(ratings[kept]),
            frozen(known[kept]), planted.noise,
        ),
        tuple(user for user, stays in zip(users, kept, strict=True) if stays),
    )  # fmt: skip


def gaussian_of(points: Floats) -> Gaussian:
    """The mean of points (M, N) and their covariance, 1/M Σ (f − μ)(f − μ)ᵀ."""
    mean = points.mean(axis=0)
    off = points - mean
    return Gaussian(frozen(mean), DenseCovariance(frozen(off.T @ off / len(points))))


def carried(points: Floats, source: Gaussian, target: Gaussian) -> Floats:
    """Points (M, N) moved as one Gaussian turns into another: f ↦ μ' + L' L⁻¹ (f − μ).

    L Lᵀ = Σ, L' L'ᵀ = Σ'. Points with mean and covariance of ``source`` then have those of
    ``target``; and back again they are where they were.
    """
    before, after = (np.linalg.cholesky(matrix(one)) for one in (source, target))
    standard = solve_triangular(before, (points - source.mean).T, lower=True)
    moved: Floats = target.mean + (after @ standard).T
    return moved


def taste_names() -> tuple[str, ...]:
    """The 20 titles, taste after taste."""
    return tuple(name for names in TASTES.values() for name in names)


def taste_middles() -> dict[str, str]:
    """The title in the middle of each taste, to the taste's name."""
    return {names[len(names) // 2]: taste for taste, names in TASTES.items()}


def taste_gaussian() -> Gaussian:
    """The planted Gaussian of 20 titles: a factor for all, one for each of three tastes,
    and a variance of each title's own."""
    names, tastes = taste_names(), list(TASTES)
    loadings = np.zeros((len(names), 1 + len(tastes)))
    loadings[:, 0] = _COMMON
    for column, titles in enumerate(TASTES.values(), start=1):
        for name in titles:
            loadings[names.index(name), column] = _OWN
    for name, taste in MIXED.items():
        loadings[names.index(name), 1 + tastes.index(taste)] = _SECOND
    covariance = loadings @ loadings.T + _RESIDUAL * np.eye(len(names))
    mean = 3.0 + 0.6 * np.sin(1.7 * np.arange(len(names)))
    return Gaussian(frozen(mean), DenseCovariance(frozen(covariance)))


def twenty_movies(users: int, fill: float, seed: int = 0) -> Planted:
    """Users and the 20 titles; each entry is known with probability ``fill`` in 0..1.

    With the same seed the known entries of a smaller fill ratio are among those of a
    larger one.
    """
    _check_share("fill ratio", fill)
    rng = np.random.default_rng([seed, 1])
    known = rng.random((users, len(taste_names()))) < fill
    return _draw(taste_names(), taste_gaussian(), known, 0.0, seed)


def _draw(names: tuple[str, ...], truth: Gaussian, known: Mask, noise: float, seed: int) -> Planted:
    rng = np.random.default_rng([seed, 0])
    factor = np.linalg.cholesky(matrix(truth))
    complete = truth.mean + rng.standard_normal(known.shape) @ factor.T
    ratings = complete + np.sqrt(noise) * rng.standard_normal(known.shape)
    return Planted(names, truth, frozen(complete), frozen(ratings), frozen(known), noise)


def _check_share(what: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise ConfigError(f"The {what} lies between 0 and 1, not at {share}.")


# The algorithm -----------------------------------------------------------------------


def estimates_of(signals: Signals, state: EmState) -> Floats:
    """All f̃_i = μ + Σ[:, o] a_i of a state as an array (M, N)."""
    weights = np.zeros((signals.count, signals.dimension))
    weights[np.repeat(np.arange(signals.count), signals.sizes), signals.indices] = state.weights
    return state.gaussian.mean + weights @ matrix(state.gaussian)


def tell(
    planted: Planted, method: Method, epsilon: float, iterations: int = PAPER_ITERATIONS
) -> Story:
    """Run the paper's MAP-EM or exact EM and keep every half-step.

    A run that loses positive definiteness ends there, with what was reached and the
    core's sentence.
    """
    signals = planted.signals
    start = initial_state(signals, PAPER_INITIAL, np.float64)
    frames = [Frame("start", 0, None, estimates_of(signals, start), None)]
    problem = ""
    try:
        for step in _steps(signals, start, method, epsilon, iterations, planted.noise):
            state, before = step.state, frames[-1].estimates
            shared = (state.iteration, state.gaussian)
            frames.append(Frame("M", *shared, before, step.log_likelihood))
            after = estimates_of(signals, state)
            frames.append(Frame("E", *shared, after, step.log_likelihood))
    except NumericalError as error:
        problem = str(error)
    return Story(tuple(frames), problem)


def _steps(
    signals: Signals, start: EmState, method: Method, epsilon: float, iterations: int, noise: float
) -> Iterator[EmStep]:
    run = map_em if method == "paper" else exact_em
    # One thread: starting a second one takes longer than all of the arithmetic.
    return run(
        signals,
        start,
        epsilon=epsilon,
        iterations=iterations,
        noise=Noise.of(noise, signals.dimension),
        team=ThreadPool(1),
    )


def fills(planted: Planted, gaussian: Gaussian) -> Floats:
    """(M, N) the estimates of one E-step under ``gaussian``."""
    noise = Noise.of(planted.noise, gaussian.dimension)
    weights = e_step(planted.signals, gaussian, noise, ThreadPool(1)).weights
    return estimates_of(planted.signals, EmState(1, gaussian, weights))


def item_means(planted: Planted) -> Floats:
    """(M, N) the mean of each item's known ratings, the initial value where none is."""
    counts = planted.known.sum(axis=0)
    sums = np.where(planted.known, planted.ratings, 0.0).sum(axis=0)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), PAPER_INITIAL)
    return np.broadcast_to(means, planted.known.shape)


def error_by_fill(
    users: int, fill_ratios: Sequence[float], epsilon: float, seed: int = 0
) -> list[FillPoint]:
    """What the paper's ten iterations reach at each fill ratio, on the same users."""
    points = []
    for fill in fill_ratios:
        planted = twenty_movies(users, fill, seed)
        story = tell(planted, "paper", epsilon)
        learned = float("nan") if story.problem else planted.error(story.last.estimates)
        best = planted.error(fills(planted, planted.truth))
        points.append(FillPoint(fill, learned, best, planted.error(item_means(planted))))
    return points


def relative_error(learned: Gaussian, truth: Gaussian) -> float:
    """‖Σ learned - Σ true‖ / ‖Σ true‖ (Frobenius)."""
    true = matrix(truth)
    return float(np.linalg.norm(matrix(learned) - true) / np.linalg.norm(true))


def taste_contrast(gaussian: Gaussian) -> tuple[float, float]:
    """Mean covariance between two titles of one taste, and of different tastes."""
    taste = np.repeat(np.arange(len(TASTES)), [len(titles) for titles in TASTES.values()])
    same = taste[:, None] == taste
    values, off = matrix(gaussian), ~np.eye(len(taste), dtype=bool)
    return float(values[same & off].mean()), float(values[~same].mean())


def model_of(gaussian: Gaussian, names: Sequence[str], noise: float = 0.0) -> GaussianModel:
    """A model of these titles that folds in users, without training data.

    noise : variance of Σ_w. Ratings are any numbers in 1..5.
    """
    count = gaussian.dimension
    return GaussianModel(
        gaussian=gaussian,
        noise=Noise.of(noise, count),
        layout=Layout("rows", 0, count),
        items=Vocabulary(np.arange(count), "item"),
        item_info=ItemInfo(tuple(names), ((),) * count, frozen(np.full(count, np.nan))),
        scale=SCALE,
        ratings=None,
        settings=FitSettings(noise=noise),
        iteration=0,
        data_name="lesson",
        data_sha256="",
        licence="",
        citation="",
    )


# Cost ----------------------------------------------------------------------------------


def cholesky_of(gaussian: Gaussian, count: int) -> tuple[Floats, Floats]:
    """K = Σ[o, o] of somebody who rated ``count`` items spread over the catalogue, and L
    with L Lᵀ = K, both (count, count)."""
    items = np.unique(np.linspace(0, gaussian.dimension - 1, count).astype(int))
    kernel = gaussian.covariance.submatrix(items, items)
    return kernel, np.linalg.cholesky(kernel).astype(np.float64)


def work_shares(sizes: npt.NDArray[np.integer]) -> tuple[Floats, Floats]:
    """Who causes the E-step's flops, from the heaviest user down.

    Returns
    -------
    users : (M + 1,) share of the users counted so far. work : (M + 1,) their share of
        Σ N_i³.

    Raises
    ------
    ConfigError
        If nobody has rated anything.
    """
    cubes = np.sort(sizes.astype(np.float64) ** 3)[::-1]
    if not cubes.sum() > 0:
        raise ConfigError("There are no ratings, so there is no work to share out.")
    work = np.concatenate([[0.0], np.cumsum(cubes) / cubes.sum()])
    return np.linspace(0, 1, len(work)), work

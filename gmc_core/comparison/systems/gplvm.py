"""GPLVM: matrix factorisation with a Gaussian process, on this package's own E-step.

Lawrence and Urtasun, "Non-linear Matrix Factorization with Gaussian Processes" (ICML 2009). Items
are points x_j of q coordinates, and a user's ratings, less the items' means, a Gaussian process
over them, independent from user to user:

    y_i ~ N(m[o], K[o, o] + σ² Id),   K_jl = σ_f² exp(-γ/2 ‖x_j - x_l‖²) + σ_b²,   x_j ~ N(0, Id)

That is the paper's Gaussian with a structured covariance, Σ = K(X, X): a user is one signal, the
log-likelihood comes with the E-step, and exact EM's G (:mod:`gmc_core.gaussian.exact`) is its
gradient, ∂ log L / ∂Σ = ½ M G. With P = ½ M G, B = P ∘ (K - σ_b²) and r = B 1,

    ∂ log L/∂X = -2γ (diag(r) X - B X),   ∂ log L/∂σ² = tr P,   ∂ log L/∂σ_b² = 1ᵀP 1

L-BFGS maximises log L - ½ ‖X‖² over X and the logs of σ² and σ_b², for a few steps from the largest
singular vectors of the residuals of user and item biases; the paper takes one user at a time in a
stochastic gradient, for a given number of passes. A novel user is one E-step.

γ and σ_f² are given (a setting, and a share of the ratings' variance) and not learned with X, as
in the paper: larger X, γ and σ_f² evade the prior of X, and the fit follows the noise.

Assumed: m_j is the mean of the item's training ratings and of five at the overall mean, and one
scale holds for all items (the published code standardises each item, test ratings included).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from gmc_core.base.errors import ConfigError
from gmc_core.comparison.systems.system import SMOOTHING, Floats, System, descend, generator
from gmc_core.data.ratings import Ratings
from gmc_core.gaussian.covariance import DenseCovariance
from gmc_core.gaussian.estep import predict_pairs
from gmc_core.gaussian.exact import exact_e_step
from gmc_core.gaussian.folding import fold_in
from gmc_core.gaussian.linalg import products
from gmc_core.gaussian.linalg.threads import ThreadPool, spans
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.signals import Layout, Signals
from gmc_core.protocol.baselines import fit_biases
from gmc_core.protocol.splits import Split

# σ_f² as a share of the variance of ratings less the items' means, and the least noise.
_SIGNAL, _LEAST_NOISE = 0.3, 0.01
_BLOCK = 256


@dataclass(frozen=True)
class Gplvm(System):
    """A Gaussian whose covariance is a kernel of the items' places.

    settings : (q, γ) to choose from, q ≥ 1 and γ > 0. One alone, as a fit takes as long as one of
        exact EM. iterations : of L-BFGS, 1 or more.
    """

    name: str = "gplvm"
    label: str = "GPLVM"
    seed: int = 0
    settings: tuple[tuple[int, float], ...] = ((5, 0.03),)
    iterations: int = 20
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        valid = [count >= 1 and sharpness > 0 for count, sharpness in self.settings]
        if not valid or not all(valid) or self.iterations < 1:
            raise ConfigError("GPLVM takes at least one dimension, a γ above 0 and one iteration.")

    @property
    def candidates(self) -> Sequence[tuple[int, float]]:
        """Each (q, γ)."""
        return self.settings

    def attempt(self, split: Split, setting: tuple[int, float], team: ThreadPool) -> Floats:
        """(n_test,) conditional means."""
        train = split.train
        process = ItemProcess(train, *setting)
        found = descend(
            lambda point: process.objective(point, team),
            process.start(split, self.seed), self.iterations, team, process.lowest,
        )  # fmt: skip
        gaussian, noise = process.gaussian(found, team)
        signals = Signals.of(split.known, Layout("rows", split.known.n_users, train.n_items))
        weights = fold_in(signals, gaussian, noise, team)
        return predict_pairs(signals, weights, gaussian, split.test_users, split.test_items, team)


class ItemProcess:
    """The posterior of items' places, given training ratings.

    A point is X (N q,) and the logs of σ² and σ_b².

    means : m (N,). lowest : (N q + 2,) bounds of a point.
    """

    def __init__(self, train: Ratings, dimensions: int, sharpness: float) -> None:
        self.dimensions, self.sharpness = dimensions, sharpness
        overall = float(train.values.mean())
        totals = np.bincount(train.indices, train.values - overall, train.n_items)
        self.means = overall + totals / (train.item_counts + SMOOTHING)
        self._signals = Signals.of(train, Layout("rows", train.n_users, train.n_items))
        self.variance = max(float((train.values - self.means[train.indices]).var()), 1e-12)
        self.lowest = np.full(train.n_items * dimensions + 2, -np.inf)
        self.lowest[-2] = np.log(_LEAST_NOISE * self.variance)

    def start(self, split: Split, seed: int) -> Floats:
        """A point: singular vectors, and what is left of the variance as noise and bias."""
        train = split.train
        residuals, _ = fit_biases(split).residuals(split)
        table = sparse.csr_matrix(
            (residuals, train.indices, train.indptr), shape=(train.n_users, train.n_items)
        )
        random = generator(seed)
        places = random.normal(0, 1e-3, (train.n_items, self.dimensions))
        count = min(self.dimensions, min(table.shape) - 1)
        if count > 0 and table.nnz:
            first = random.standard_normal(min(table.shape))
            _, values, vectors = svds(table, k=count, v0=first)
            places[:, :count] += vectors.T * values
            places /= max(float(places.std()), 1e-12)
        left = self.variance * (1 - _SIGNAL)
        return np.concatenate([places.ravel(), np.log([0.7 * left, 0.3 * left])])

    def gaussian(self, point: Floats, team: ThreadPool) -> tuple[Gaussian, Noise]:
        """N(m, K(X, X)) and the noise σ²."""
        places = self._places(point)
        noise, bias = np.exp(point[-2:])
        matrix = np.empty((len(places), len(places)))
        lengths = (places**2).sum(axis=1)
        for start, stop in spans(len(places), _BLOCK):
            rows = matrix[start:stop]
            with team.whole():
                np.matmul(places[start:stop], places.T, out=rows)
            rows -= 0.5 * lengths
            rows -= 0.5 * lengths[start:stop, None]
            # Rounding may leave a distance below 0, with itself for one.
            np.minimum(rows, 0, out=rows)
            rows *= self.sharpness
            np.exp(rows, out=rows)
            rows *= _SIGNAL * self.variance
            rows += bias
        gaussian = Gaussian(self.means, DenseCovariance(matrix))
        return gaussian, Noise.of(float(noise), len(places))

    def objective(self, point: Floats, team: ThreadPool) -> tuple[float, Floats]:
        """½ ‖X‖² - log L, and its gradient."""
        places = self._places(point)
        noise, bias = np.exp(point[-2:])
        gaussian, observed = self.gaussian(point, team)
        found, sums = exact_e_step(self._signals, gaussian, observed, team)
        assert isinstance(gaussian.covariance, DenseCovariance)
        matrix = gaussian.covariance.matrix

        def mirror(span: tuple[int, int], _: None) -> None:
            products.mirror_rows(*span, sums)

        team.run(mirror, spans(len(sums), products.BLOCK)[::-1], lambda: None)
        half = 0.5 * self._signals.count
        of_noise, of_bias = half * float(np.trace(sums)), 0.0
        columns = np.column_stack([places, np.ones(len(places))])
        weighted = np.empty_like(columns)
        for start, stop in spans(len(places), _BLOCK):
            rows = sums[start:stop]
            of_bias += half * float(rows.sum())
            rows *= matrix[start:stop] - bias
            with team.whole():
                np.matmul(half * rows, columns, out=weighted[start:stop])
        of_places = -2 * self.sharpness * (weighted[:, -1:] * places - weighted[:, :-1])
        value = 0.5 * float((places**2).sum()) - found.log_likelihood
        of_logs = [-noise * of_noise, -bias * of_bias]
        return value, np.concatenate([(places - of_places).ravel(), of_logs])

    def _places(self, point: Floats) -> Floats:
        """X (N, q)."""
        return point[:-2].reshape(-1, self.dimensions)

"""GPLVM: matrix factorisation with a Gaussian process, on this package's own E-step.

Lawrence and Urtasun, "Non-linear Matrix Factorization with Gaussian Processes" (ICML 2009). Items
are points x_j of q coordinates, and a user's ratings, less the items' means, a Gaussian process
over them, independent from user to user:

    y_i ~ N(m[o], K[o, o] + σ² Id),   K_jl = σ_f² exp(-γ/2 ‖x_j - x_l‖²) + σ_b²,   x_j ~ N(0, Id)

That is the paper's Gaussian with a structured covariance, Σ = K(X, X): a user is one signal, the
log-likelihood comes with the E-step, and exact EM's G (:mod:`gmc_core.gaussian.exact`) is its
gradient, ∂ log L / ∂Σ = ½ M G. With P = ½ M G, B = P ∘ (K - σ_b²) and r = B 1,

    ∂ log L/∂X = -2γ (diag(r) X - B X),        ∂ log L/∂σ² = tr P,    ∂ log L/∂σ_b² = 1ᵀP 1
    ∂ log L/∂γ = -(Σ_j r_j ‖x_j‖² - tr XᵀB X),  ∂ log L/∂ log σ_f² = 1ᵀB 1

L-BFGS maximises log L - ½ ‖X‖² over X and the logs of σ², σ_f², σ_b² and γ; the paper takes one
user at a time in a stochastic gradient. A novel user is one E-step.

Assumed: m_j is the mean of the item's training ratings and of five at the overall mean, and one
scale holds for all items (the published code standardises each item, test ratings included).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

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
from gmc_core.protocol.splits import Split

_START_DEVIATION = 0.1
_BLOCK = 256


@dataclass(frozen=True)
class Gplvm(System):
    """A Gaussian whose covariance is a kernel of the items' places.

    dimensions : the q to choose from, each 1 or more. iterations : of L-BFGS, 1 or more.
    """

    name: str = "gplvm"
    label: str = "GPLVM"
    seed: int = 0
    dimensions: tuple[int, ...] = (10,)
    iterations: int = 40
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not self.dimensions or min(self.dimensions) < 1 or self.iterations < 1:
            raise ConfigError("GPLVM takes at least one dimension and one iteration.")

    @property
    def candidates(self) -> Sequence[int]:
        """Each q."""
        return self.dimensions

    def attempt(self, split: Split, setting: int, team: ThreadPool) -> Floats:
        """(n_test,) conditional means."""
        train = split.train
        process = ItemProcess(train)
        places = generator(self.seed).normal(0, _START_DEVIATION, (train.n_items, setting))
        start = process.start(places)
        found = descend(
            lambda point: process.objective(point, setting, team), start, self.iterations, team
        )
        gaussian, noise = process.gaussian(found, setting, team)
        signals = Signals.of(split.known, Layout("rows", split.known.n_users, train.n_items))
        weights = fold_in(signals, gaussian, noise, team)
        return predict_pairs(signals, weights, gaussian, split.test_users, split.test_items, team)


class ItemProcess:
    """The posterior of items' places and kernel, given training ratings.

    A point is X (N q,) and the logs of σ², σ_f², σ_b² and γ.
    """

    def __init__(self, train: Ratings) -> None:
        overall = float(train.values.mean())
        totals = np.bincount(train.indices, train.values - overall, train.n_items)
        self.means = overall + totals / (train.item_counts + SMOOTHING)
        self._signals = Signals.of(train, Layout("rows", train.n_users, train.n_items))
        self._variance = max(float((train.values - self.means[train.indices]).var()), 1e-12)

    def start(self, places: Floats) -> Floats:
        """A point with these places: half of the variance noise, a quarter for each kernel."""
        shares = np.log(self._variance * np.array([0.5, 0.25, 0.25]))
        return np.concatenate([places.ravel(), shares, [0.0]])

    def gaussian(self, point: Floats, dimensions: int, team: ThreadPool) -> tuple[Gaussian, Noise]:
        """N(m, K(X, X)) and the noise σ²."""
        places = point[:-4].reshape(-1, dimensions)
        noise, signal, bias, sharpness = np.exp(point[-4:])
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
            rows *= sharpness
            np.exp(rows, out=rows)
            rows *= signal
            rows += bias
        gaussian = Gaussian(self.means, DenseCovariance(matrix))
        return gaussian, Noise.of(float(noise), len(places))

    def objective(self, point: Floats, dimensions: int, team: ThreadPool) -> tuple[float, Floats]:
        """½ ‖X‖² - log L, and its gradient."""
        places = point[:-4].reshape(-1, dimensions)
        noise, _, bias, sharpness = np.exp(point[-4:])
        gaussian, observed = self.gaussian(point, dimensions, team)
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
            matrix[start:stop] -= bias
            rows *= matrix[start:stop]
            with team.whole():
                np.matmul(half * rows, columns, out=weighted[start:stop])
        pulled, totals = weighted[:, :-1], weighted[:, -1]
        of_places = -2 * sharpness * (totals[:, None] * places - pulled)
        spread = float(totals @ (places**2).sum(axis=1)) - float((pulled * places).sum())
        of_logs = np.array(
            [noise * of_noise, float(totals.sum()), bias * of_bias, -sharpness * spread]
        )
        value = 0.5 * float((places**2).sum()) - found.log_likelihood
        return value, np.concatenate([(places - of_places).ravel(), -of_logs])

"""The users' side of a two-sided model where it is used: for users of the training data and for
people who were not there.

What h_i[u] = w_u · x_i adds to the mean of a user's ratings is of the form that covariates have,
see :mod:`gmc_core.gaussian.covariates`: with the factors of the items as more columns of B and the
loadings of a user as more covariates, E-step, predictions and explanations of one Gaussian hold
for both sides.

The loadings of a new user are the M-step's, from the responses z - μ - B x - g behind their
ratings and the row that the prior has for somebody who rated these items; the factors stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gmc_core.gaussian.folding import fold_in
from gmc_core.gaussian.linalg.threads import ThreadPool, spans
from gmc_core.gaussian.lowrank import FactorPosteriors, LoadingsPrior, loadings_m_step, transposed
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.ordinal import OrdinalScale
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.priors import UserTarget
from gmc_core.gaussian.signals import Signals
from gmc_core.gaussian.two_sided import UserSide

FloatArray = npt.NDArray[np.floating]
Floats = npt.NDArray[np.float64]

# Pairs whose C_i are held at once.
_PAIRS = 1 << 12


def joined(gaussian: Gaussian, users: UserSide, nobody: Floats) -> Gaussian:
    """The Gaussian with the factors of the items as more columns of B.

    nobody : the loadings of somebody of whom nothing is known, :attr:`UserFolding.nobody`. What
        they add belongs to everybody, and so to μ; loadings are told as differences from them.
    """
    known = gaussian.coefficients
    factors = users.factors.astype(np.float64)
    parts = [factors] if known is None else [known, factors]
    mean = gaussian.mean + factors @ nobody
    return replace(gaussian, mean=mean, coefficients=np.hstack(parts))


def with_loadings(signals: Signals, loadings: Floats) -> Signals:
    """The signals with the loadings of their users, less those of nobody, as more covariates."""
    known = np.zeros((signals.count, 0)) if signals.covariates is None else signals.covariates
    return replace(signals, covariates=np.hstack([known, loadings]))


@dataclass(frozen=True, eq=False)
class UserFolding:
    """What it takes to find loadings of people, and how sure what they add is.

    target : of the prior. penalty, pulls : its terms, P (R, R) and, for somebody with the row v of
        the target, p = v · pulls, (1 + K, R).
    spreads : (N, R (R + 1) / 2) the covariances C_i of the items' factors, packed.
    """

    target: UserTarget
    penalty: Floats
    pulls: Floats
    spreads: FloatArray

    @classmethod
    def of(
        cls,
        target: UserTarget,
        prior: LoadingsPrior,
        users: UserSide,
        spreads: FloatArray,
        variance: float,
    ) -> UserFolding:
        """Of a fit whose state has ``users``; variance : σ²."""
        loadings = users.loadings.astype(np.float64)
        penalty, _ = prior.terms(loadings, variance)
        rank = loadings.shape[1]
        gram = loadings.T @ loadings + variance * np.eye(rank)
        beta = np.linalg.solve(gram, loadings.T @ prior.loadings)
        pulls = np.asarray(prior.strength / variance * beta.T, dtype=np.float64)
        return cls(target, penalty, pulls, spreads)

    @cached_property
    def nobody(self) -> Floats:
        """(R,) loadings of somebody of whom nothing is known: what all users share."""
        row = np.zeros(len(self.pulls))
        row[0] = np.sqrt(self.target.offset)
        return np.asarray(np.linalg.solve(self.penalty, row @ self.pulls))

    @property
    def rank(self) -> int:
        """R."""
        return len(self.penalty)

    def loadings(
        self,
        signals: Signals,
        gaussian: Gaussian,
        noise: Noise,
        team: ThreadPool,
        ordinal: OrdinalScale | None = None,
    ) -> Floats:
        """(M, R) loadings of people from their ratings alone, less those of nobody.

        signals : with the covariates of their attributes. gaussian : see :func:`joined`.

        Raises
        ------
        NumericalError, Cancelled
            As :func:`gmc_core.gaussian.estep.e_step`.
        """
        assert gaussian.coefficients is not None
        factors = gaussian.coefficients[:, -self.rank :]
        pulls = self.target.loadings(signals) @ self.pulls
        found = np.linalg.solve(self.penalty, pulls.T).T - self.nobody
        variance = float(noise.array[0, 0])
        none = np.zeros(0)
        believed = FactorPosteriors(factors.astype(self.spreads.dtype), self.spreads, none, none)
        turned, (_, entries, _) = transposed(signals), signals.by_coordinate
        terms = self.penalty, pulls
        weights = fold_in(with_loadings(signals, found), gaussian, noise, team, ordinal)
        left = variance * weights.astype(np.float64)
        whole = found + self.nobody
        left += np.einsum("pr,pr->p", whole[signals.owners], factors[signals.indices])
        each = np.full(signals.count, variance)
        # Once: estimating responses and loadings in turn again changes no digit of the errors.
        new = loadings_m_step(turned, left[entries], believed, each, terms, team)
        found = new.astype(np.float64) - self.nobody
        found[signals.sizes == 0] = 0.0  # which rounding may miss
        return found

    def variances(
        self,
        loadings: Floats,
        users: npt.NDArray[np.integer],
        items: npt.NDArray[np.integer],
    ) -> Floats:
        """(P,) variance w_uᵀ C_i w_u of what is added at pairs of user and item.

        loadings : (M, R) less those of nobody.
        """
        found = np.empty(len(users))
        for span in spans(len(users), _PAIRS):
            of = slice(*span)
            squares = _squares(loadings[users[of]] + self.nobody)
            np.einsum("pk,pk->p", squares, self.spreads[items[of]], out=found[of])
        return np.maximum(found, 0.0)

    def variances_of_all(self, loadings: Floats) -> Floats:
        """(M, N) the same for every item."""
        found = _squares(loadings + self.nobody) @ self.spreads.T.astype(np.float64)
        return np.maximum(found, 0.0)


def _squares(loadings: Floats) -> Floats:
    """(M, R (R + 1) / 2) such that a packed C gives wᵀ C w as a product of both."""
    rows, columns = np.tril_indices(loadings.shape[1])
    twice = np.where(rows == columns, 1.0, 2.0)
    return loadings[:, rows] * loadings[:, columns] * twice

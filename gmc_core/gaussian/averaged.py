"""The mean of two estimates: exact EM ends with the average of its parameters and a low-rank fit's.

A dense Σ follows the training ratings further than they hold, a Σ of low rank has no room for
some of what they say, and the errors of the two have little to do with each other. So in each
iteration both algorithms take a step, from the same ratings with nothing in common, and the
M-step of the last iteration L is

    Σ ← ½ (Σ_dense + W Wᵀ + γ Id),   μ ← ½ (μ_dense + μ_W),   B ← ½ (B_dense + B_W),   h ← ½ h

(h, what users have in common, of a two-sided model: the low-rank fit has none). One Gaussian
comes out, as all else expects it; to predict with it differs by little from predicting with both
and taking the mean. The E-step of L is under it, and so are its latent responses; its
log-likelihood may be lower than the one before, since nothing is maximised in that step.

Averaging covariances is linear shrinkage (Ledoit and Wolf 2004) with a target that has been
learned; the same low-rank fit as the prior of a dense Σ brings nothing, see docs/beyond.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from gmc_core.gaussian.covariance import DenseCovariance, FactoredCovariance
from gmc_core.gaussian.estep import Estimates
from gmc_core.gaussian.exact import ExactEm
from gmc_core.gaussian.factor import FactorEm
from gmc_core.gaussian.iterate import EmState, Figures
from gmc_core.gaussian.linalg import products
from gmc_core.gaussian.linalg.threads import ThreadPool, spans
from gmc_core.gaussian.parameters import Gaussian
from gmc_core.gaussian.two_sided import TwoSidedState

FloatArray = npt.NDArray[np.floating]

# What each of the two estimates counts.
_HALF = 0.5


class AveragedEm:
    """Exact EM of one side or two beside a low-rank fit, as the two steps of
    :func:`gmc_core.gaussian.iterate.iterate`.

    dense : whose states these are. low_rank : the other estimate, of the same ratings.
    start : where the low-rank fit begins, the initial state. It is not part of any state: a run
        that is resumed computes its iterations again.
    iterations : L ≥ 1; the M-step of that one takes the mean.
    """

    reuses_memory = False

    def __init__(self, dense: ExactEm, low_rank: FactorEm, start: EmState, iterations: int) -> None:
        self._dense, self._low_rank, self._iterations = dense, low_rank, iterations
        self._other = start

    def resume(self, state: EmState) -> EmState:
        """As the dense algorithm does."""
        self._other = self._low_rank.resume(self._other)
        return self._dense.resume(state)

    def m_step(self, state: EmState, spare: FloatArray | None) -> tuple[EmState, float | None]:
        """That of the dense algorithm, and of the low-rank fit; the mean of both at the end.

        The change of Σ is the dense algorithm's own.
        """
        new, change = self._dense.m_step(state, spare)
        while self._other.iteration < new.iteration:
            self._advance()
        if new.iteration == self._iterations:
            gaussian = averaged(new.gaussian, self._other.gaussian, self._dense.team)
            new = replace(new, gaussian=gaussian)
            if isinstance(new, TwoSidedState) and new.users is not None:
                new = replace(new, users=new.users.lessened(_HALF))
        return new, change

    def e_step(self, state: EmState, last: bool) -> tuple[EmState, Estimates]:
        """As the dense algorithm does."""
        return self._dense.e_step(state, last)

    def figures(self, state: EmState, expected: Estimates) -> Figures:
        """As the dense algorithm has them."""
        return self._dense.figures(state, expected)

    def _advance(self) -> None:
        """One iteration of the low-rank fit; of the last one the M-step is all that is needed."""
        progress = self._low_rank.team.progress
        progress.begin("low-rank fit’s M-step")
        self._other, _ = self._low_rank.m_step(self._other, None)
        if self._other.iteration < self._iterations:
            progress.begin("low-rank fit’s E-step")
            self._other, _ = self._low_rank.e_step(self._other, False)


def averaged(dense: Gaussian, low_rank: Gaussian, team: ThreadPool) -> Gaussian:
    """The mean of the parameters of two Gaussians of the same coordinates.

    dense : with a Σ (N, N) that nobody else holds; it is overwritten. low_rank : with
        Σ = W Wᵀ + γ Id. Where only one has coefficients B, the other's count as 0.
    """
    old, other = dense.covariance, low_rank.covariance
    assert isinstance(old, DenseCovariance) and isinstance(other, FactoredCovariance)
    matrix, factor = old.matrix, other.factor
    half = matrix.dtype.type(_HALF)

    def rows(span: tuple[int, int], _: None) -> None:
        first, last = span
        block = matrix[first:last, :last]
        block += factor[first:last] @ factor[:last].T
        block *= half
        at = np.arange(first, last)
        matrix[at, at] += matrix.dtype.type(_HALF * other.epsilon)

    def mirror(span: tuple[int, int], _: None) -> None:
        products.mirror_rows(*span, matrix)

    team.run(rows, spans(len(matrix), 128)[::-1], lambda: None)
    team.run(mirror, spans(len(matrix), products.BLOCK)[::-1], lambda: None)
    mean = _HALF * (dense.mean + low_rank.mean)
    parts = [one.coefficients for one in (dense, low_rank) if one.coefficients is not None]
    coefficients = _HALF * np.sum(parts, axis=0) if parts else None
    return Gaussian(mean, DenseCovariance(matrix), coefficients)

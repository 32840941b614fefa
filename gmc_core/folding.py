"""Folding in: the weights of signals under a model that is not changed by them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gmc_core.estep import e_step
from gmc_core.gaussian import Gaussian
from gmc_core.linalg.threads import Team
from gmc_core.noise import Noise
from gmc_core.ordinal import Opinions, OrdinalScale
from gmc_core.signals import Signals

# Rounds of refining the opinions; the weights then change by less than 1 % (measured
# on MovieLens 1M at noise .5).
ROUNDS = 12


def fold_in(
    signals: Signals,
    gaussian: Gaussian,
    noise: Noise,
    team: Team,
    ordinal: OrdinalScale | None = None,
) -> npt.NDArray[np.floating]:
    """(nnz,) the weights a_i of ``signals``: one E-step, or some for ordered ratings.

    Raises
    ------
    NumericalError, Cancelled
        As :func:`gmc_core.estep.e_step`.
    """
    if ordinal is None:
        return e_step(signals, gaussian, noise, team).weights
    variance = float(noise.array[0, 0])
    opinions = Opinions(ordinal, signals.values, variance)
    values = opinions.first_guess
    weights: npt.NDArray[np.floating] = np.zeros(0)
    for step in range(ROUNDS):
        if step:
            values = opinions.refine(values, weights)
        filled = Signals(signals.layout, signals.indptr, signals.indices, values)
        weights = e_step(filled, gaussian, noise, team).weights
    return weights

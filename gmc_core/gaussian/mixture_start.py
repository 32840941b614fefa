"""Where a mixture starts: groups of users who rate alike, by k-means.

MAP-EM ends near where it starts, since what a group has learned from its members fits
them best. The groups come from a few features that need no model: how high a user
rates, how widely, and which genres above or below the own average. No random number
is drawn, so the same ratings always give the same groups.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError
from gmc_core.gaussian.signals import Signals

Floats = npt.NDArray[np.float64]

# That many ratings' worth of the average user is added to every feature.
_DAMPING = 5.0
_ROUNDS = 100


def user_groups(signals: Signals, count: int, kinds: Floats | None = None) -> npt.NDArray[np.int64]:
    """(M,) group of each signal, 0 … count - 1; -1 where nothing was observed.

    Parameters
    ----------
    count : K. Every group has at least one signal.
    kinds : (N, G) how much each coordinate is of each of G kinds (an item's genres);
        None where there are none.

    Raises
    ------
    ConfigError
        If there are fewer signals with observations than groups.
    """
    some = np.flatnonzero(signals.sizes)
    if len(some) < count:
        raise ConfigError(
            f"A mixture of {count} Gaussians needs as many signals with ratings, and there are "
            f"{len(some)}. Take fewer components."
        )
    groups = np.full(signals.count, -1)
    groups[some] = k_means(features(signals, kinds)[some], count)
    return groups


def features(signals: Signals, kinds: Floats | None = None) -> Floats:
    """(M, 2 + G) level, spread and liking of each kind, damped and standardised.

    The kinds share the weight of one feature between them.
    """
    sizes, owners = signals.sizes, np.repeat(np.arange(signals.count), signals.sizes)

    def damped(values: Floats, typical: float) -> Floats:
        sums = np.bincount(owners, values, minlength=signals.count)
        return np.asarray((sums + _DAMPING * typical) / (sizes + _DAMPING))

    middle = float(signals.values.mean())
    level = damped(signals.values, middle)
    rest = signals.values - level[owners]
    columns = [level, np.sqrt(damped(rest**2, float((rest**2).mean())))]
    weights = [1.0, 1.0]
    if kinds is not None and kinds.shape[1]:
        for kind in kinds.T:
            own = kind[signals.indices]
            sums = np.bincount(owners, rest * own, minlength=signals.count)
            total = np.bincount(owners, own, minlength=signals.count)
            columns.append(sums / (total + _DAMPING))
        weights += [1 / np.sqrt(kinds.shape[1])] * kinds.shape[1]
    found = np.stack(columns, axis=1)
    used = found[sizes > 0]
    deviation = used.std(axis=0)
    deviation[deviation == 0] = 1.0
    return np.asarray((found - used.mean(axis=0)) / deviation * weights)


def k_means(points: Floats, count: int) -> npt.NDArray[np.int64]:
    """(n,) group of each point, none of them empty; groups rise in the first feature.

    Lloyd's iterations from ``count`` equal slices along the first principal axis.

    points : (n, F) with n ≥ count.
    """
    axis = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][0]
    axis = axis * (1 if axis[np.argmax(np.abs(axis))] > 0 else -1)
    ranks = np.argsort(np.argsort(points @ axis, kind="stable"), kind="stable")
    groups = ranks * count // len(points)
    for _ in range(_ROUNDS):
        centres = _centres(points, groups, count)
        distances = (centres**2).sum(axis=1) - 2 * points @ centres.T
        moved = distances.argmin(axis=1)
        if np.array_equal(moved, groups) or len(np.unique(moved)) < count:
            break
        groups = moved
    order = np.argsort(_centres(points, groups, count)[:, 0], kind="stable")
    return np.argsort(order)[groups]


def _centres(points: Floats, groups: npt.NDArray[np.int64], count: int) -> Floats:
    return np.stack([points[groups == k].mean(axis=0) for k in range(count)])

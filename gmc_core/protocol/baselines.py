"""Predictions of the simplest kind, to see what a model adds to them.

Every function takes a split and returns (n_test,) raw predictions, in the order
of the split's test ratings. What is not known falls back on a wider mean (a user
without ratings, on the global mean); the split counts those cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import DataError
from gmc_core.data.ratings import Ratings
from gmc_core.protocol.metrics import Scores, score
from gmc_core.protocol.splits import Split

FloatVector = npt.NDArray[np.float64]

BIAS = "user and item bias"  # findings and sweeps compare a fit with it
DAMPING = 5.0
SWEEPS = 10


def global_mean(split: Split) -> FloatVector:
    """(n_test,) the mean of all training ratings, for everyone and everything."""
    return np.full(split.n_test, _mean(split.train))


def user_mean(split: Split) -> FloatVector:
    """(n_test,) the mean of the user's known ratings (for a novel user, of the query set)."""
    known = split.known
    means = _means(known.rows, known.values, known.n_users, _mean(split.train))
    return means[split.test_users]


def item_mean(split: Split) -> FloatVector:
    """(n_test,) the mean of the item's training ratings."""
    train = split.train
    means = _means(train.indices, train.values, train.n_items, _mean(train))
    return means[split.test_items]


@dataclass(frozen=True, eq=False)
class Biases:
    """μ + b_u + b_i of one split.

    mean : μ, of the training ratings.
    train_users : (M,) b_u of the training users.
    known_users : (M',) b_u of the test users, from what is known of them; equal to
        ``train_users`` unless the split shows ratings of novel users.
    items : (N,) b_i, 0 without training ratings.
    """

    mean: float
    train_users: FloatVector
    known_users: FloatVector
    items: FloatVector

    def residuals(self, split: Split) -> tuple[FloatVector, FloatVector]:
        """y - μ - b_u - b_i of the training ratings and of the known ones, in their order."""
        train, known = split.train, split.known
        return (
            train.values - self.mean - self.train_users[train.rows] - self.items[train.indices],
            known.values - self.mean - self.known_users[known.rows] - self.items[known.indices],
        )

    def predict(self, split: Split) -> FloatVector:
        """(n_test,) μ + b_u + b_i of the held-out ratings."""
        users, items = self.known_users[split.test_users], self.items[split.test_items]
        return np.asarray(self.mean + users + items)


def fit_biases(split: Split, damping: float = DAMPING, sweeps: int = SWEEPS) -> Biases:
    """Biases that minimise Σ (y - μ - b_u - b_i)² + λ (Σ b_u² + Σ b_i²).

    It alternates between the two, each step in closed form over the training
    ratings: b_i = Σ_u (y - μ - b_u) / (λ + number of i's ratings), and b_u alike. The
    bias of a novel user follows from the query set and the learned b_i.

    Parameters
    ----------
    split : the split.
    damping : λ, 0 or more, in ratings: a bias from λ ratings is halved.
    sweeps : alternations, 0 or more; at 0 only the users have a bias.

    Raises
    ------
    DataError
        If there are no training ratings.
    """
    train, known = split.train, split.known
    mean = _mean(train)
    user_bias = np.zeros(train.n_users)
    item_bias = np.zeros(train.n_items)
    for _ in range(sweeps):
        rest = train.values - mean - user_bias[train.rows]
        item_bias = _damped(train.indices, rest, train.n_items, damping)
        rest = train.values - mean - item_bias[train.indices]
        user_bias = _damped(train.rows, rest, train.n_users, damping)
    if not sweeps:
        user_bias = _damped(train.rows, train.values - mean, train.n_users, damping)
    rest = known.values - mean - item_bias[known.indices]
    known_bias = _damped(known.rows, rest, known.n_users, damping)
    return Biases(mean, user_bias, known_bias, item_bias)


def bias(split: Split, damping: float = DAMPING, sweeps: int = SWEEPS) -> FloatVector:
    """(n_test,) global mean + user bias + item bias: μ + b_u + b_i, of :func:`fit_biases`."""
    return fit_biases(split, damping, sweeps).predict(split)


def baselines(split: Split) -> dict[str, Scores]:
    """The scores of all four baselines, by the name to show.

    Raises
    ------
    DataError
        If the split has no test ratings or no training ratings.
    """
    unseen = split.unseen_items | split.unseen_users
    methods = {
        "global mean": global_mean,
        "user mean": user_mean,
        "item mean": item_mean,
        BIAS: bias,
    }
    return {
        name: score(method(split), split.test_values, split.train.scale, unseen)
        for name, method in methods.items()
    }


def pooled_baselines(parts: list[dict[str, dict[str, Any]]]) -> dict[str, dict[str, float]]:
    """NMAE, MAE, RMSE and n of each baseline over all repetitions' test ratings together."""
    pooled = {}
    for name in parts[0] if parts and all(parts) else ():
        scores = [part[name] for part in parts]
        counts = [each["n"] for each in scores]
        squares = np.average([each["rmse"] ** 2 for each in scores], weights=counts)
        pooled[name] = {
            "n": sum(counts),
            "nmae": float(np.average([each["nmae"] for each in scores], weights=counts)),
            "mae": float(np.average([each["mae"] for each in scores], weights=counts)),
            "rmse": float(np.sqrt(squares)),
        }
    return pooled


def _mean(train: Ratings) -> float:
    if len(train) == 0:
        raise DataError("There are no training ratings to take a mean of. Train on some.")
    return float(train.values.mean())


def _means(
    groups: npt.NDArray[np.int32], values: FloatVector, count: int, otherwise: float
) -> FloatVector:
    """(count,) mean of each group's values; ``otherwise`` for a group without any."""
    sizes = np.bincount(groups, minlength=count)
    sums = np.bincount(groups, weights=values, minlength=count)
    return np.where(sizes > 0, sums / np.maximum(sizes, 1), otherwise)


def _damped(
    groups: npt.NDArray[np.int32], values: FloatVector, count: int, damping: float
) -> FloatVector:
    """(count,) Σ of each group's values / (damping + size); 0 for an empty group."""
    sizes = np.bincount(groups, minlength=count)
    sums = np.bincount(groups, weights=values, minlength=count)
    return np.where(sizes > 0, sums / np.maximum(sizes + damping, 1e-300), 0.0)

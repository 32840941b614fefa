"""Random hold-out: a share of all ratings, or one of k folds, as most of the literature has it.

All users and items stay in the training table, also those of whom no rating is left: their
held-out ratings are predicted from the prior and counted like the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.data.ratings import Ratings
from gmc_core.protocol.draws import word_stream
from gmc_core.protocol.held_out_options import PUBLISHED, PUBLISHED_FOLDS, USUAL_SHARE
from gmc_core.protocol.splits import Split, held_out_split

Positions = npt.NDArray[np.int64]


def random_split(
    ratings: Ratings,
    seed: int,
    share: float | None = None,
    folds: int | str | None = None,
) -> Split:
    """Hold out random ratings of all users together.

    Parameters
    ----------
    ratings : M users × N items.
    seed : 0 or more. With k ``folds``, the seeds 0 … k - 1 are the k folds of one partition,
        k … 2k - 1 those of the next, and so on. With published folds, seed s is fold s + 1.
    share : of all ratings, between 0 and 1; by default .1. Not with ``folds``.
    folds : 2 or more, or ``"published"`` for the folds that came with the data.

    Raises
    ------
    ConfigError
        If there are more folds than ratings, or no published fold of this number.
    DataError
        If there are fewer than two ratings, or the data came without folds.
    """
    if len(ratings) < 2:
        raise DataError(
            "A random hold-out needs at least two ratings, one to learn from and one to predict. "
            "Use more data, or a weaker filter."
        )
    if folds == PUBLISHED:
        return _published_split(ratings, seed)
    if folds is not None:
        assert isinstance(folds, int)
        return _fold_split(ratings, seed, folds)
    share = USUAL_SHARE if share is None else share
    count = min(max(round(share * len(ratings)), 1), len(ratings) - 1)
    held = drawn(len(ratings), seed, 0, count)
    note = f"{count:,} of {len(ratings):,} ratings ({100 * share:g} %) are held out at random."
    return held_out_split("random", ratings, held, seed, (note,))


def fold_of_seed(seed: int, folds: int) -> tuple[int, int]:
    """(partition, fold), both counted from 0, that a seed stands for with k ``folds``."""
    return divmod(seed, folds)


def drawn(count: int, seed: int, first: int, last: int) -> Positions:
    """Which of the numbers 0 … count - 1 have the places first … last - 1 in a random order.

    The order is that of independent 64-bit words of
    :func:`gmc_core.protocol.draws.word_stream`, the same everywhere; equal ones, which are
    practically impossible, keep their places. Returns the numbers in rising order.
    """
    words = word_stream(seed)(count)
    if first >= last:
        return np.empty(0, dtype=np.int64)
    # The smallest and the largest word that is taken are found without sorting all.
    ends = np.partition(words, [first, last - 1])[[first, last - 1]]
    found = np.flatnonzero((words >= ends[0]) & (words <= ends[1]))
    if len(found) != last - first:
        found = np.sort(np.argsort(words, kind="stable")[first:last])
    return found


def _fold_split(ratings: Ratings, seed: int, folds: int) -> Split:
    if folds > len(ratings):
        raise ConfigError(
            f"{folds:,} folds are more than the {len(ratings):,} ratings; give at most as many."
        )
    partition, fold = fold_of_seed(seed, folds)
    first, last = (len(ratings) * k // folds for k in (fold, fold + 1))
    note = f"Fold {fold + 1} of {folds:,} is held out"
    if partition:
        note += f", of the random partition number {partition + 1}"
    held = drawn(len(ratings), partition, first, last)
    return held_out_split("random", ratings, held, seed, (f"{note}.",))


def check_seeds(
    folds: int | str | None, seeds: Sequence[int], ratings: Ratings | None = None
) -> None:
    """Refuse seeds for which there is no published fold, before the first is worked on.

    folds : of :func:`random_split`. ratings : None while they have not been read, where the folds
        are taken to be those of MovieLens 100K.

    Raises
    ------
    ConfigError, DataError
        As :func:`random_split` for published folds.
    """
    if folds != PUBLISHED:
        return
    if ratings is not None and ratings.folds is None:
        raise DataError(
            "These data came without published folds, which MovieLens 100K has: in its files "
            "u1.test … u5.test, or in the order of the rows of its u.data. Give a number of folds."
        )
    count = PUBLISHED_FOLDS
    if ratings is not None and ratings.folds is not None:
        count = int(ratings.folds.max())
    beyond = [seed for seed in seeds if seed >= count]
    if beyond:
        raise ConfigError(
            f"The data have {count} published folds, which are the seeds 0 … {count - 1}; there is "
            f"none for seed {beyond[0]}. Leave that out, or give fewer repetitions."
        )


def _published_split(ratings: Ratings, seed: int) -> Split:
    check_seeds(PUBLISHED, [seed], ratings)
    assert ratings.folds is not None
    count = int(ratings.folds.max())
    held = np.flatnonzero(ratings.folds == seed + 1)
    if not len(held) or len(held) == len(ratings):
        raise DataError(
            f"After the filter the published fold {seed + 1} has {len(held):,} of the "
            f"{len(ratings):,} ratings, so nothing can be tested. Use a weaker filter."
        )
    note = f"The published fold {seed + 1} of {count} is held out."
    return held_out_split("random", ratings, held, seed, (note,))

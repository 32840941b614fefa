"""Reproducible random choices: bounded integers from PCG64's raw words.

NumPy promises the raw stream of a bit generator for ever, but not what its
``Generator`` methods make of it. So everything random in a split is made here
from the raw words, by arithmetic that is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gmc_core.base.errors import ConfigError

Words = Callable[[int], npt.NDArray[np.uint64]]
"""Gives the next ``n`` words of a stream of independent uniform 64-bit words."""

LARGEST_WORD = np.uint64(2**64 - 1)


def word_stream(seed: int) -> Words:
    """The raw 64-bit words of PCG64, the only source of randomness of a split.

    Raises
    ------
    ConfigError
        If the seed is not a whole number of 0 or more.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ConfigError(f"The seed is {seed!r}; give a whole number of 0 or more.")
    generator = np.random.PCG64(int(seed))
    return lambda count: np.asarray(generator.random_raw(count), dtype=np.uint64)


def bounded(words: Words, bounds: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Independent integers, the k-th uniform on 0 … bounds[k] - 1, without bias.

    A word w stands for w mod b, unless it lies above the largest multiple of b
    that 64 bits hold: such a word would favour small remainders and is rejected
    for the next one. Words are used one after another, so how they are fetched
    in blocks has no effect on the result.

    Parameters
    ----------
    words : the stream.
    bounds : (n,) integers of 1 or more.

    Returns
    -------
    (n,) int64.
    """
    limits = np.asarray(bounds, dtype=np.int64)
    if limits.size and limits.min() < 1:
        raise ValueError("A bound must be at least 1.")
    divisors = limits.astype(np.uint64)
    # 2^64 mod b in 64-bit arithmetic; 2^64 itself does not fit.
    excess = (LARGEST_WORD % divisors + np.uint64(1)) % divisors
    largest = LARGEST_WORD - excess
    result = np.empty(len(limits), dtype=np.int64)
    done, pending = 0, np.empty(0, dtype=np.uint64)
    while done < len(limits):
        missing = len(limits) - done
        pending = np.concatenate([pending, words(missing - len(pending))])
        rejected = np.flatnonzero(pending > largest[done:])
        good = int(rejected[0]) if len(rejected) else missing
        result[done : done + good] = pending[:good] % divisors[done : done + good]
        done += good
        pending = pending[good + 1 :]
    return result


def choose(words: Words, n: int, k: int) -> npt.NDArray[np.int64]:
    """(k,) of the numbers 0 … n - 1 without repetition, in the order drawn.

    A partial Fisher-Yates shuffle: the first j of a draw of k are a draw of j.
    """
    pool = list(range(n))
    for step, jump in enumerate(bounded(words, n - np.arange(k)).tolist()):
        other = step + jump
        pool[step], pool[other] = pool[other], pool[step]
    return np.array(pool[:k], dtype=np.int64)

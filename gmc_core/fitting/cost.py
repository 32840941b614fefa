"""What a fit will cost, from the N_i alone: flops and peak memory.

The E-step's Cholesky factorizations take Σ_i N_i³/3 flops. The paper's
M N³/(3 C³), with C the inverse fill ratio, puts the mean in place of the N_i and
so misses the heavy tail: on MovieLens 1M it gives 9 GFLOP where the sum is 86.
How many seconds that takes is in :mod:`gmc_core.fitting.duration`.
"""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil

from gmc_core.base.errors import ConfigError, ResourceError
from gmc_core.gaussian.factor import BLOCK_BYTES
from gmc_core.gaussian.linalg.solve import LANE_LIMIT
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.linalg.vectors import lanes
from gmc_core.gaussian.mstep import Form, block_rows, choose_form, step_flops
from gmc_core.gaussian.settings import FitSettings


@dataclass(frozen=True)
class Cost:
    """Estimated cost of one iteration, and the memory of the whole fit.

    signals, dimension : M and N. form : of the M-step.
    e_flops, m_flops : of the two steps. solve_flops : Σ_i N_i³/3, what the E-step
        takes with a dense Σ. paper_flops : the paper's M N³/(3 C³) for the same.
    memory_bytes : peak beyond the loaded ratings.
    """

    signals: int
    dimension: int
    form: Form
    e_flops: float
    m_flops: float
    solve_flops: float
    paper_flops: float
    memory_bytes: int

    @property
    def flops(self) -> float:
        """All flops of one iteration."""
        return self.e_flops + self.m_flops

    def as_dict(self) -> dict[str, float | int | str]:
        """For JSON."""
        return {**asdict(self), "flops": self.flops}


def estimate(
    sizes: npt.NDArray[np.integer],
    dimension: int,
    dtype: str = "float64",
    *,
    form: Form | None = None,
    threads: int | None = None,
    objective: bool = False,
    exact: bool = False,
    components: int = 1,
    ordinal: bool = False,
    covariates: int = 0,
    users: int = 0,
    rank: int = 0,
) -> Cost:
    """The cost of a fit to signals of ``sizes`` (the N_i) in ``dimension`` coordinates.

    exact : of exact EM, whose E-step inverts (three times the flops of a solve), and
        whose M-step is the congruence; its few warm iterations cost less.
    components : K Gaussians of a mixture; all of it K times, and their common Σ.
    ordinal : of ordered ratings, with old and new latent responses and their bounds.
    covariates : G of each signal, which shift the observations.
    users : rank of the users' side of a two-sided model, 0 for none.
    rank : R of a Gaussian of low rank, 0 for a dense one.
    """
    if exact:
        form = "congruence"
    form = form or choose_form(sizes, dimension)
    count = len(sizes)
    counts = sizes.astype(np.float64)
    ratings = float(counts.sum())
    fill = ratings / max(count * dimension, 1)
    item = np.dtype(dtype).itemsize
    largest = int(sizes.max()) if count else 0
    threads = ThreadPool().size if threads is None else threads
    width = min(largest, LANE_LIMIT) + 2
    workspace = threads * max(largest**2, lanes(item) * width * (width + 2)) * item
    matrix = dimension**2 * item
    if form == "factor":
        matrices = 3 * count * dimension * item + threads * largest * count * item
        workspace = threads * min(largest, count) ** 2 * item
    else:
        # Σ of the last finished iteration stays until the next one is finished, so that
        # a fit can be stopped at any time; beside the two, what a step needs for itself.
        block = block_rows(count, dimension) * dimension * item
        own = max(block if form == "product" else matrix, workspace)
        matrices = 2 * matrix + max(own, dimension**2 * 8 if objective else 0)
        workspace = 0
    e_flops, m_flops = step_flops(sizes, dimension)[form]
    if exact:
        e_flops *= 3
        # Old and new Σ, the sum over the signals, and a workspace of the inverses.
        matrices = 3 * matrix + max(dimension**2, largest**2) * item
    if rank:
        # What the users say of each item, of a block of them, and W before and after.
        packed = (rank + 1) * (rank + 2) // 2
        matrices = (2 * dimension + min(count, 2 * BLOCK_BYTES // (packed * item))) * packed * item
        matrices += (count + 6 * dimension) * rank * item + threads * largest * rank * item
        matrices += int(ratings) * 24
        e_flops = ratings * rank**2 + count * rank**3
        m_flops = 2 * ratings * packed + dimension * rank**3
    if components > 1:
        # Components and common Σ of two iterations; the common factor is as wide as the
        # components' together.
        e_flops, m_flops = e_flops * components, m_flops * components
        if form == "factor":
            matrices += 4 * components * count * dimension * item
        else:
            matrices += 2 * components * matrix
    if users:
        # Covariances of the items' factors before and after, and those of one step's workspaces.
        matrices += (
            2 * dimension * users * (users + 1) // 2 * item + threads * largest * users * item
        )
        matrices += (count + dimension) * users * (2 * item + 8) + int(ratings) * (6 * 8 + 12)
        small = users**3 * (count + dimension)
        e_flops += 2 * ratings * users**2 + small
        m_flops += 2 * ratings * users**2 + small
    # The weights of two iterations or of one, and the order of the entries by coordinate.
    lets_go = not exact and components == 1 and has_large_weights(int(ratings), dimension)
    signals = int(ratings) * ((1 if lets_go else 2) * item * components + 8)
    signals += int(ratings) * 8 * (4 * ordinal + 2 * (covariates > 0))
    signals += (count + 3 * dimension) * covariates * 8
    return Cost(
        signals=count,
        dimension=dimension,
        form=form,
        e_flops=e_flops,
        m_flops=m_flops,
        solve_flops=float((counts**3).sum() / 3),
        paper_flops=count * dimension**3 * fill**3 / 3,
        memory_bytes=int(matrices + workspace + signals),
    )


def estimate_fit(
    settings: FitSettings,
    sizes: npt.NDArray[np.integer],
    dimension: int,
    *,
    groups: int = 0,
    threads: int | None = None,
) -> Cost:
    """:func:`estimate` of a fit with these settings.

    sizes : (M,) observations of each signal. dimension : N. groups : of users by their attributes.
    """
    of_all: dict[str, Any] = dict(
        threads=threads,
        exact=settings.is_exact,
        ordinal=settings.is_ordered,
        covariates=groups if settings.uses_attributes else 0,
    )
    cost = estimate(
        sizes,
        dimension,
        settings.dtype,
        objective=settings.objective,
        components=settings.components or 1,
        users=0 if settings.model != "two-sided" else settings.user_rank or 1,
        rank=0 if settings.model != "factor" else settings.rank or 1,
        **of_all,
    )
    if not settings.average_rank:
        return cost
    other = estimate(sizes, dimension, settings.dtype, rank=settings.average_rank, **of_all)
    return replace(
        cost,
        e_flops=cost.e_flops + other.e_flops,
        m_flops=cost.m_flops + other.m_flops,
        memory_bytes=cost.memory_bytes + other.memory_bytes,
    )


def has_large_weights(ratings: int, dimension: int) -> bool:
    """Whether a fit of MAP-EM forgets the weights of its last state in every E-step.

    It does where they are more than a quarter of the N² numbers of Σ.
    """
    return ratings * 4 > dimension**2


@lru_cache
def gemm_rate(dtype: str) -> float:
    """This machine's matrix product rate in flops per second, measured once (0.1 s)."""
    size = 1024
    matrix = np.ones((size, size), dtype=dtype)
    best = np.inf
    with ThreadPool().whole():
        for _ in range(4):
            began = time.perf_counter()
            matrix @ matrix
            best = min(best, time.perf_counter() - began)
    return 2 * size**3 / best


@lru_cache
def core_rate(dtype: str) -> float:
    """One core's matrix product rate in flops per second of its own time, measured once (0.2 s).

    Unlike :func:`gemm_rate` it says what the machine can do, whatever else it is doing.
    """
    size = 1024
    matrix = np.ones((size, size), dtype=dtype)
    best = np.inf
    with ThreadPool(1).whole():
        for _ in range(5):
            began = time.thread_time()
            matrix @ matrix
            best = min(best, time.thread_time() - began)
    return 2 * size**3 / max(best, 1e-6)


def memory_limit() -> int:
    """Bytes that a fit may use: ``GMC_MEMORY_LIMIT`` (in GB), or 80 % of the free memory."""
    wanted = os.environ.get("GMC_MEMORY_LIMIT")
    if wanted is None:
        return int(psutil.virtual_memory().available * 0.8)
    try:
        limit = float(wanted)
    except ValueError:
        limit = 0.0
    if not limit > 0:
        raise ConfigError(f"GMC_MEMORY_LIMIT must be a number of gigabytes, not {wanted!r}.")
    return int(limit * 1e9)


def check_memory(
    cost: Cost, limit: int | None = None, *, low_rank: bool = True, what: str = "This fit"
) -> None:
    """Refuse a fit that would not fit.

    low_rank : whether a Gaussian of low rank could take its place. what : it is called.

    Raises
    ------
    ResourceError
        If ``cost.memory_bytes`` exceeds ``limit`` (default :func:`memory_limit`).
    """
    limit = memory_limit() if limit is None else limit
    if cost.memory_bytes > limit:
        instead = "take the low-rank model (--model factor), " if low_rank else ""
        raise ResourceError(
            f"{what} needs about {cost.memory_bytes / 1e9:.1f} GB for a covariance of "
            f"{cost.dimension:,} × {cost.dimension:,}, but only {limit / 1e9:.1f} GB may be used. "
            "Keep fewer items (a higher minimum of ratings per item, or at most so many items), "
            f"{instead}compute in float32 (half the memory), or raise GMC_MEMORY_LIMIT."
        )

"""The compiled code that a fit needs: made before its first iteration, and known to be there.

numba compiles a function when it is first called with arrays of a type, and keeps the
result beside the source. Left alone, that would happen inside the first iteration of the
first fit, whose time would then say nothing about the others. So a fit of a made-up table
with the same model and precision is run before, unless a mark file says that this has been
done. Of a person's settings only those are used that select the compiled code: a value that
fails on the made-up table may be right for their ratings.

    python -m gmc_core.fitting.compiling [float32|float64 …]

compiles what the dashboard's models need ahead of the first fit; the dashboard runs it in the
background when it starts. Of two processes that need the same code one compiles it, and the
other waits for it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numba
import numpy as np
from filelock import FileLock, Timeout

from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.fitting.fit import Fit
from gmc_core.gaussian.linalg import solve
from gmc_core.gaussian.linalg.solve import LANE_LIMIT
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.settings import FitSettings, Precision
from gmc_core.protocol.splits import strong_split

log = logging.getLogger(__name__)

# Seconds of compiling for one precision on one core of an ordinary machine of 2026: the
# MAP-EM's functions, what exact EM has besides, and what some models have.
_SECONDS, _EXACT_SECONDS = 14.0, 8.0
_MORE_SECONDS = {"two-sided": 4.0, "factor": 4.0}
# What the pages offer, the first fit's first.
_MODELS = ("paper", "ordinal", "exact", "two-sided", "factor")
# One signal of the made-up table is too large for the lanes of the vector registers.
_LARGEST = LANE_LIMIT + 4

# Longer than compiling one kind takes on any machine.
PATIENCE_SECONDS = 180.0

_Kind = tuple[str, bool, bool, str]  # precision, exact EM, ordered ratings, what has more

_ready: set[_Kind] = set()


def compile_for(settings: FitSettings) -> float:
    """Compile what a fit with these settings calls, unless that has been done.

    Never ends a run: what goes wrong is logged, and the fit compiles as it goes.

    Returns
    -------
    Seconds that it took.
    """
    began = time.perf_counter()
    kind = _kind(settings)
    if must_compile(settings):
        with _alone(kind):
            if must_compile(settings):  # still, after waiting for another process
                try:
                    for users in (_LARGEST + 40, 8):  # more users than items, and fewer
                        _run(kind, users)
                except Exception:
                    log.warning("Compiling before the first iteration failed", exc_info=True)
                else:
                    _leave_mark(kind)
    return time.perf_counter() - began


@contextmanager
def _alone(kind: _Kind) -> Iterator[None]:
    """While no other process compiles the same; after a long wait, beside it."""
    mark = _mark(kind)
    if mark is None:
        yield
        return
    lock = FileLock(mark.with_suffix(".lock"))
    try:
        lock.acquire(timeout=PATIENCE_SECONDS)
    except (Timeout, OSError):  # one that hangs, or a folder without locks
        yield
        return
    try:
        yield
    finally:
        lock.release()


def must_compile(settings: FitSettings) -> bool:
    """Whether :func:`compile_for` has something to compile, as far as can be told.

    It has where it has not left its mark since the compiled functions' sources changed.
    """
    kind = _kind(settings)
    if kind in _ready:
        return False
    mark = _mark(kind)
    return mark is None or not mark.is_file()


def compile_seconds(settings: FitSettings) -> float:
    """About how long :func:`compile_for` will take; 0 where all is there."""
    if not must_compile(settings):
        return 0.0
    exact = _EXACT_SECONDS if settings.is_exact else 0.0
    return _SECONDS + exact + _MORE_SECONDS.get(settings.model, 0.0)


def _leave_mark(kind: _Kind) -> None:
    _ready.add(kind)
    if (mark := _mark(kind)) is not None:
        with suppress(OSError):
            mark.touch()


def _kind(settings: FitSettings) -> _Kind:
    more = settings.model if settings.model in _MORE_SECONDS else ""
    return settings.dtype, settings.is_exact, settings.is_ordered, more


def _mark(kind: _Kind) -> Path | None:
    """The file that says that all of a kind has been compiled; None without a cache."""
    function: Any = solve.solve_lanes
    try:
        folder = Path(function.stats.cache_path)
        sources = sorted(Path(solve.__file__).parent.glob("*.py"))
        stamps = [(source.name, source.stat().st_mtime_ns) for source in sources]
    except (OSError, TypeError):
        return None
    what = (kind, stamps, numba.__version__, sys.version_info[:3], os.environ.get("NUMBA_CPU_NAME"))
    return folder / f"compiled-{hashlib.sha256(repr(what).encode()).hexdigest()[:16]}.mark"


def _run(kind: _Kind, users: int) -> None:
    """A short fit to a made-up table, by both kinds of solves."""
    dtype, exact, ordinal, more = kind
    items = _LARGEST + 2
    rng = np.random.default_rng(0)
    known = rng.random((users, items)) < 8 / items
    known[0, : _LARGEST + 1] = True
    known[:, 0] = True
    rows, columns = np.nonzero(known)
    ratings = Ratings.from_triplets(
        rows, columns, rng.integers(1, 6, len(rows)).astype(float), RatingScale(1, 5)
    )
    # A mixture of Gaussians calls what MAP-EM calls.
    name = "ordinal" if ordinal else "exact" if exact else "paper"
    chosen = settings_for(name)
    dense = exact and more != "factor"
    if more:
        chosen = replace(settings_for(more), ordered=ordinal, user_start=1 if dense else None)
    few = replace(
        chosen, dtype=cast(Precision, dtype), iterations=3, noise=0.5, epsilon=0.3,
        warm=1 if dense else None,
    )  # fmt: skip
    split = strong_split(ratings, 0, users - 2, 2)
    for _ in Fit(split, few, team=ThreadPool(1)).records():
        pass


def compile_all(precisions: Sequence[Precision] = ("float64", "float32")) -> None:
    """Compile what the models that the pages offer need, the first fit's first."""
    kinds = [(model, dtype) for model in _MODELS for dtype in precisions]
    for model, dtype in kinds:
        compile_for(replace(settings_for(model), dtype=dtype))


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(10)  # whatever a person waits for comes first
    compile_all(cast(Any, sys.argv[1:]) or ("float64", "float32"))

"""One data set, one precision: seconds of the E- and the M-step, in this process.

    python -m benchmarks.iteration sample float64

Prints one JSON object. Peak memory is what the fit adds to the loaded signals.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import bare
from benchmarks.data import ratings_named, signals_of
from gmc_core.fitting.cost import estimate, gemm_rate
from gmc_core.gaussian.em import initial_state, map_em
from gmc_core.gaussian.iterate import Spares
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.gaussian.mstep import Form, choose_form
from gmc_core.gaussian.noise import Noise
from gmc_core.gaussian.signals import Signals


def forget_peak() -> None:
    """Begin anew to watch the peak of resident memory (Linux with glibc).

    Loading may have needed more than a fit, and memory that was freed but not given back
    would not be seen when the fit takes it again.
    """
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """Peak resident memory of this process since :func:`forget_peak`."""
    status = Path("/proc/self/status").read_text()
    return next(
        int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:")
    )


def allocated_bytes(signals: Signals, dtype: str) -> int:
    """Peak of what three iterations allocate, as Python's tracemalloc counts it.

    The resident memory of small data also holds what malloc keeps between uses.
    """
    tracemalloc.start()
    try:
        run(signals, dtype, 3)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def warm_up(signals: Signals, dtype: str) -> None:
    """Load or compile every routine on few users, so that no timing or memory holds it."""
    form = choose_form(signals.sizes, signals.dimension)
    few = signals.take(np.argsort(signals.sizes)[-3:])
    run(few, dtype, 2, form)
    run(signals.take(np.argsort(signals.sizes)[:50]), dtype, 2, form)


def run(
    signals: Signals, dtype: str, iterations: int, form: Form | None = None
) -> tuple[list[float], list[float]]:
    """Seconds of the E-steps and of the M-steps, in order."""
    spares = Spares()
    steps = map_em(
        signals,
        initial_state(signals, 3.0, dtype),
        epsilon=0.3,
        iterations=iterations,
        noise=Noise.of(0.0, signals.dimension),
        team=ThreadPool(),
        form=form,
        spares=spares,
    )
    e_times, m_times = [], []
    before = None
    for step in steps:
        e_times.append(step.e_seconds)
        m_times.append(step.m_seconds)
        if before is not None:
            spares.put(before)
        before = step.state.gaussian
        del step  # whoever keeps a step keeps its weights through the next one
    return e_times, m_times


def measure(signals: Signals, dtype: str, iterations: int, compare: bool = True) -> dict[str, Any]:
    """Medians over the iterations after the first (whose M-step is a sparse one)."""
    signals.by_coordinate, signals.heavy_first  # noqa: B018  (part of the loaded data)
    warm_up(signals, dtype)
    forget_peak()
    loaded = peak_bytes()
    e_times, m_times = run(signals, dtype, iterations)
    peak = peak_bytes()
    allocated = allocated_bytes(signals, dtype)
    e_seconds, m_seconds = float(np.median(e_times[1:])), float(np.median(m_times[1:]))
    cost = estimate(signals.sizes, signals.dimension, dtype)
    floor = cost.flops / gemm_rate(dtype)
    item = np.dtype(dtype).itemsize
    result: dict[str, Any] = {
        "users": signals.count,
        "items": signals.dimension,
        "ratings": len(signals.values),
        "dtype": dtype,
        "form": cost.form,
        "gflop": cost.flops / 1e9,
        "e_gflop": cost.e_flops / 1e9,
        "gemm_gflops": gemm_rate(dtype) / 1e9,
        "first_m_seconds": m_times[0],
        "e_seconds": e_seconds,
        "m_seconds": m_seconds,
        "floor_seconds": floor,
        "ratio_to_floor": (e_seconds + m_seconds) / floor,
        "peak_bytes": peak - loaded,
        "allocated_bytes": allocated,
        "allocated_in_n_squared": allocated / item / signals.dimension**2,
        "estimated_bytes": cost.memory_bytes,
    }
    if compare:
        e_bare = bare.solves(signals, dtype, cost.form)
        m_bare = bare.products(signals, dtype, cost.form)
        result |= {
            "bare_e_seconds": e_bare,
            "bare_m_seconds": m_bare,
            "ratio_to_bare": (e_seconds + m_seconds) / (e_bare + m_bare),
        }
    return result


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("dtype", choices=("float64", "float32"))
    parser.add_argument("--ml1m", type=Path)
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--users", type=float, default=1.0, help="multiple of the users")
    parser.add_argument("--items", type=int, help="keep so many of the most rated items")
    arguments = parser.parse_args()
    ratings = ratings_named(arguments.data, arguments.ml1m)
    if arguments.items:
        keep = np.zeros(ratings.n_items, bool)
        keep[np.argsort(-ratings.item_counts, kind="stable")[: arguments.items]] = True
        ratings = ratings.select(items=keep)
    signals = signals_of(ratings)
    if arguments.users != 1:
        copies = np.tile(np.arange(signals.count), int(np.ceil(arguments.users)))
        signals = signals.take(copies[: int(arguments.users * signals.count)])
    print(json.dumps(measure(signals, arguments.dtype, arguments.iterations)))


if __name__ == "__main__":
    main()

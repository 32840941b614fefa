"""Cores: how many to use, a pool of threads for compiled code, and BLAS limits.

Compiled functions release the GIL, so plain threads are enough. The rule of the
package: many small systems run in the pool with BLAS at one thread; one large
product runs outside the pool with BLAS at all threads. Both limits are set here
and nowhere else, and restored on the way out.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import scipy.linalg  # noqa: F401  (its BLAS must be loaded before the controller looks)
from threadpoolctl import ThreadpoolController

from gmc_core import former
from gmc_core.base.errors import ConfigError
from gmc_core.gaussian.linalg.progress import StepProgress

Item = TypeVar("Item")
Workspace = TypeVar("Workspace")


class Cancelled(Exception):
    """The caller asked to stop; the state before the current step is intact."""


def available_cores() -> int:
    """Cores to use: ``GMC_THREADS`` if set, else those this process may run on.

    Raises
    ------
    ConfigError
        If ``GMC_THREADS`` is not a positive whole number.
    """
    wanted = os.environ.get("GMC_THREADS")
    if wanted is None:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if not wanted.isascii() or not wanted.isdigit() or int(wanted) < 1:
        raise ConfigError(f"GMC_THREADS must be a positive whole number, not {wanted!r}.")
    return int(wanted)


_blas_lock = threading.RLock()
_controller: ThreadpoolController | None = None


@contextmanager
def blas_threads(count: int) -> Iterator[None]:
    """Run BLAS and LAPACK calls with ``count`` threads, then restore the setting.

    The setting belongs to the whole process, so only one caller holds it at a time.
    """
    global _controller
    with _blas_lock:
        if _controller is None:
            _controller = ThreadpoolController()
        with _controller.limit(limits=count, user_api="blas"):
            yield


class ThreadPool:
    """The threads of one computation, and its way to be cancelled.

    Parameters
    ----------
    size : number of threads; default :func:`available_cores`.
    should_stop : asked before every piece of work, from any thread; once it
        returns true, the computation ends with :class:`Cancelled`.
    progress : is told which step the computation is at, and how much of it is done.
    """

    def __init__(
        self,
        size: int | None = None,
        should_stop: Callable[[], bool] | None = None,
        progress: StepProgress | None = None,
    ) -> None:
        self.size = available_cores() if size is None else size
        if self.size < 1:
            raise ConfigError(f"A computation needs at least one thread, not {self.size}.")
        self._should_stop = should_stop
        self.progress = progress or StepProgress()

    def check(self) -> None:
        """Raise :class:`Cancelled` if the caller wants to stop."""
        if self._should_stop is not None and self._should_stop():
            raise Cancelled

    def run(
        self,
        task: Callable[[Item, Workspace], None],
        items: Iterable[Item],
        workspace: Callable[[], Workspace],
        *,
        work: float = 0.0,
    ) -> None:
        """Call ``task(item, space)`` for every item, each thread taking the next one.

        ``workspace`` is called once per thread. Give the heavy items first. BLAS
        runs with one thread meanwhile. The first exception ends the run.

        work : what all items are of the work that ``progress`` counts, each as much as another; all
            of it where nothing is counted yet.
        """
        pieces = list(items)
        queue, each = iter(pieces), work / max(len(pieces), 1)
        lock = threading.Lock()
        failure: list[BaseException] = []

        def loop() -> None:
            space: Workspace | None = None
            try:
                while not failure:
                    with lock:
                        try:
                            item = next(queue)
                        except StopIteration:
                            return
                    self.check()
                    if space is None:
                        space = workspace()
                    task(item, space)
                    if each:
                        with lock:
                            self.progress.add(each)
            except BaseException as error:  # handed to the calling thread below
                failure.append(error)

        with self.progress.counting(work), blas_threads(1):
            helpers = [threading.Thread(target=loop, daemon=True) for _ in range(self.size - 1)]
            for helper in helpers:
                helper.start()
            try:
                loop()
                for helper in helpers:
                    helper.join()
            except BaseException as error:  # Ctrl-C while waiting: let the others end first
                failure.append(error)
                for helper in helpers:
                    helper.join()
        if failure:
            raise failure[0]

    @contextmanager
    def whole(self) -> Iterator[None]:
        """For one large BLAS call: all threads of the pool go to BLAS."""
        self.check()
        with blas_threads(self.size):
            yield


def spans(total: int, size: int) -> Sequence[tuple[int, int]]:
    """[0, total) cut into pieces of ``size``: (start, stop) pairs."""
    return [(start, min(start + size, total)) for start in range(0, total, size)]


__getattr__ = former.renamed(__name__, Team="ThreadPool")

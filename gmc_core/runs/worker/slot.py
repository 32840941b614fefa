"""Several loops of one process that have their runs computed on a cluster."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gmc_core.runs.worker.cache import Cache
from gmc_core.runs.worker.heartbeat import Heartbeat

if TYPE_CHECKING:
    from gmc_core.runs.cluster.cluster import Cluster


class Stop:
    """Ends all loops of a process, those that begin later too."""

    def __init__(self) -> None:
        self._heartbeats: list[Heartbeat] = []
        self._changing = threading.Lock()
        self.asked = False

    def add(self, heartbeat: Heartbeat) -> None:
        """One more loop."""
        with self._changing:
            self._heartbeats.append(heartbeat)
            heartbeat.ending = self.asked

    def ask(self) -> None:
        """End; what is being computed is interrupted."""
        self.asked = True
        with self._changing:
            for heartbeat in self._heartbeats:
                heartbeat.ending = True


@dataclass(frozen=True, eq=False)
class Slot:
    """One of the loops.

    cluster : where it fits. cache : the data, shared by all loops.
    among : the only runs to take, None for all. only_run : of these, to the store; None for all.
    calibrates : whether intervals of finished runs are calibrated, in this process.
    """

    cluster: Cluster
    cache: Cache
    stop: Stop
    among: Collection[str] | None = None
    only_run: str | None = None
    calibrates: bool = False

    def begin(self, heartbeat: Heartbeat) -> None:
        """Its loop has this one."""
        self.stop.add(heartbeat)

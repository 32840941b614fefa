"""The process that computes queued runs, apart from every page and shell.

``python -m gmc_core worker`` runs :func:`work`; :func:`ensure_worker` starts it
detached where none is alive.
"""

from gmc_core.runs.worker.launch import ensure_worker, log_path
from gmc_core.runs.worker.loop import work

__all__ = ["ensure_worker", "log_path", "work"]

"""Runs kept on disk, in a store that dashboard, command line and worker share.

store = Store()                        # GMC_HOME, or the user's data folder
run = store.submit(ExperimentConfig()) # queued, or the same finished run
ensure_worker(store)                   # gmc_core.runs.worker; computes until idle
store.run(run.id).state                # "queued", "running", "finished", …
store.records(run.id)                  # (repetition, IterationRecord) so far
"""

from gmc_core.runs.store.artifacts import HeldOut
from gmc_core.runs.store.errors import StoreError
from gmc_core.runs.store.folders import home
from gmc_core.runs.store.run import ENDED, RESUMABLE, STATES, Run, State
from gmc_core.runs.store.store import Store

__all__ = [
    "ENDED",
    "RESUMABLE",
    "STATES",
    "HeldOut",
    "Run",
    "State",
    "Store",
    "StoreError",
    "home",
]

"""Done when: cancelling MovieLens 1M in an iteration is prompt, and the model recommends."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from store_workers import ROOT, wait_for

from gmc_core.fitting.config import ExperimentConfig
from gmc_core.gaussian.settings import FitSettings
from gmc_core.runs.store import Store
from gmc_core.runs.worker import work

ML1M = Path(os.environ.get("GMC_ML1M", ROOT.parent / "shared" / "data" / "ml-1m.zip"))


@pytest.mark.realdata
@pytest.mark.skipif(not ML1M.exists(), reason="MovieLens 1M is not here")
@pytest.mark.parametrize("dtype", ["float64"])
def test_cancel_in_an_iteration(tmp_path: Path, dtype: str) -> None:
    store = Store(tmp_path)
    settings = FitSettings(dtype=dtype)  # type: ignore[arg-type]
    run = store.submit(ExperimentConfig(data=str(ML1M), fit=settings))
    thread = threading.Thread(
        target=work, args=(Store(tmp_path),), kwargs={"idle_seconds": 0, "polite": False}
    )
    thread.start()
    records = wait_for(lambda: store.records(run.id), 250)
    time.sleep(records[0][1].seconds * 0.4)  # in the middle of the second iteration
    began, cpu = time.monotonic(), time.process_time()
    store.cancel(run.id)
    run = wait_for(lambda: (found := store.run(run.id)).state == "cancelled" and found)
    seconds, used = time.monotonic() - began, time.process_time() - cpu
    thread.join()
    print(f"cancelled in {seconds:.2f} s, {used:.2f} s of processor time")
    # Beside other programs the wall clock says little; the work that was left does.
    assert min(seconds, used) < 2
    model = store.model(run.id)
    assert model.iteration >= 1
    user = model.ratings.users.ids[0]  # type: ignore[union-attr]
    assert len(model.recommend(model.posterior_of(user), top=10)) == 10

"""Runs that a worker has computed, for pages that look into a model."""

from __future__ import annotations

import threading
from pathlib import Path

from streamlit.testing.v1 import AppTest

from gmc_core.fitting.config import ExperimentConfig
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.filters import Filter
from gmc_core.runs.store import Run, Store
from gmc_core.runs.worker import work

APP = str(Path(__file__).parent.parent / "app.py")


def small(protocol: str = "weak", items: int = 60, iterations: int = 3, **fit) -> ExperimentConfig:
    """An experiment of a moment."""
    return ExperimentConfig(
        protocol=protocol,
        filter=Filter(max_items=items),
        fit=FitSettings(iterations=iterations, **fit),
    )


def computed(store: Store, config: ExperimentConfig, label: str = "") -> Run:
    """Submit and compute a run here and now."""
    run = store.submit(config, label=label)
    # In a thread: in the main one, a worker would take over the signals of the tests.
    worker = threading.Thread(
        target=work, args=(store,), kwargs={"once": True, "beside": True, "polite": False}
    )
    worker.start()
    worker.join()
    return store.run(run.id)


def opened(page: str, **query: str) -> AppTest:
    """A page as a link opens it."""
    at = AppTest.from_file(APP, default_timeout=60)
    at.session_state["gmc_dashboard.entered"] = True  # or the page would restart through app.py
    for name, value in query.items():
        at.query_params[name] = value
    return at.switch_page(page).run()


def texts(at: AppTest) -> str:
    """All words that a page shows."""
    kinds = (at.markdown, at.caption, at.info, at.warning, at.error, at.success)
    return "\n".join(str(element.value) for kind in kinds for element in kind)

"""How all tests run: their priority, and how processes share them (``pytest -n 3``, pytest-xdist).

There are more processes than cores, since one that drives a browser waits as well.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import pytest

# No work beside what a test asks for; those that are about such work ask for it.
os.environ["GMC_SPARE_TIME"] = "0"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Whole files; those of the browser in one process as long as there are others.

    A page that waits still draws, so that browsers beside each other take each other's time.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Files(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid.partition("::")[0]

        def _assign_work_unit(self, node: Any) -> None:
            browses = node is self.nodes[0]
            for file in self.workqueue:
                if file.startswith("tests/browser/") == browses:
                    self.workqueue.move_to_end(file, last=False)
                    break
            super()._assign_work_unit(node)

    config.option.loadscopereorder = False
    return Files(config, log)


def pytest_collection_finish() -> None:
    """Look for Streamlit's components once in this process, and not for every page of a test.

    The look reads what is known of every installed package, which takes as long as a small page.
    """
    if "streamlit.testing.v1" in sys.modules:
        with suppress(ImportError, AttributeError):  # of another version of Streamlit
            from streamlit.components.v2 import manifest_scanner as scanner

            scanner.scan_component_manifests = cache(scanner.scan_component_manifests)


@pytest.fixture(autouse=True, scope="session")
def usual_priority() -> Iterator[None]:
    """Workers within the tests' process must not lower its priority for all that follows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "nice", lambda _: 0)
        yield

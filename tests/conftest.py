"""How all tests run: their priority, and how processes share them (``pytest -n 3``, pytest-xdist).

There are more processes than cores, since one that drives a browser mostly waits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

# No work beside what a test asks for; those that are about such work ask for it.
os.environ["GMC_SPARE_TIME"] = "0"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Whole files, in order: those of the browser come first, as they take longest."""
    from xdist.scheduler import LoadScopeScheduling

    class Files(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid.partition("::")[0]

    config.option.loadscopereorder = False
    return Files(config, log)


@pytest.fixture(autouse=True, scope="session")
def usual_priority() -> Iterator[None]:
    """Workers within the tests' process must not lower its priority for all that follows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "nice", lambda _: 0)
        yield

"""How all tests run: their priority, and how processes share them (``pytest -n 3``, pytest-xdist).

Two processes drive a browser each, which mostly waits, while another does the numerics.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BROWSER = "tests/browser/"
# No work beside what a test asks for; those that are about such work ask for it.
os.environ["GMC_SPARE_TIME"] = "0"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Whole files, in order; browser tests in two halves, and first, as they take longest."""
    from xdist.scheduler import LoadScopeScheduling

    files = sorted(path.name for path in (Path(__file__).parent / "browser").glob("test_*.py"))

    class Files(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if not file.startswith(BROWSER):
                return file
            return f"{BROWSER}{files.index(Path(file).name) % 2}"

    config.option.loadscopereorder = False
    return Files(config, log)


@pytest.fixture(autouse=True, scope="session")
def usual_priority() -> Iterator[None]:
    """Workers within the tests' process must not lower its priority for all that follows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "nice", lambda _: 0)
        yield

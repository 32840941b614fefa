"""Folders and stores of a test's own, which the tests of most pages ask for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from stored_runs import use_folders

from gmc_core.runs.store import Store


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A home of the test's own; returns the stores that asked for a worker."""
    return use_folders(tmp_path, monkeypatch)


@pytest.fixture
def store(asked: list[Any]) -> Iterator[Store]:
    """The store of that home."""
    with Store() as opened:
        yield opened


@pytest.fixture
def fresh() -> None:
    """Nothing of an earlier test is in Streamlit's caches."""
    st.cache_resource.clear()
    st.cache_data.clear()

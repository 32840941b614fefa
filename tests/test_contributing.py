"""The steps that CONTRIBUTING.md gives work as they stand there."""

from __future__ import annotations

import re
import sys
import textwrap
import types
from pathlib import Path

import pytest

from gmc_core.data.readers import load, loading

GUIDE = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
RATINGS = b'"User-ID";"ISBN";"Book-Rating"\n"7";"0345";"0"\n"7";"034X";"8"\n"9";"0345";"10"\n'


def code_of(section: str) -> str:
    """The first Python file of a section."""
    text = GUIDE.split(f"## {section}\n")[1].split("\n## ")[0]
    found = re.search(r"(?ms)^   ```python\n(.*?)^   ```", text)
    assert found is not None
    return textwrap.dedent(found[1])


@pytest.fixture
def bookcrossing(monkeypatch):
    module = types.ModuleType("gmc_core.data.readers.bookcrossing")
    code = code_of("Adding a reader")
    assert len(code.splitlines()) < 100
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, "bookcrossing.py", "exec"), module.__dict__)
    monkeypatch.setattr(loading, "_MODULES", {module.NAME: module, **loading._MODULES})


def test_the_reader_reads_and_accounts_for_every_row(tmp_path, bookcrossing):
    (tmp_path / "BX-Book-Ratings.csv").write_bytes(RATINGS)
    loaded = load(tmp_path)
    assert loaded.report.format == "bookcrossing"
    assert loaded.ratings.values.tolist() == [8.0, 10.0]
    assert loaded.ratings.items.ids.tolist() == ["0345", "034X"]
    assert loaded.report.rows_read == 3
    assert [count for _, count in loaded.report.dropped] == [1]


def test_its_errors_name_the_line(tmp_path, bookcrossing):
    (tmp_path / "BX-Book-Ratings.csv").write_bytes(RATINGS + b'"9";"0346";"11"\n')
    with pytest.raises(Exception, match="line 5"):
        load(tmp_path)

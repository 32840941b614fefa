"""The steps that CONTRIBUTING.md gives work as they stand there."""

from __future__ import annotations

import collections.abc
import dataclasses
import json
import re
import subprocess
import sys
import textwrap
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from making import random_table, ratings_of

from gmc_core.comparison.systems import system
from gmc_core.data.readers import load, loading
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.protocol.baselines import item_mean
from gmc_core.protocol.splits import Split, weak_split

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
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


USED = """
import argparse, contextlib, io, json, sys
from gmc_core.base.errors import ConfigError
from gmc_core.cli import build_parser
from gmc_core.cli.arguments import config_from_arguments
from gmc_core.gaussian.settings import FitSettings, settings_of_a_fit

def settings(*words):
    return config_from_arguments(build_parser().parse_args(["fit", *words])).fit

try:
    settings("--tolerance=0")
except ConfigError as error:
    refused = str(error)
told, help = io.StringIO(), build_parser()
with contextlib.redirect_stdout(told), contextlib.suppress(SystemExit):
    help.parse_args(["fit", "--help"])
given, plain = settings("--tolerance=0.5"), settings()
print(json.dumps({
    "given": given.as_dict(), "plain": plain.as_dict(), "refused": refused, "help": told.getvalue(),
    "again": FitSettings.from_dict(given.as_dict()) == given,
    "words": settings_of_a_fit()["tolerance"].words(0.5),
    "drawn": settings_of_a_fit()["tolerance"].control.card,
}))
"""


def test_a_declared_setting_has_all_that_follows(tmp_path):
    """In a tree that differs from this one by what the guide says, and by nothing else."""
    place = tmp_path / "gmc_core"
    for folder, apart in ((Path("."), "gaussian"), (Path("gaussian"), "settings.py")):
        (place / folder).mkdir(parents=True)
        for found in (ROOT / "gmc_core" / folder).iterdir():
            if found.name not in (apart, "__pycache__"):
                (place / folder / found.name).symlink_to(found)
    text = (ROOT / "gmc_core" / "gaussian" / "settings.py").read_text(encoding="utf-8")
    mark = "    def __post_init__(self)"
    assert text.count(mark) == 1
    field = textwrap.indent(code_of("Adding a setting"), "    ")
    changed = text.replace(mark, f"{field}\n{mark}")
    (place / "gaussian" / "settings.py").write_text(changed, encoding="utf-8")
    run = [sys.executable, "-c", USED]
    done = subprocess.run(run, cwd=tmp_path, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["given"] == {**found["plain"], "tolerance": 0.5} and found["again"]
    assert "tolerance" not in found["plain"]
    assert found["refused"] == "The tolerance must be a number above 0, not 0.0."
    assert "--tolerance CHANGE" in found["help"] and "(default: all iterations)" in found["help"]
    assert found["words"] == ["--tolerance=0.5"] and found["drawn"] == "m_step"


def test_a_system_is_what_the_guide_says_and_one_line():
    text = GUIDE.split("## Adding a model\n")[1].split("\n## ")[0]
    code = re.search(r"(?ms)^```python\n(.*?)^```", text)
    assert code is not None
    names = {
        **vars(dataclasses), **vars(collections.abc), **vars(system), "np": np, "Split": Split,
        "ThreadPool": ThreadPool,
    }  # fmt: skip
    exec(compile(code[1], "damped.py", "exec"), names)
    split = weak_split(ratings_of(*random_table(40, 12, 0.5, 3)), 0)
    made = names["DampedItems"]()
    assert made.choose(split.train, ThreadPool(1)) in made.dampings
    plain = replace(made, dampings=(1e-9,)).predict(split, ThreadPool(1))
    seen = ~split.unseen_items
    np.testing.assert_allclose(plain[seen], item_mean(split)[seen], atol=1e-6)
    assert "damped-items" in made.identity

"""What the pages for readers promise: the code runs, the links open, the figures are true."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit
from xml.etree import ElementTree

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from gmc_core import lesson
from gmc_core.data.datasets import load_named
from gmc_core.fitting.cost import estimate_fit
from gmc_core.gaussian.settings import FitSettings
from gmc_core.paper.systems import METHODS, OWN
from gmc_core.protocol.filters import Filter, apply_filter
from gmc_dashboard.learn.parts import USERS_TWO
from tests.tools import systems

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "teaching.md").read_text(encoding="utf-8")
LINKS = re.findall(r"\[`(/[^`]+)`\]\((http[^)]+)\)", GUIDE)


def code_of(page: str) -> list[str]:
    """The blocks of Python of a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"(?ms)^```python\n(.*?)^```$", text)


def test_getting_started_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = code_of("getting-started.md")
    assert len(blocks) == 8
    names: dict[str, object] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"getting-started.md, block {number + 1}", "exec"), names)
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.splitlines()[:6]] == ["1", "2", "3", "4", "5", "6"]
    assert "user and item bias" in said and "this fit" in said
    assert (tmp_path / "sample.npz").is_file()


def exercise(number: int) -> str:
    """The text of an exercise, lines joined."""
    text = GUIDE.split(f"\n### {number}. ")[1].split("\n###")[0].split("\n## ")[0]
    return " ".join(text.split())


def test_the_lab_sheet_has_eight_complete_exercises():
    assert re.findall(r"^### (\d+)\.", GUIDE, flags=re.M) == [str(k) for k in range(1, 9)]
    for number in range(1, 9):
        text = exercise(number)
        for part in ("](http://127.0.0.1:8501/", "*See:*", "*Answer:*", "*Misunderstanding:*"):
            assert part in text, (number, part)


@pytest.fixture
def _own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("GMC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GMC_CACHE", str(tmp_path / "cache"))
    st.cache_resource.clear()


LAB_SHEET = GUIDE.split("## Lab sheet")[1]


@pytest.mark.parametrize(
    "link", sorted({shown for shown, _ in LINKS if "?" in shown and f"[`{shown}`]" in LAB_SHEET})
)
@pytest.mark.usefixtures("_own_folders")
def test_a_link_of_the_guide_shows_what_it_says(link):
    parts = urlsplit(link)
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in parse_qsl(parts.query):
        at.query_params[name] = value
    at.switch_page(f"pages{parts.path}.py")
    at.run()
    assert not at.exception and not at.error
    for name, value in parse_qsl(parts.query):
        if name in at.session_state:
            shown = at.session_state[name]
            assert value == str(shown) or float(value) == shown, name
        elif name == "learn_steps_users":  # written back with two decimals
            assert at.session_state[f"link.{name}."] == "0:2.20,4.70"
        else:  # of a run, and there is none yet
            assert parts.path in ("/covariance", "/recommend")


def test_links_are_shown_as_they_are():
    assert len(LINKS) > 12
    for shown, whole in LINKS:
        assert whole == f"http://127.0.0.1:8501{shown}"


def test_the_figures_of_the_lesson_are_those_of_the_program():
    for noise, said in (
        (0.0, "4.04, standard deviation √(1 − .8²) = .60"),
        (1.0, "3.52 with √(1 − .32) = .82"),
    ):
        planted = lesson.two_movies(USERS_TWO, 0.5, 0.8, noise)
        belief = lesson.model_of(planted.truth, planted.names, noise).posterior([0], [4.5])
        mean, sd = f"{belief.mean[1]:.2f}", f"{belief.variance[1] ** 0.5:.2f}".lstrip("0")
        assert said in exercise(1) and mean in said and sd in said
    thin = []
    for method, epsilon in (("paper", 0.0), ("paper", 0.3), ("exact", 0.0)):
        told = lesson.tell(lesson.two_movies(USERS_TWO, 0.15, 0.8), method, epsilon)
        thin.append(f"{lesson.eigenvalues(told.gaussians[-1])[0]:.3f}".lstrip("0"))
    assert "*Answer:* {}, {} and {}.".format(*thin) in exercise(2)
    pulled, _ = lesson.changed(lesson.two_movies(USERS_TWO, 0.15, 0.8), {0: (2.2, 4.7)})
    kept = lesson.eigenvalues(lesson.tell(pulled, "paper", 0.0).gaussians[-1])[0]
    assert f"keeps the ellipse open: {kept:.3f}".replace("0.", ".") in exercise(2)
    planted = lesson.twenty_movies(200, 0.3)
    errors = [
        planted.error(lesson.tell(planted, "paper", e).last.estimates) for e in (0.0, 0.3, 2.0)
    ]
    means = planted.error(lesson.item_means(planted))
    best = planted.error(lesson.fills(planted, planted.truth))
    shown = [f"{value:.2f}".lstrip("0") for value in (*errors, means, best)]
    assert "*Answer:* {}, {} and {}.".format(*shown[:3]) in exercise(3)
    assert f"alone make {shown[3]}," in exercise(3) and f"makes {shown[4]}:" in exercise(3)


def test_the_figures_of_the_cost_are_those_of_the_program():
    ratings, _ = apply_filter(load_named("sample").ratings, Filter())
    settings = FitSettings().resolved(ratings.scale, ratings.n_items)
    sizes = ratings.user_counts
    cost = estimate_fit(settings, sizes, ratings.n_items)
    users, work = lesson.work_shares(sizes)
    text = exercise(4)
    paper = f"{cost.paper_flops / 1e9:.2f}".lstrip("0")
    assert f"{paper} against {cost.solve_flops / 1e9:.1f} GFLOP" in text
    assert f"a factor of {cost.solve_flops / cost.paper_flops:.0f}" in text
    assert f"has {sizes.mean():.0f} ratings, the heaviest {sizes.max():,}" in text
    assert f"takes {100 * work[round(0.1 * (len(work) - 1))]:.0f} % of the flops" in text


def test_tables_and_pictures_of_the_systems_are_those_of_their_file():
    """`python -m tests.tools.systems` writes them anew."""
    measured = json.loads(systems.MEASURED.read_text("utf-8"))
    for name in ("systems.md", "results.md"):
        page = (systems.DOCS / name).read_text("utf-8")
        assert systems.with_tables(page, measured) == page, name
        assert systems.END in page
    for path, svg in systems.pictures(measured).items():
        assert (systems.DOCS / path).read_text("utf-8") == svg, path
        ElementTree.fromstring(svg)
    assert [line["method"] for line in measured["weak"]] == list(METHODS) + [OWN]

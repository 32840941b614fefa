"""The start page, the shared selection, and every page opened directly."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import plotly.graph_objects as go
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from gmc_core.fitting.config import ExperimentConfig
from gmc_core.runs.store import Store
from gmc_dashboard.shared import context
from gmc_dashboard.shared.components import escape, sentence_of
from gmc_dashboard.shared.theme import palette, style

APP = str(Path(__file__).parents[2] / "app.py")
PAGES = sorted(path.stem for path in (Path(APP).parent / "pages").glob("*.py"))


@pytest.fixture(autouse=True)
def _own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("GMC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GMC_CACHE", str(tmp_path / "cache"))
    st.cache_resource.clear()


def opened(page: str = "home", **query: str) -> AppTest:
    at = AppTest.from_file(APP, default_timeout=60)
    for name, value in query.items():
        at.query_params[name] = value
    if page != "home":
        at.switch_page(f"pages/{page}.py")
    return at.run()


@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_directly_without_an_error(page):
    at = opened(page)
    assert not at.exception
    assert not at.error
    assert len(at.title) == 1


def test_the_entrance_imports_streamlit_only():
    lines = Path(APP).read_text().splitlines()
    assert [line for line in lines if "import " in line and "``" not in line] == [
        "import streamlit as st"
    ]


def test_pages_folder_holds_pages_only():
    names = {path.stem for path in (Path(APP).parent / "pages").glob("*.py")}
    listed = Path(APP).read_text()
    assert all(f"pages/{name}.py" in listed for name in names)


def test_home_shows_the_model_and_the_way():
    at = opened()
    assert at.title[0].value == "Gaussian Matrix Completion"
    assert r"\mathcal{N}(\mu,\Sigma)" in at.latex[0].value
    assert [link.label for link in at.get("page_link")][1:6] == [
        "**1 · Data**",
        "**2 · Fit**",
        "**3 · Covariance**",
        "**4 · Recommend**",
        "**5 · Sensitivity**",
    ]


def test_home_leads_to_the_pages_beside_the_way():
    labels = [link.label for link in opened().get("page_link")]
    assert labels[6:9] == [
        "**See why it works**", "**Compare methods**", "**Check the paper's claims**",
    ]  # fmt: skip


def test_home_without_runs_offers_the_first_one():
    at = opened()
    assert any("No runs yet" in text.value for text in at.markdown)


def test_home_lists_the_latest_runs(tmp_path):
    store = Store(tmp_path / "home")
    run = store.submit(ExperimentConfig(), label="my_first *fit*")
    at = opened()
    labels = [link.label for link in at.get("page_link")]
    assert r"my\_first \*fit\*" in labels
    assert not at.exception
    assert any(run.state in text.value for text in at.caption)


def test_fit_the_sample_selects_it_and_goes_to_the_fit_page():
    at = opened(data="ml-1m", protocol="none")
    at.button(key="leave_to_fit").click().run()
    assert not at.exception
    assert at.session_state["gmc_dashboard.selection"].data == "sample"
    assert at.session_state["gmc_dashboard.selection"].protocol == "weak"


def test_a_link_sets_the_selection_and_defaults_leave_the_url():
    at = opened("data", protocol="strong", min_user="30", seed="0")
    chosen = at.session_state["gmc_dashboard.selection"]
    assert (chosen.protocol, chosen.min_user, chosen.seed) == ("strong", 30, 0)
    assert at.query_params["protocol"] == "strong"
    assert "seed" not in at.query_params


@pytest.mark.parametrize(
    "query",
    [
        {"min_user": "-1"},
        {"min_user": "many"},
        {"protocol": "guess"},
        {"seed": "1e3"},
        {"min_user": "9" * 16},
    ],
)
def test_nonsense_in_the_url_falls_back_to_the_default(query):
    at = opened("data", **query)
    assert not at.exception
    assert at.session_state["gmc_dashboard.selection"] == context.Selection()
    assert not set(query) & set(at.query_params)


def test_the_selection_becomes_an_experiment():
    def page():
        from gmc_dashboard.shared import context

        context.choose(protocol="strong", min_user=25, max_items=500, seed=3)
        config = context.current_config(repetitions=2)
        assert (config.data, config.protocol, config.seed) == ("sample", "strong", 3)
        assert (config.filter.min_user_ratings, config.filter.max_items) == (25, 500)
        assert config.repetitions == 2

    at = AppTest.from_function(page, default_timeout=60).run()
    assert not at.exception


def test_an_unexpected_error_is_a_sentence_with_a_number_in_the_log(tmp_path):
    def page():
        from gmc_dashboard.shared.components import guard

        with guard():
            raise RuntimeError("a secret detail")

    at = AppTest.from_function(page, default_timeout=60).run()
    assert not at.exception
    assert "Sorry" in at.error[0].value
    assert "secret" not in at.error[0].value
    log = (tmp_path / "home" / "logs" / "dashboard.log").read_text()
    number = at.error[0].value.split("error ")[1].split(")")[0]
    assert number in log
    assert "a secret detail" in log


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(errno.ENOSPC, "No space left", "/data/x"), "The disk that holds /data/x is full."),
        (OSError(errno.EROFS, "Read-only file system", "/data/x"), "/data/x cannot be used"),
        (PermissionError(errno.EACCES, "Permission denied"), "set GMC_HOME"),
        (OSError(errno.EIO, "Input/output error"), "reports an error"),
        (sqlite3.OperationalError("disk I/O error"), "Check the disk"),
        (FileNotFoundError(errno.ENOENT, "No such file"), "mistake of the program"),
    ],
)
def test_a_failing_disk_is_called_that(error, sentence):
    text = sentence_of(error).replace("\\", "")
    assert sentence in text
    assert ("mistake of the program" in text) == isinstance(error, FileNotFoundError)


def test_a_log_that_cannot_be_written_does_not_hide_the_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GMC_HOME", str(tmp_path / "file"))
    assert "Sorry" in sentence_of(RuntimeError("x"))


def test_a_known_error_is_shown_as_it_is():
    def page():
        from gmc_core.base.errors import DataError
        from gmc_dashboard.shared.components import guard

        with guard():
            raise DataError("The file is empty_now; give another.")

    at = AppTest.from_function(page, default_timeout=60).run()
    assert at.error[0].value == r"The file is empty\_now; give another."


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("Cube: $9 *and* AT&T [x]", r"Cube: \$9 \*and\* AT\&T \[x\]"),
        ("1. April", r"1\. April"),
        ("- minus", r"\- minus"),
        ("12 Angry Men (1957)", "12 Angry Men (1957)"),
        ("Mission: Impossible", "Mission: Impossible"),
        (":fire: :material/home:", ":\u2060fire: :\u2060material/home:"),
    ],
)
def test_titles_are_shown_as_they_are(title, shown):
    assert escape(title) == shown


def test_the_toolbar_of_a_chart_has_the_colours_of_its_theme():
    for dark in (False, True):
        bar = style(go.Figure(), dark=dark).layout.modebar
        assert (bar.color, bar.activecolor) == (palette(dark).muted, palette(dark).accent)

"""What docs/security.md promises, as far as no other test holds it."""

from __future__ import annotations

import csv
import io
import os
import re
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import streamlit as st
from computed_runs import computed
from stored_runs import opened, texts, use_folders

from gmc_core.base.errors import DataError
from gmc_core.base.table_files import TableWriter, safe_text
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.gaussian.attributes import UserGroups
from gmc_core.gaussian.settings import FitSettings
from gmc_core.model.model_file import load_model, save_model
from gmc_core.protocol.filters import Filter
from gmc_core.runs.store import Store, StoreError
from gmc_dashboard.shared import sources
from gmc_dashboard.shared.places import uploads_folder
from gmc_dashboard.shared.tables import to_csv

ROOT = Path(__file__).parents[1]
PAGES = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))

# HTML, a link and a picture in Markdown, a formula of TeX and one of a spreadsheet, an emoji of
# Streamlit, control characters and one that turns the direction of writing.
EVIL = (
    '=HYPERLINK("http://evil.example")<img src=x onerror=alert(1)> [a](javascript:alert(1)) '
    "![b](http://evil.example/x.png) $\\alpha$ :fire: **bold** \x07\x1b[31m\u202e"
)
# As it would work: without a backslash before it (or the word joiner before an emoji).
RAW = re.compile(
    r"(?<!\\)(<img src=x|\]\(javascript:|\]\(http://evil|\$\\+alpha|\*\*bold)|(?<=\s):fire:"
)


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    use_folders(tmp_path, monkeypatch)


# Where it listens -------------------------------------------------------------------


def test_the_dashboard_listens_on_this_machine_only():
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    server = settings["server"]
    assert server["address"] == "127.0.0.1"
    # A page of another host cannot reach it by a name that resolves to this machine.
    assert server["allowedHosts"] == ["localhost", "127.0.0.1"]
    assert server["maxUploadSize"] <= 100
    assert server.get("enableXsrfProtection", True)
    assert server.get("enableCORS", True)
    assert not server.get("enableStaticServing", False)
    assert settings["client"]["showErrorDetails"] == "none"
    assert settings["browser"]["gatherUsageStats"] is False


# Files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["../../x.csv", "/etc/passwd", "..\\..\\x.csv", "C:\\x.csv", "a\0b.csv", "x" * 5000, ".", "~",
     "", "con", "a/../../../b", "\u202egpj.csv", "-rf", "own-000000000000.json"],
)  # fmt: skip
def test_an_upload_cannot_leave_its_folder(name):
    path = sources.keep_upload(name, b"1,2,3\n")
    assert path.resolve().parent.parent == uploads_folder().resolve()
    assert path.read_bytes() == b"1,2,3\n"
    assert not list(path.parent.glob("*.part"))


@pytest.mark.parametrize(
    "token", ["own-../../../x", "own-", "own-" + "0" * 12, "own-\0", "own-" + "x" * 9000, "own-*"]
)
def test_a_token_is_no_path(token):
    (uploads_folder().parent / "x.json").parent.mkdir(parents=True, exist_ok=True)
    (uploads_folder().parent / "x.json").write_text("{}")
    with pytest.raises(DataError, match="does not know"):
        sources.location(token)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"path": "/x"}', "\xff"])
def test_a_damaged_token_is_an_unknown_one(tmp_path, content):
    (tmp_path / "r.csv").write_text("1,2,3\n")
    token = sources.register(tmp_path / "r.csv")
    assert sources.location(token)[0] == str(tmp_path / "r.csv")
    (uploads_folder() / f"{token}.json").write_text(content, encoding="latin-1")
    with pytest.raises(DataError, match="does not know"):
        sources.location(token)


@pytest.mark.parametrize("identity", ["../x", "a/b", "..", "", "a\0", "runs.db"])
def test_the_id_of_a_run_is_no_path(tmp_path, identity):
    with Store(tmp_path / "store") as store, pytest.raises(StoreError):
        store.folder(identity)


def test_old_uploads_go_and_those_in_use_stay(monkeypatch):
    monkeypatch.setattr(sources, "KEPT_BYTES", 25)
    now = time.time()
    places = [sources.keep_upload("r.csv", b"%09d\n" % k) for k in range(3)]
    assert all(path.exists() for path in places)  # all are of just now
    monkeypatch.setattr(sources, "JUST_NOW_SECONDS", -1)
    for age, path in zip((300, 200, 100), places, strict=True):
        os.utime(path.parent, (now - age, now - age))
    token = sources.register(places[0])
    with pytest.raises(DataError):  # reading it counts as use, whatever it holds
        sources.load(token)
    assert sources.remove_old_uploads() == 1
    assert [path.exists() for path in places] == [True, False, True]
    assert sources.remove_old_uploads(now + sources.KEPT_SECONDS + 10) == 2
    assert sources.location(token)
    with pytest.raises(DataError, match="no such file"):
        sources.load(token)


def test_only_uploads_are_ever_cleaned(tmp_path):
    own = tmp_path / "mine.csv"
    own.write_text("1,2,3\n2,2,1\n")
    token = sources.register(own)
    linked = uploads_folder() / ("a" * 16)
    (tmp_path / "elsewhere").mkdir()
    linked.symlink_to(tmp_path / "elsewhere")
    sources.remove_old_uploads(time.time() + 10 * sources.KEPT_SECONDS)
    assert own.exists()
    assert (tmp_path / "elsewhere").exists()
    assert len(sources.load(token).ratings) == 2


# Tables -----------------------------------------------------------------------------

LINES = ["a\r=1", "a\r\n=1", "a\n=1"]
STARTS = [
    "=1", "+1+1", "-1+1", "@x", "\t=1", "\r=1", "\n=1", " =1", "＝1", "＋1", "－1", "＠x",
]  # fmt: skip


@pytest.mark.parametrize("text", [*STARTS, *LINES])
def test_no_cell_of_a_table_is_a_formula(tmp_path, text):
    assert safe_text(text).startswith("'" if text in STARTS else "a")
    with TableWriter(tmp_path / "t.csv", [text], [text]) as writer:
        writer.write([[text]], np.ones((1, 1)))
    table = pd.DataFrame({text: [text], "n": [-1.5]}, index=[text])
    for content in ((tmp_path / "t.csv").read_bytes(), to_csv(table, index=True)):
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
        assert len(rows) == 2
        for cell in (cell for row in rows for cell in row):
            assert not re.match(r"\s*[=+@＝＋－＠]|\s*-(?![\d.])|-1\+", cell), cell


# Pages ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def evil_file(tmp_path_factory) -> Path:
    """Ratings with ids and titles as an attacker writes them."""
    rng = np.random.default_rng(0)
    lines = ["user\titem\trating\ttitle"]
    lines += [
        f"{EVIL} {user}\t{EVIL} {item}\t{rng.integers(1, 6)}\t{EVIL} title {item} (1999)"
        for user in range(24)
        for item in range(14)
        if rng.random() < 0.7
    ]
    path = tmp_path_factory.mktemp("evil") / "=evil <b> $x$.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def evil_link(evil_file) -> dict[str, str]:
    """The link to a computed run of them, with a label and a note of the kind."""
    store = Store()
    config = ExperimentConfig(
        data=str(evil_file), filter=Filter(0, 0), fit=FitSettings(iterations=2)
    )
    run = computed(store, config, label=EVIL)
    assert run.state == "finished", run.message
    store.annotate(run.id, EVIL)
    token = sources.register(evil_file)
    store.close()
    return {"data": token, "run": run.id, "min_user": "0", "min_item": "0"}


# What Streamlit takes for Markdown or HTML; the rest is shown as it is.
RENDERED = ("markdown", "caption", "info", "warning", "error", "success", "html", "button",
            "checkbox", "radio", "subheader", "header", "title", "expander", "tab")  # fmt: skip


# Of these only the label and the help.
LABELLED = ("selectbox", "multiselect", "toggle", "slider", "select_slider", "number_input",
            "text_input", "text_area", "segmented_control", "checkbox", "radio")  # fmt: skip


def check_texts(at) -> None:
    """No text of the file works as Markdown or HTML on the page."""
    assert not at.exception
    for kind in LABELLED:
        for element in at.get(kind):
            for text in (str(element.label), str(element.help or "")):
                found = RAW.search(text)
                assert found is None, (kind, found, text[:400])
    for kind in RENDERED:
        for element in at.get(kind):
            shown = [str(getattr(element, "value", "")), str(getattr(element, "label", ""))]
            body = getattr(element.proto, "body", "")
            for text in (*shown, str(body)):
                found = RAW.search(text)
                assert found is None, (kind, found, text[:400])
    for element in at.get("plotly_chart"):
        assert "<img src=x" not in element.proto.spec, element.proto.spec[:300]


@pytest.mark.parametrize("page", PAGES)
def test_titles_ids_and_labels_are_shown_as_text(page, evil_link):
    check_texts(opened(page, **evil_link))


@pytest.mark.parametrize("view", ["overview", "titles", "neighbours", "axes", "variances"])
def test_covariance_shows_titles_as_text(view, evil_link):
    check_texts(opened("covariance", **evil_link, view=view))


def test_recommendations_show_titles_as_text(evil_link):
    at = opened("recommend", **evil_link, who="known", user=f"{EVIL} 3")
    check_texts(at)
    assert "onerror" in texts(at)  # the titles are there, and inert


@pytest.mark.parametrize("who", ["yourself", "user"])
def test_attributes_of_users_are_shown_as_text(who, evil_link):
    store = Store()
    path = store.model_path(evil_link["run"])
    model = load_model(path)
    values = np.array([f"{EVIL} F", "M"] * 30, dtype=object)
    groups = UserGroups.of({EVIL: values})
    gaussian = replace(model.gaussian, coefficients=np.full((len(model.items), len(groups)), 0.1))
    info = {EVIL: values[: model.ratings.n_users]}
    knowing = replace(
        model, groups=groups, gaussian=gaussian, ratings=replace(model.ratings, user_info=info)
    )
    save_model(knowing, path)
    store.close()
    st.cache_resource.clear()
    at = opened("recommend", **evil_link, who=who)
    check_texts(at)
    words = [*(box.label for box in at.selectbox), texts(at)]
    assert any("onerror" in word and "bold" in word for word in words)


NAMES = (
    "data", "run", "protocol", "seed", "min_user", "min_item", "view", "who", "user", "rated",
    "tab", "search", "find", "item", "title", "genre", "comparison", "sweep", "iterations",
    "epsilon", "model", "signals", "order", "kind", "picks", "compare", "states", "top", "chapter",
)  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("value", [EVIL, "../../../etc/passwd", "9" * 400, "-1e999"])
def test_nonsense_in_a_link_is_no_error_and_is_not_run(page, value):
    at = opened(page, **dict.fromkeys(NAMES, value))
    check_texts(at)


def test_an_error_shows_a_files_text_as_text(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(f'user,item,rating\n1,2,3\n1,3,"{EVIL.replace(chr(34), "")}"\n')
    at = opened("data", data=sources.register(path))
    assert at.error or at.warning
    check_texts(at)


# The tree ---------------------------------------------------------------------------


def test_nothing_runs_text_of_a_person():
    """No shell, no pickle (numpy's included), no eval of any spelling in the product."""
    words = (
        "os.system", "os.popen", "subprocess.getoutput", "shell=True", "pickle.load",
        "pd.read_pickle", "joblib", "yaml.load", "__import__(", "allow_pickle=True", "dill",
        "marshal.load",
    )  # fmt: skip
    files = [*(ROOT / "gmc_core").rglob("*.py"), *(ROOT / "gmc_dashboard").rglob("*.py")]
    files += [*(ROOT / "pages").glob("*.py"), ROOT / "app.py"]
    for path in files:
        if path.name == "convert.py":
            continue  # reads the one source of the sample, run by hand
        text = path.read_text(encoding="utf-8")
        assert not [word for word in words if word in text], path


def test_known_vulnerabilities_are_looked_for_in_the_checks():
    assert "pip-audit" in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "pip-audit" in (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")

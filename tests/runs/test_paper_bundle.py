"""The paper bundle: what is in the zip, that it is true, and that odd titles do no harm."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import zipfile
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from computed_runs import computed, small
from stored_runs import stored, stored_comparison, stored_sweep

from gmc_core.base.errors import ConfigError, MissingPackageError
from gmc_core.base.extras import EXTRAS
from gmc_core.cli import main
from gmc_core.runs.bundle.archive import drawings_of, export_bundle, tables_of
from gmc_core.runs.bundle.contents import Correlations, contents_of
from gmc_core.runs.bundle.figures import correlations_figure, label, rendered, spread
from gmc_core.runs.bundle.latex import escape, tabular
from gmc_core.runs.bundle.readme import readme
from gmc_core.runs.store import Store, StoreError

ODD = ("*batteries not included (1987)", "[REC] 100% & _more_ #1", "$9.99 {a} \\ ~^", "日本 (2001)")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("store")) as opened:
        yield opened


@pytest.fixture(scope="module")
def fitted(store):
    """A computed run of two repetitions under strong generalization, with its model."""
    config = replace(small("strong", items=20, iterations=2), repetitions=2, strong_users=60)
    return computed(store, config)


@pytest.fixture(scope="module")
def files(store, fitted, tmp_path_factory):
    """Name → content of its bundle, without the folder that all names begin with."""
    path = export_bundle(store, fitted.id, tmp_path_factory.mktemp("out") / "paper.zip")
    with zipfile.ZipFile(path) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    assert {name.split("/")[0] for name in found} == {f"gmc-run-{fitted.id}"}
    return {name.split("/", 1)[1]: content for name, content in found.items()}


def table(files, name):
    return list(csv.DictReader(io.StringIO(files[f"tables/{name}.csv"].decode())))


def said(contents):
    """The README of a run without its figures."""
    return readme(contents, "gmc …", {}, {}, tables_of(contents))


def test_a_fit_has_its_figures_tables_and_how_to_repeat_it(files):
    figures = ("nmae-by-iteration", "correlations")
    tables = ("scores", "iterations", "titles")
    assert set(files) == {
        "README.txt", "command.txt", "settings.json", "tables/records.csv",
        "tables/correlations.csv",
        *(f"figures/{name}.{ending}" for name in figures for ending in ("pdf", "svg", "png")),
        *(f"tables/{name}.{ending}" for name in tables for ending in ("csv", "tex")),
    }  # fmt: skip


def test_the_figures_are_one_page_searchable_and_have_their_fonts(files, store, fitted):
    titles = contents_of(store, fitted).correlations.titles
    for name in ("nmae-by-iteration", "correlations"):
        pdf = files[f"figures/{name}.pdf"]
        assert pdf.startswith(b"%PDF")
        assert len(re.findall(rb"/Type /Page\b", pdf)) == 1
        assert b"/FontFile2" in pdf  # TrueType, embedded
        assert b"/CreationDate" not in pdf
        assert files[f"figures/{name}.png"].startswith(b"\x89PNG")
    words = "".join(ElementTree.fromstring(files["figures/correlations.svg"]).itertext())
    assert all(label(title, "?") in words for title in titles)
    words = "".join(ElementTree.fromstring(files["figures/nmae-by-iteration.svg"]).itertext())
    assert "NMAE on held-out ratings after each iteration" in words
    assert "user and item bias" in words
    assert "mean of 2 repetitions" in words


def test_the_tables_are_the_records(files, store, fitted):
    records = store.records(fitted.id)
    kept = table(files, "records")
    assert [float(row["nmae"]) for row in kept] == [record.nmae for _, record in records]
    assert [int(row["repetition"]) for row in kept] == [r for r, _ in records]
    last = [record for _, record in records if record.iteration == 2]
    row = table(files, "iterations")[-1]
    assert float(row["nmae"]) == pytest.approx(np.mean([record.nmae for record in last]))
    assert float(row["nmae_se"]) == pytest.approx(np.hypot(*(r.nmae_se for r in last)) / 2)
    own, *baselines = table(files, "scores")
    assert float(own["nmae"]) == fitted.summary["nmae"]
    assert float(own["nmae_se"]) == fitted.summary["nmae_se"]
    assert {row["method"]: float(row["nmae"]) for row in baselines} == fitted.baselines
    assert all(float(row["nmae_se"]) > 0 for row in baselines)
    matrix = contents_of(store, fitted).correlations.matrix
    told = [[float(v) for v in list(row.values())[1:]] for row in table(files, "correlations")]
    np.testing.assert_array_equal(told, matrix)


def test_a_baselines_error_is_that_of_all_its_ratings(store, fitted):
    """With one repetition it is the repetition's own."""
    results = store.results(fitted.id)
    parts = [result["baselines"]["item mean"] for result in results]
    total = sum(part["n"] for part in parts)
    expected = math.sqrt(sum((part["n"] * part["nmae_se"]) ** 2 for part in parts)) / total
    scores = {score.label: score for score in contents_of(store, fitted).scores}
    assert scores["item mean"].nmae_se == pytest.approx(expected)


def test_the_readme_says_what_is_there_and_how_to_repeat_it(files, store, fitted):
    words = files["README.txt"].decode()
    assert fitted.title in words
    assert fitted.data_sha256 in words
    assert store.command(fitted.id) in words
    assert files["command.txt"].decode().strip() == store.command(fitted.id)
    names = {name.rsplit(".", 1)[0] for name in files if "/" in name}
    assert all(name in words for name in names - {"tables/correlations"})
    settings = json.loads(files["settings.json"])
    assert settings["settings"]["fit"]["iterations"] == 2
    assert settings["data"]["sha256"] == fitted.data_sha256


def test_the_same_run_gives_the_same_bytes(store, tmp_path):
    run = stored(store)
    one, two = (export_bundle(store, run.id, tmp_path / f"{n}.zip").read_bytes() for n in (1, 2))
    assert one == two


def test_a_run_without_baselines_without_hold_out_and_a_cancelled_one(store):
    contents = contents_of(store, stored(store))  # of a version that kept no baselines
    assert [score.nmae for score in contents.scores] == [0.42]
    assert not contents.curve.references
    assert "Baselines: the run keeps none" in said(contents)
    stopped = contents_of(store, stored(store, "cancelled", done=2, message="Cancelled."))
    assert [step.iteration for step in stopped.steps] == [1, 2]
    assert stopped.scores[0].label.endswith("cancelled after iteration 2")
    assert "no final result" in said(stopped)
    run = stored(store, "cancelled", done=0)
    with pytest.raises(StoreError, match="has finished no iteration"):
        contents_of(store, run)


def test_without_hold_out_the_likelihood_is_drawn(store):
    run = computed(store, small("none", items=12, iterations=2))
    contents = contents_of(store, run)
    assert contents.scores == ()
    assert "nothing is held out" in said(contents)
    drawn = drawings_of(contents)
    assert list(drawn) == ["likelihood-by-iteration", "correlations"]
    assert [table.name for table in tables_of(contents)] == ["iterations", "titles"]
    assert "-- & -- & -- & --" in tables_of(contents)[0].latex()


def test_a_sweep_and_a_run_of_it_show_the_sensitivity(store):
    sweep = stored_sweep(store)
    contents = contents_of(store, sweep)
    assert list(drawings_of(contents)) == ["sensitivity"]
    (cells,) = tables_of(contents)
    assert cells.name == "sensitivity"
    assert len(cells.rows) == 4  # 2 ε × 2 L
    child = store.runs(parent=sweep.id)[0]
    contents = contents_of(store, child)
    assert list(drawings_of(contents)) == ["nmae-by-iteration", "sensitivity"]
    assert contents.sensitivity.epsilon == child.config.fit.epsilon
    _, draw = drawings_of(contents)["sensitivity"]
    words = "".join(ElementTree.fromstring(rendered(draw, "x")["svg"]).itertext())
    assert f"ε = {child.config.fit.epsilon:g}, this run" in words


def test_a_comparison_has_its_chart_and_table(store):
    run = stored_comparison(store, failures=(("item", "no_such & thing"),))
    contents = contents_of(store, run)
    (found,) = tables_of(contents)
    assert [row[0] for row in found.rows] == [row.label for row in contents.comparison]
    assert "no_such & thing" in said(contents)
    figure = drawings_of(contents)["comparison"][1]()
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["Item-based kNN"]
    waiting = stored_comparison(store, "queued")
    with pytest.raises(StoreError, match="no fit of it has ended"):
        contents_of(store, waiting)
    store.delete(waiting.id)


def test_odd_titles_are_shown_and_harm_nothing():
    n = len(ODD)
    shown = Correlations(
        ids=tuple("1234"), titles=ODD, counts=(9,) * n, mean=(3.0,) * n, sd=(1.0,) * n,
        matrix=np.eye(n) * 0.5 + 0.5,
    )  # fmt: skip
    svg = rendered(lambda: correlations_figure(shown), "Odd \x07 & <title>")["svg"]
    words = [text.text for text in ElementTree.fromstring(svg).iter() if text.text]
    assert all(title in words for title in ODD[:3])
    assert "id 4" in words  # the font has no Japanese


def test_latex_shows_the_text_that_it_was_given():
    assert escape("100% & _x_ #1 $2 {a} ~ ^ \\ <b> |") == (
        r"100\% \& \_x\_ \#1 \$2 \{a\} \textasciitilde{} \textasciicircum{} \textbackslash{} "
        r"\textless{}b\textgreater{} \textbar{}"
    )
    assert escape("a--b ''c'' ,,d") == "a-{}-b '{}'c'{}' ,{},d"
    assert escape("ε ≤ −1 – “é”\n2\x00") == r"$\varepsilon$ ≤ $-$1 -- ``é'' 2 "
    lines = tabular(["Title", "n"], [[ODD[0], "1"], [ODD[1], "2"]], comment="a\nb").splitlines()
    assert lines[:3] == ["% a", "% b", r"\begin{tabular}{lr}"]
    # What follows the end of a row must not begin like an argument of it.
    assert lines[6:8] == [
        r"{*}batteries not included (1987) & 1 \\",
        r"{[}REC{]} 100\% \& \_more\_ \#1 & 2 \\",
    ]


@pytest.mark.parametrize(
    "places", [[1.0, 1.0, 1.0], [0.0, 5.0, 10.0], [9.9, 9.8, 0.1, 9.7], [-3.0, 14.0]]
)
def test_labels_keep_their_order_and_distance(places):
    found = spread(places, 1.0, 0.0, 10.0)
    order = np.argsort(places, kind="stable")
    assert (np.diff(np.array(found)[order]) >= 1.0 - 1e-12).all()
    assert min(found) >= 0.0 and max(found) <= 10.0


def test_a_long_title_keeps_its_year():
    title = label("A Very Long Title That Goes On and On and On (1999)", "1")
    assert len(title) <= 32
    assert title.endswith("… (1999)")
    assert label("", "7") == "id 7"


def test_the_command_writes_it_beside_or_without_another_file(
    store, fitted, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("GMC_HOME", str(store.path))
    run = stored(store, label="of the command")
    target = tmp_path / "p.zip"
    assert main(["runs", "export", run.id, "--bundle", str(target)]) == 0
    assert zipfile.is_zipfile(target)
    assert main(["runs", "export", run.id]) == 2
    assert main(["runs", "export", run.id, "--bundle", str(tmp_path / "p.pdf")]) == 2
    assert main(["runs", "export", run.id, "--format", "csv", "--bundle", str(target)]) == 2
    assert main(["runs", "import", str(target)]) == 2  # it is for people, not for a store
    assert capsys.readouterr().err.count("gmc: error") == 4


def test_without_matplotlib_it_names_the_extra(store, fitted, tmp_path, monkeypatch):
    monkeypatch.setitem(EXTRAS, "figures", {"matplotlib": "no_such_module"})
    with pytest.raises(MissingPackageError, match=r"needs matplotlib.*\[figures\]"):
        export_bundle(store, fitted.id, tmp_path / "p.zip")


def test_a_folder_is_no_target(store, fitted, tmp_path):
    (tmp_path / "p.zip").mkdir()
    with pytest.raises(StoreError, match="is a folder"):
        export_bundle(store, fitted.id, tmp_path / "p.zip")
    with pytest.raises(ConfigError, match="ends in .zip"):
        export_bundle(store, fitted.id, tmp_path / "p")

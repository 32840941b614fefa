"""Export and import, the report, and the command that repeats a run."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from store_workers import ROOT, figures, small

from gmc_core.cli import build_parser
from gmc_core.cli.arguments import config_from_arguments
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.filters import Filter
from gmc_core.runs.store import Run, Store, StoreError
from gmc_core.runs.store.command import arguments_of, command
from gmc_core.runs.store.submitting import key_of
from gmc_core.runs.store.transfer import export, import_run
from gmc_core.runs.sweeps import SweepConfig, submit_or_find_sweep, sweep_results
from gmc_core.runs.worker import work

NASTY = '=HYPERLINK("x")<script>alert(1)</script>&"'


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("store"))
    config = replace(small(iterations=3), repetitions=2)
    store.annotate(store.submit(config, label=NASTY).id, NASTY)
    submit_or_find_sweep(store, SweepConfig(small(), (0.1, 1.0), (1, 2), (0, 1)), label=NASTY)
    work(store, idle_seconds=0, polite=False)
    return store


@pytest.fixture
def run(store: Store) -> Run:
    return next(run for run in store.runs() if run.kind == "run")


@pytest.fixture
def sweep(store: Store) -> Run:
    return next(run for run in store.runs() if run.kind == "sweep")


def test_zip_round_trip(store: Store, run: Run, tmp_path: Path) -> None:
    export(store, run.id, tmp_path / "run.zip")
    other = Store(tmp_path / "other")
    taken = import_run(other, tmp_path / "run.zip")
    assert taken.id != run.id
    assert figures(other, taken.id) == figures(store, run.id)
    same = ("id", "disk_bytes", "answers", "cost", "iteration_began")
    assert {k: v for k, v in taken.as_dict().items() if k not in same} == {
        k: v for k, v in run.as_dict().items() if k not in same
    }
    # An estimate is of the machine that it was made on.
    assert taken.cost == {k: v for k, v in (run.cost or {}).items() if k != "estimate"}
    assert "estimate" in (run.cost or {})
    assert taken.disk_bytes == run.disk_bytes
    assert other.pictures(taken.id) == store.pictures(run.id)
    assert np.array_equal(other.model(taken.id).gaussian.mean, store.model(run.id).gaussian.mean)
    # There it is somebody else's, and does not stand for a new start.
    assert (run.reusable, taken.reusable) == (True, False)


def test_a_sweep_travels_with_its_children(store: Store, sweep: Run, tmp_path: Path) -> None:
    export(store, sweep.id, tmp_path / "sweep.zip")
    other = Store(tmp_path / "other")
    taken = import_run(other, tmp_path / "sweep.zip")
    assert taken.state == "finished"
    drop = ["run"]
    assert (
        sweep_results(other, taken.id)
        .drop(columns=drop)
        .equals(sweep_results(store, sweep.id).drop(columns=drop))
    )


def test_json_and_import_without_files(store: Store, run: Run, tmp_path: Path) -> None:
    export(store, run.id, tmp_path / "run.json")
    content = json.loads((tmp_path / "run.json").read_text())
    assert len(content["repetitions"]) == 2
    assert [len(r["records"]) for r in content["repetitions"]] == [3, 3]
    assert content["summary"]["nmae"] == run.summary["nmae"]  # type: ignore[index]
    assert content["command"] == store.command(run.id)
    other = Store(tmp_path / "other")
    taken = import_run(other, tmp_path / "run.json")
    assert other.records(taken.id) == store.records(run.id)
    assert other.model_path(taken.id) is None
    assert not taken.keeps_model


def test_where_nothing_can_be_written_the_export_says_so(
    store: Store, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "r.html").mkdir()
    with pytest.raises(StoreError, match="r.html is a folder; give the name of a file in it"):
        export(store, run.id, tmp_path / "r.html")


def test_an_export_goes_to_devices_and_says_why_it_cannot(store: Store, run: Run) -> None:
    code = (
        "import os, sys\n"
        "from gmc_core.cli import main\n"
        "def export(target):\n"
        "    return main(['runs', 'export', sys.argv[1], target, '--format', 'json'])\n"
        "export(sys.argv[2] + '/first.json')\n"  # loads all that others may not
        "for folder, _, names in os.walk(sys.argv[2]):\n"
        "    for path in (folder, *(os.path.join(folder, name) for name in names)):\n"
        "        os.chmod(path, 0o777)\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        "done = [export(target) for target in ('/dev/stdout', '/dev/null', '/proc/x.json')]\n"
        "print(done, file=sys.stderr)\n"
    )
    # Not pytest's folder, which other users cannot even enter.
    with tempfile.TemporaryDirectory() as home:
        shutil.copytree(store.path, home, dirs_exist_ok=True)
        done = subprocess.run(
            [sys.executable, "-c", code, run.id, home], capture_output=True, text=True, cwd=ROOT,
            env={**os.environ, "GMC_HOME": home},
        )  # fmt: skip
    assert "[0, 0, 2]" in done.stderr, done.stderr
    assert json.loads(done.stdout)["run"]["id"] == run.id
    assert "/proc/x.json cannot be written; give the name of a file" in done.stderr


def test_a_store_that_cannot_be_written_exports_without_a_seal(
    run: Run, store: Store, tmp_path: Path
) -> None:
    other = Store(tmp_path / "other")
    taken = import_run(other, export(store, run.id, tmp_path / "run.zip"))
    said: list[str] = []
    for path in (tmp_path / "a.zip", tmp_path / "a.json"):
        other.rows("PRAGMA query_only = ON")
        export(other, taken.id, path, tell=said.append)
        other.rows("PRAGMA query_only = OFF")
        assert not import_run(other, path).reusable
    assert len(said) == 2
    assert all("Exported without a seal" in words for words in said)
    # A secret that is there is only read.
    assert json.loads(export(other, taken.id, tmp_path / "b.json").read_text())["seal"]
    other.rows("PRAGMA query_only = ON")
    sealed = export(other, taken.id, tmp_path / "c.json", tell=said.append)
    assert json.loads(sealed.read_text())["seal"]
    assert len(said) == 2


def test_an_exported_file_has_the_usual_rights(store: Store, run: Run, tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    for name in ("run.json", "run.zip", "run.html"):
        path = export(store, run.id, tmp_path / name)
        assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"export_version": 1}', b"PK\x03\x04x"])
def test_foreign_files_are_refused_and_leave_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(content)
    store = Store(tmp_path / "store")
    with pytest.raises(StoreError):
        import_run(store, tmp_path / "x.zip")
    with pytest.raises(StoreError):
        import_run(store, tmp_path / "missing.zip")
    assert store.runs() == []


def test_an_import_writes_only_files_of_a_run(store: Store, run: Run, tmp_path: Path) -> None:
    export(store, run.id, tmp_path / "run.zip")
    with zipfile.ZipFile(tmp_path / "run.zip", "a") as archive:
        for name in (
            "../../evil", f"{run.id}/../../evil.npz", f"{run.id}/evil.sh", "/tmp/evil.npz",
            f"{run.id}/picture-../../x.npz", f"{run.id}/sub/model.npz",
        ):  # fmt: skip
            archive.writestr(name, "evil")
    other = Store(tmp_path / "other")
    taken = import_run(other, tmp_path / "run.zip")
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert not [name for name in names if "evil" in name or name == "x.npz"]
    assert {path.name for path in other.folder(taken.id).iterdir()} == {
        path.name for path in store.folder(run.id).iterdir()
    }


def test_csv_is_safe_in_a_spreadsheet(store: Store, run: Run, sweep: Run, tmp_path: Path) -> None:
    export(store, run.id, tmp_path / "run.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "run.csv").read_text())))
    assert len(rows) == 6
    assert rows[0]["label"] == "'" + NASTY
    records = store.records(run.id)
    assert float(rows[-1]["nmae"]) == records[-1][1].nmae
    assert float(rows[0]["log_likelihood"]) == records[0][1].log_likelihood
    export(store, sweep.id, tmp_path / "sweep.csv")
    assert len((tmp_path / "sweep.csv").read_text().splitlines()) == 9


def test_html_is_self_contained_and_escaped(
    store: Store, run: Run, sweep: Run, tmp_path: Path
) -> None:
    for one in (run, sweep):
        text = export(store, one.id, tmp_path / "r.html").read_text()
        assert "<script" not in text
        assert "&lt;script&gt;" in text
        assert not re.search(r"(src|href|url)\s*[=(]|https?://|@import", text)
        assert "<svg" in text and "polyline" in text
        assert "NMAE" in text and "GroupLens" in text and "fit.epsilon" in text
        assert "nan" not in re.sub(r"<[^>]*>", "", text).lower().split()


CONFIGS = [
    ExperimentConfig(),
    ExperimentConfig(
        data="/a folder/my 'ratings'.csv", reading={
            "format": "delimited", "separator": "\t", "header": False, "decimal": ",",
            "encoding": "cp1252", "user": 0, "item": 1, "rating": 3, "low": -10.0, "high": 10.0,
            "step": 0.5, "duplicates": "mean",
        },
        protocol="strong", weak_users=10, strong_users=3, seed=7, repetitions=3,
        filter=Filter(0, 1, 500),
        fit=FitSettings(epsilon=1e-7, iterations=0, noise=0.25, initial=-2.5, dtype="float32",
                        objective=True),
    ),
    ExperimentConfig(protocol="none", fit=FitSettings(epsilon=0.1 + 0.2, signals="columns")),
    ExperimentConfig(fit=FitSettings(signals="blocks", block=(4, 9), noise="/x/noise.npy")),
    ExperimentConfig(data="", protocol="pair", train_file="/a b/train.csv", test_file="/t.csv"),
    ExperimentConfig(
        fit=FitSettings(model="exact", noise=0.7, prior_strength=20.0, relaxation=2.0, warm=2,
                        prior_target=(0.1, 0.0, 0.3, 0.2), learn_noise=True, attributes=False),
    ),
    ExperimentConfig(data="x.csv", reading={"user": "who", "item": "what", "header": True}),
]  # fmt: skip


@pytest.mark.parametrize("config", CONFIGS)
def test_the_command_gives_the_same_configuration(config: ExperimentConfig) -> None:
    words = shlex.split("fit " + shlex.join(arguments_of(config)))
    assert config_from_arguments(build_parser().parse_args(words)) == config


def test_the_command_of_a_sweep(store: Store, sweep: Run) -> None:
    words = shlex.split(store.command(sweep.id))
    assert words[:2] == ["gmc", "sweep"]
    args = build_parser().parse_args(words[1:])
    assert (args.epsilon, args.iterations, args.seeds) == ((0.1, 1.0), (1, 2), (0, 1))
    base = config_from_arguments(args, epsilon=args.epsilon[0], iterations=2)
    made = SweepConfig(base, args.epsilon, args.iterations, args.seeds)
    data = store.runs(parent=sweep.id)[0].data
    keys = [key_of(child, data) for child in SweepConfig.of(sweep).children()]
    assert [key_of(child, data) for child in made.children()] == keys
    assert not args.keep_models
    keeping = shlex.split(command(replace(sweep, keeps_model=True)))
    assert build_parser().parse_args(keeping[1:]).keep_models

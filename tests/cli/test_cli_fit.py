"""``gmc fit`` and what all commands share: arguments, errors, exit codes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import refused, run, write_ratings

from gmc_core import cli
from gmc_core.base.errors import FetchError, NumericalError
from gmc_core.cli import fit, main
from gmc_core.data import readers, reading_options
from gmc_core.fitting import affordable, compiling, experiment
from gmc_core.fitting.experiment import Experiment
from gmc_core.gaussian.models import PRESETS
from gmc_core.model.model_file import load_model

ROOT = Path(__file__).parents[2]


@pytest.fixture
def data(tmp_path):
    return write_ratings(tmp_path / "ratings.csv")


SMALL = ["--min-user-ratings", "2", "--iterations", "3"]


# Shared -------------------------------------------------------------------------


def test_no_arguments_print_help(capsys):
    code, out, _ = run(capsys)
    assert code == 0
    assert "gmc fit --data sample" in out


@pytest.mark.parametrize("argv", [["--help"], ["fit", "--help"], ["data", "--help"], ["--version"]])
def test_help_and_version(capsys, argv):
    code, out, _ = run(capsys, *argv)
    assert code == 0
    assert "gmc" in out


def test_every_command_has_an_example(capsys):
    for command in ("fit", "data", "predict", "complete", "recommend", "reproduce"):
        _, out, _ = run(capsys, command, "--help")
        assert f"  gmc {command} " in out


def test_help_imports_nothing_slow():
    code = (
        "import sys\nfrom gmc_core.cli import main\nmain(['fit', '--help'])\n"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'scipy', 'numba', 'streamlit')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("modules", "slow"),
    [
        ("gmc_core.fitting.preparing", "numba"),  # as gmc data check does
        ("gmc_core.fitting.experiment, gmc_core.tables.pooling", "scipy.stats"),
        ("gmc_core.runs.store, gmc_core.comparison.comparators.registry", "scipy.stats"),
    ],
)
def test_commands_do_not_import_what_they_do_without(modules, slow):
    """Each of the two takes as long as all that a short command does."""
    code = f"import sys, {modules}\nsys.exit({slow!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0


def test_lists_are_those_of_the_readers():
    assert reading_options.FORMATS == readers.FORMATS
    assert reading_options.POLICIES == readers.POLICIES


@pytest.mark.parametrize(
    "argv",
    [
        ["nothing"],
        ["fit", "--nothing"],
        ["fit", "--iterations", "3.5"],
        ["fit", "--iterations", "-1"],
        ["fit", "--iterations", "100000"],
        ["fit", "--epsilon", "-0.1"],
        ["fit", "--epsilon", "nan"],
        ["fit", "--epsilon", "0,3"],
        ["fit", "--noise", "some"],
        ["fit", "--noise", "-1"],
        ["fit", "--noise", "nowhere.csv"],
        ["fit", "--init", "inf"],
        ["fit", "--block", "3x4"],
        ["fit", "--signals", "blocks", "--block", "0x4"],
        ["fit", "--signals", "blocks", "--block", "3"],
        ["fit", "--protocol", "strong", "--signals", "columns"],
        ["fit", "--strong-users", "10"],
        ["fit", "--weak-users", "0"],
        ["fit", "--weak-users", "100000"],
        ["fit", "--held-out", "0.1"],
        ["fit", "--protocol", "random", "--held-out", "10"],
        ["fit", "--protocol", "random", "--folds", "1"],
        ["fit", "--protocol", "random", "--folds", "published"],
        ["fit", "--protocol", "random", "--weak-users", "9"],
        ["fit", "--protocol", "latest", "--folds", "3"],
        ["fit", "--no-filter", "--min-user-ratings", "5"],
        ["fit", "--train", "a.csv", "--test", "b.csv", "--no-filter"],
        ["fit", "--train", "a.csv", "--test", "b.csv", "--last", "2"],
        ["fit", "--seed", "-1"],
        ["fit", "--repetitions", "0"],
        ["fit", "--max-items", "0"],
        ["fit", "--threads", "0"],
        ["fit", "--memory-limit", "0"],
        ["fit", "--memory-limit", "0.000001"],
        ["fit", "--data", "nowhere"],
        ["fit", "--data", "./nowhere.csv"],
        ["fit", "--train", "a.csv"],
        ["fit", "--train", "a.csv", "--test", "b.csv"],
        ["fit", "--train", "a.csv", "--test", "b.csv", "--data", "sample"],
        ["fit", "--train", "a.csv", "--test", "b.csv", "--protocol", "weak"],
        ["fit", "--scale", "5"],
        ["fit", "--scale", "5,1"],
        ["fit", "--columns", "who=1"],
        ["fit", "--format", "jester", "--header"],
        ["fit", "--json", "nowhere/a.json"],
        ["fit", "--model-out", "nowhere/a.npz"],
        ["fit", "--without-ratings"],
        ["fit", "--model-out", "m.npz", "--without-ratings", "--signals", "columns"],
        ["fit", "--detach", "--json", "a.json"],
        ["fit", "--again"],
    ],
    ids=" ".join,
)
def test_wrong_arguments_are_one_line_and_code_2(capsys, tmp_path, monkeypatch, argv):
    monkeypatch.chdir(tmp_path)
    assert len(refused(capsys, *argv)) > 30


def test_a_defect_is_not_hidden(monkeypatch):
    monkeypatch.setattr(fit, "run", lambda args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["fit"])


def test_a_narrow_terminal_gets_a_question_mark():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "gmc_core", "fit", "--epsilon", "-1"],
        cwd=ROOT, capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("gmc: error: ? must be")


def test_a_reader_that_leaves_is_no_error():
    command = f"{sys.executable} -m gmc_core fit --help | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "0"


# fit ----------------------------------------------------------------------------


def test_a_preset_is_settings_with_a_name(capsys, data, tmp_path):
    out = tmp_path / "result.json"
    given = ("--data", data, "--min-user-ratings", "2", "--preset", "fast")
    code, _, _ = run(capsys, "fit", *given, "--rank", "3", "--json", out)
    assert code == 0
    settings = json.loads(out.read_text())["config"]["fit"]
    fast = {name: one for name, one in PRESETS["fast"].as_dict().items() if one is not None}
    assert {name: settings[name] for name in fast} == {**fast, "rank": 3}
    assert "exclude each other" in refused(capsys, "fit", *given, "--model", "exact")


def test_result_progress_and_json(capsys, data, tmp_path):
    path = tmp_path / "r.json"
    code, out, err = run(capsys, "fit", "--data", data, *SMALL, "--repetitions", 2, "--json", path)
    assert code == 0
    assert "NMAE" in out
    assert "seed 1" in out
    assert "all" in out
    assert "iteration 3 of 3" in err
    assert "GFLOP" in err
    assert "scaled down" in err
    assert "filter: " in err
    result = json.loads(path.read_text())
    assert set(result) >= {"config", "data", "repetitions", "summary"}
    assert set(result["data"]) >= {
        "name", "sha256", "users", "items", "ratings", "scale", "divisor",
    }  # fmt: skip
    assert set(result["summary"]) >= {
        "nmae", "nmae_se", "mae", "rmse", "seconds", "peak_rss_bytes",
    }  # fmt: skip
    assert [repetition["seed"] for repetition in result["repetitions"]] == [0, 1]
    for repetition in result["repetitions"]:
        assert [record["iteration"] for record in repetition["records"]] == [1, 2, 3]
        assert repetition["n_test"] > 0
    assert result["finished"] is True
    assert result["data"]["divisor"] == pytest.approx(1.6)


def test_json_on_stdout_is_all_of_stdout(capsys, data):
    code, out, _ = run(capsys, "fit", "--data", data, *SMALL, "--json", "-")
    assert code == 0
    assert json.loads(out)["config"]["fit"]["iterations"] == 3


def test_a_download_shows_its_progress(capsys, monkeypatch):
    def offline(name, *, progress, **_):
        progress(0, 6_000_000)
        progress(3_000_000, 6_000_000)
        raise FetchError("offline")

    monkeypatch.setattr("gmc_core.data.datasets.fetch", offline)
    for command in (("fit", "--data", "ml-1m"), ("reproduce", "--table", "2")):
        code, _, err = run(capsys, *command)
        assert code == 2
        assert "3.0 MB of 6.0 MB" in err


def test_same_seed_same_result(capsys, data):
    results = []
    for _ in range(2):
        _, out, _ = run(capsys, "fit", "--data", data, *SMALL, "--json", "-", "--seed", 4)
        results.append(json.loads(out)["summary"]["nmae"])
    assert results[0] == results[1]


@pytest.mark.parametrize(
    "extra",
    [
        ["--protocol", "strong"],
        ["--protocol", "none"],
        ["--signals", "columns"],
        ["--signals", "blocks", "--block", "7x4"],
        ["--noise", "0.2", "--objective"],
        ["--model", "ordinal", "--learn-noise", "--prior-target", "0.1,0,0.3,0.2"],
        ["--model", "exact", "--no-attributes", "--relaxation", "3"],
        ["--dtype", "float32", "--threads", "1"],
        ["--iterations", "0"],
        ["--max-items", "10"],
        ["--init", "2.5", "--epsilon", "0.1", "--memory-limit", "1"],
    ],
    ids=" ".join,
)
def test_all_kinds_of_fit(capsys, data, extra):
    code, out, _ = run(capsys, "fit", "--data", data, *SMALL, *extra, "--json", "-")
    assert code == 0
    result = json.loads(out)
    measured = result["summary"]["nmae"]
    if extra[1] == "none":
        assert measured is None
    else:
        assert 0 < measured < 1


def test_no_iterations_predict_the_initial_value(capsys, data):
    _, out, _ = run(capsys, "fit", "--data", data, *SMALL, "--iterations", 0, "--json", "-")
    result = json.loads(out)
    assert result["repetitions"][0]["records"] == []
    assert result["summary"]["nmae"] > 0


def test_nothing_held_out_is_said(capsys, data):
    _, out, _ = run(capsys, "fit", "--data", data, *SMALL, "--protocol", "none")
    assert "no error to report" in out


def test_noise_from_files(capsys, data, tmp_path):
    variances = tmp_path / "v.csv"
    variances.write_text("\n".join(f"{item},0.2" for item in range(30)))
    matrix = tmp_path / "v.npy"
    np.save(matrix, 0.2 * np.eye(30))
    found = set()
    for noise in (variances, matrix, "0.2"):
        _, out, _ = run(capsys, "fit", "--data", data, *SMALL, "--noise", noise, "--json", "-")
        found.add(round(json.loads(out)["summary"]["rmse"], 9))
    assert len(found) == 1


def test_train_and_test_are_taken_as_they_are(capsys, tmp_path):
    lines = Path(write_ratings(tmp_path / "all.csv")).read_text().splitlines()
    header, rows = lines[0], lines[1:]
    test = rows[::7]
    train = [row for row in rows if row not in set(test)]
    (tmp_path / "train.csv").write_text("\n".join([header, *train]))
    (tmp_path / "test.csv").write_text("\n".join([header, *test, "new,99,3"]))
    argv = ["fit", "--train", tmp_path / "train.csv", "--test", tmp_path / "test.csv"]
    code, out, err = run(capsys, *argv, "--iterations", 2, "--json", "-")
    assert code == 0
    result = json.loads(out)
    assert result["repetitions"][0]["n_test"] == len(test) + 1
    assert result["repetitions"][0]["n_unseen"] == 1
    assert result["config"]["protocol"] == "pair"
    assert "predicted from the prior" in err


def test_random_folds_and_the_last_ratings(capsys, tmp_path):
    rows = [
        f"{u},{i},{1 + (u + i * i) % 5},{10**9 + (u + 5 * i) % 97}"
        for u in range(1, 21)
        for i in range(1, 16)
        if (u + 3 * i) % 5
    ]
    path = tmp_path / "timed.csv"
    path.write_text("\n".join(["user,item,rating,time", *rows]))
    few = ("--iterations", 1, "--no-filter")
    code, out, err = run(
        capsys, "fit", "--data", path, "--protocol", "random", "--folds", 4, "--repetitions", 4,
        *few,
    )  # fmt: skip
    assert code == 0, err
    assert "fold 1 of 4" in out and "fold 4 of 4" in out and "RMSE" in out
    assert f"{len(rows):,}" in out.split("all")[1].splitlines()[0]  # every rating once
    assert "repetition 2 of 4, fold 2 of 4" in err
    assert "Fold 2 of 4 is held out." in err and "No user, item or rating was filtered" in err
    code, out, err = run(
        capsys, "fit", "--data", path, "--protocol", "latest", "--last", 2, *few, "--json", "-"
    )
    result = json.loads(out)
    assert code == 0 and result["repetitions"][0]["n_test"] == 40
    assert result["config"]["last"] == 2 and "each user's last 2 ratings" in err
    assert "times from 2001-09-09 to 2001-09-09" in err


def test_reading_options_reach_the_reader(capsys, tmp_path):
    text = Path(write_ratings(tmp_path / "r.csv")).read_text()
    path = tmp_path / "odd.txt"
    rows = [row.split(",") for row in text.splitlines()[1:]]
    path.write_text("\n".join(f"{rating},0|{item}|{user}" for user, item, rating in rows))
    code, out, err = run(
        capsys, "fit", "--data", path, *SMALL, "--separator", "pipe", "--decimal", ",",
        "--no-header", "--columns", "rating=1,item=2,user=3", "--scale", "1,6,1", "--json", "-",
    )  # fmt: skip
    assert code == 0, err
    assert json.loads(out)["data"]["scale"] == [1, 6, 1]
    assert json.loads(out)["data"]["users"] == 60


def test_saved_model_can_be_loaded(capsys, data, tmp_path):
    path = tmp_path / "m.npz"
    code, _, err = run(capsys, "fit", "--data", data, *SMALL, "--model-out", path)
    assert code == 0
    assert "has not seen the held-out ratings" in err
    assert load_model(path).iteration == 3
    run(capsys, "fit", "--data", data, *SMALL, "--model-out", path, "--without-ratings")
    assert load_model(path).ratings is None


def test_the_cost_is_told_before_a_refusal_for_memory(capsys, data):
    line = refused(capsys, "fit", "--data", data, *SMALL, "--memory-limit", "0.00001")
    assert "may be used" in line


def test_what_takes_longer_than_an_hour_is_refused_unless_it_is_asked_for(
    capsys, data, monkeypatch
):
    monkeypatch.setattr(affordable, "LONGEST_UNASKED", 1e-3)
    line = refused(capsys, "fit", "--data", data, *SMALL)
    assert "would take about" in line and "--model factor" in line and "--max-items" in line
    assert "--long starts it" in line
    code, out, _ = run(capsys, "fit", "--data", data, *SMALL, "--long")
    assert code == 0 and "NMAE" in out


def test_numerical_breakdown_keeps_the_records(capsys, data, tmp_path, monkeypatch):
    original = Experiment.run

    def breaks(self, on_record=None, on_start=None):
        def record(index, record):
            on_record(index, record)
            if record.iteration == 2:
                raise NumericalError("Iteration 3: broke down; raise ε.", iteration=3)

        original(self, record, on_start)

    monkeypatch.setattr(Experiment, "run", breaks)
    path, model = tmp_path / "r.json", tmp_path / "m.npz"
    argv = ["--data", data, "--min-user-ratings", "2", "--json", path, "--model-out", model]
    line = refused(capsys, "fit", *argv)
    assert "Iteration 3" in line
    result = json.loads(path.read_text())
    assert result["finished"] is False
    assert "raise ε" in result["error"]
    assert len(result["repetitions"][0]["records"]) == 2
    assert load_model(model).iteration == 2


def test_epsilon_of_zero_says_what_to_do(capsys, data):
    line = refused(capsys, "fit", "--data", data, *SMALL, "--epsilon", 0, "--iterations", 50)
    assert "Raise ε" in line


def test_ctrl_c_keeps_what_was_reached(tmp_path):
    path, model = tmp_path / "r.json", tmp_path / "m.npz"
    process = subprocess.Popen(
        [
            sys.executable, "-m", "gmc_core", "fit", "--max-items", "300", "--iterations", "1000",
            "--json", str(path), "--model-out", str(model),
        ],
        cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        # A shell starts what runs in its background with SIGINT ignored, and children inherit it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    seen = []
    for line in process.stderr:
        seen.append(line)
        if line.startswith("iteration") and " 3 of" in line:
            break
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=200)
    assert process.returncode == 130, "".join(seen) + rest
    assert "Traceback" not in rest
    result = json.loads(path.read_text())
    assert result["finished"] is False
    assert 3 <= len(result["repetitions"][0]["records"]) < 1000
    assert load_model(model).iteration >= 3


def test_ctrl_c_between_repetitions_keeps_the_finished_ones(capsys, data, tmp_path, monkeypatch):
    path, model = tmp_path / "r.json", tmp_path / "m.npz"
    original = experiment.make_split

    def stopped(config, prepared, seed):
        if seed == 1:
            raise KeyboardInterrupt
        return original(config, prepared, seed)

    monkeypatch.setattr(experiment, "make_split", stopped)
    code, _, _ = run(
        capsys, "fit", "--data", data, *SMALL, "--repetitions", 3, "--json", path,
        "--model-out", model,
    )  # fmt: skip
    assert code == 130
    result = json.loads(path.read_text())
    assert result["finished"] is False
    assert [len(r["records"]) for r in result["repetitions"]] == [3]
    assert not model.exists()  # that of a repetition is gone with the next


def test_the_first_run_announces_compiling(capsys, data, monkeypatch):
    asked = []
    monkeypatch.setattr(compiling, "must_compile", lambda settings: True)
    monkeypatch.setattr(compiling, "compile_for", asked.append)
    _, _, err = run(capsys, "fit", "--data", data, *SMALL)
    assert err.index("compiling the numerical code") < err.index("iteration 1 of")
    assert "about 14 s" in err
    assert len(asked) == 1


def test_commands_are_registered_once():
    assert len(set(cli.MODULES)) == len(cli.MODULES)

"""Comparisons: the figures, going on after an interruption, and the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from making import STARS, random_table, ratings_of
from scipy import stats

from gmc_core.base.errors import ConfigError, DataError, GmcError, NumericalError
from gmc_core.cli import build_parser, main
from gmc_core.cli.arguments import config_from_arguments
from gmc_core.cli.compare import HEADER, markdown, seeds, text_table
from gmc_core.comparison.comparators import BASELINES, ItemProximity
from gmc_core.comparison.compare import Comparison, compare, rmse_difference
from gmc_core.comparison.comparison_files import ResultFiles, method_key, truth_of
from gmc_core.fitting.experiment import ExperimentConfig
from gmc_core.gaussian.linalg.threads import Cancelled, ThreadPool
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.filters import Filter
from gmc_core.protocol.metrics import score
from gmc_core.protocol.splits import no_split, weak_split
from gmc_core.runs.store import StoreError, comparisons
from gmc_core.runs.store.comparisons import ComparisonFolder, Plan, Status, command_for, folder_for


@dataclass
class Noisy:
    """The truth with noise of its own: no method, but errors of a known size."""

    name: str
    spread: float
    identity: str = "1"
    calls: list[int | None] = field(default_factory=list)

    @property
    def label(self) -> str:
        return f"The {self.name}"

    def predict(self, split, team):
        team.check()
        self.calls.append(split.seed)
        rng = np.random.default_rng([len(self.name), split.seed])
        return split.test_values + rng.normal(0, self.spread, split.n_test)


class Broken(Noisy):
    """Fails on every split but seed 1."""

    def predict(self, split, team):
        if split.seed != 1:
            raise NumericalError("It broke. Mend it.")
        return super().predict(split, team)


RATINGS = ratings_of(*random_table(90, 25, 0.5, 2))


def splits(count=4):
    return [weak_split(RATINGS, seed, 60 + 4 * seed) for seed in range(count)]


# Figures -------------------------------------------------------------------------------


def test_scores_and_intervals_are_those_of_the_textbook():
    good, bad = Noisy("good", 0.4), Noisy("worse", 0.9)
    own = splits()
    result = compare([bad, good], own, reference="worse")
    row = result.rows()[1]
    outcomes = {m: [result.outcomes[m, truth_of(s).key].predictions for s in own]
                for m in ("good", "worse")}  # fmt: skip
    y = np.concatenate([s.test_values for s in own])
    x = {m: np.concatenate(parts) for m, parts in outcomes.items()}
    assert row.scores == score(x["good"], y, STARS)
    assert row.splits == 4
    error = {m: np.abs(STARS.project(x[m]) - y) / 1.6 for m in x}
    wanted = stats.ttest_rel(error["good"], error["worse"]).confidence_interval(0.95)
    assert (row.nmae.ratings.low, row.nmae.ratings.high) == pytest.approx(tuple(wanted))
    each = {
        m: [score(p, s.test_values, STARS) for p, s in zip(outcomes[m], own, strict=True)]
        for m in outcomes
    }
    for metric, difference in (("nmae", row.nmae), ("rmse", row.rmse)):
        a, b = ([getattr(s, metric) for s in each[m]] for m in ("good", "worse"))
        wanted = stats.ttest_rel(a, b).confidence_interval(0.95)
        assert (difference.splits.low, difference.splits.high) == pytest.approx(tuple(wanted))
    rmse = {m: score(x[m], y, STARS).rmse for m in x}
    assert row.rmse.ratings.mean == pytest.approx(rmse["good"] - rmse["worse"])
    assert row.nmae.ratings.resolved
    reference = result.rows()[0]
    assert reference.nmae is None and reference.rmse is None
    swapped = result.against("good").rows()[0]
    assert swapped.nmae.ratings.mean == pytest.approx(-row.nmae.ratings.mean)


def test_the_interval_of_an_rmse_difference_is_that_of_repetition():
    """The standard error agrees with the spread over 2,000 fresh samples."""
    rng = np.random.default_rng(1)

    def sample():
        common = rng.normal(size=500)
        a = (common + rng.normal(0, 0.3, 500)) ** 2
        return a, (1.1 * common + rng.normal(0, 0.4, 500)) ** 2

    found = rmse_difference(*sample())
    many = [rmse_difference(*sample()) for _ in range(2000)]
    spread = np.std([difference.mean for difference in many])
    assert found.se == pytest.approx(spread, rel=0.15)
    truth = np.sqrt(1.09) - np.sqrt(1.21 + 0.16)
    covered = np.mean([d.low <= truth <= d.high for d in many])
    assert 0.93 < covered < 0.97


def test_errors_of_zero_have_no_root_to_divide_by():
    found = rmse_difference(np.zeros(5), np.zeros(5))
    assert (found.mean, found.low, found.high) == (0, 0, 0)


def test_one_split_has_no_interval_over_splits():
    row = compare([Noisy("good", 0.4), Noisy("worse", 0.9)], splits(1)).rows()[1]
    assert row.nmae.splits is None
    assert row.rmse.ratings.n == 60


def test_a_method_that_fails_leaves_the_others_alone():
    result = compare([Noisy("good", 0.4), Broken("broken", 0.5), Noisy("third", 0.6)], splits(3))
    good, broken, third = result.rows()
    assert (good.splits, broken.splits, third.splits) == (3, 1, 3)
    assert broken.failure == "It broke. Mend it."
    assert broken.nmae.ratings.n == 64, "only the common split counts"
    assert broken.nmae.splits is None
    nothing = compare([Broken("broken", 0.5)], splits(1)).rows()[0]
    assert nothing.scores is None and nothing.nmae is None


def test_questions_without_an_answer():
    good = Noisy("good", 0.4)
    with pytest.raises(DataError, match="no methods"):
        compare([], splits())
    with pytest.raises(DataError, match="no splits"):
        compare([good], [])
    with pytest.raises(ConfigError, match="one name"):
        compare([good, Noisy("good", 0.5)], splits())
    with pytest.raises(ConfigError, match="not among the methods"):
        compare([good], splits(), reference="nobody")
    with pytest.raises(DataError, match="Nothing is held out"):
        compare([good], [no_split(RATINGS)])
    other = weak_split(ratings_of(*random_table(90, 25, 0.5, 2), scale=replace(STARS, high=6)), 0)
    with pytest.raises(DataError, match="different rating scales"):
        compare([good], [*splits(1), other])


# Kept results ---------------------------------------------------------------------------


def test_what_was_computed_is_found_again(tmp_path):
    first, second = Noisy("good", 0.4), Noisy("good", 0.4)
    before = compare([first], splits(), folder=tmp_path)
    after = compare([second], splits(), folder=tmp_path)
    assert first.calls == [0, 1, 2, 3]
    assert second.calls == []
    assert before.rows() == after.rows()


def test_other_settings_and_other_splits_are_computed_anew(tmp_path):
    compare([Noisy("good", 0.4)], splits(2), folder=tmp_path)
    other = Noisy("good", 0.5, identity="2")
    compare([other], splits(2), folder=tmp_path)
    assert other.calls == [0, 1]
    moved = Noisy("good", 0.4)
    fewer = [weak_split(RATINGS, 0, 50), *splits(1)]
    compare([moved], fewer, folder=tmp_path)
    assert moved.calls == [0], "the same seed on other users is another split"


@pytest.mark.parametrize("damage", [b"", b"PK no zip", None])
def test_damaged_results_are_computed_anew(tmp_path, damage):
    compare([Noisy("good", 0.4)], splits(1), folder=tmp_path)
    (file,) = (tmp_path / "results").iterdir()
    if damage is None:
        np.savez(file, predictions=np.zeros(3), seconds=1, cpu_seconds=1, peak_bytes=1)
    else:
        file.write_bytes(damage)
    again = Noisy("good", 0.4)
    compare([again], splits(1), folder=tmp_path)
    assert again.calls == [0]


def test_an_interrupted_comparison_goes_on(tmp_path):
    methods = [Noisy("good", 0.4), Noisy("worse", 0.9)]
    seen = []
    with pytest.raises(Cancelled):
        compare(
            methods,
            splits(),
            folder=tmp_path,
            team=ThreadPool(1, lambda: len(seen) == 5),
            on_end=lambda step, _: seen.append(step.index),
        )
    assert [len(method.calls) for method in methods] == [3, 2]
    whole = compare(methods, splits(), folder=tmp_path)
    assert [len(method.calls) for method in methods] == [4, 4]
    fresh = compare([Noisy("good", 0.4), Noisy("worse", 0.9)], splits())
    for one, other in zip(whole.rows(), fresh.rows(), strict=True):
        assert one.scores == other.scores


def test_names_of_files_are_tame():
    assert "/" not in method_key(Noisy("../../etc", 1))
    assert method_key(Noisy("a", 1)) != method_key(Noisy("a", 1, identity="2"))


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        compare([Noisy("good", 0.4)], splits(1), folder=tmp_path / "file")


# The command ------------------------------------------------------------------------------

SMALL = ["compare", "--data", "sample", "--max-items", "40", "--threads", "1"]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GMC_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GMC_PEER_PYTHON", raising=False)


def test_seeds_are_lists_and_ranges():
    assert seeds("0..2,7,1") == (0, 1, 2, 7)
    for text in ("4..2", "-1", "x", "", "0..99999"):
        with pytest.raises(Exception, match="no "):
            seeds(text)


def test_the_command_prints_keeps_and_goes_on(tmp_path, capsys):
    folder, table = tmp_path / "folder", tmp_path / "table.md"
    command = [*SMALL, "--seeds", "0..1", "--folder", str(folder), "--methods"]
    assert main([*command, "bias,knn", "--markdown", str(table)]) == 0
    out, err = capsys.readouterr()
    assert "Item proximity" in out
    assert "[4/4] seed 1, Item proximity: NMAE 0." in err
    assert table.read_text().startswith("| method | splits | NMAE |")
    assert main([*command, "bias,knn,item", "--reference", "knn", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err.count("kept from before") == 4
    assert found["reference"] == "knn"
    assert [method["splits"] for method in found["methods"]] == [2, 2, 2]
    assert found["methods"][1]["nmae_difference"] is None
    low, high = (found["methods"][2]["nmae_difference"]["ratings"][end] for end in ("low", "high"))
    assert low < high
    kept = ComparisonFolder(folder)
    assert kept.status().state == "finished"
    assert [row.as_dict() for row in kept.comparison().rows()] == found["methods"]
    assert json.loads((folder / "summary.json").read_text()) == found


def test_the_same_figures_as_a_fit(tmp_path, capsys):
    out = tmp_path / "fit.json"
    common = ["--data", "sample", "--max-items", "40", "--seed", "3", "--threads", "1"]
    assert main(["fit", *common, "--json", str(out)]) == 0
    assert main([*SMALL, "--seeds", "3", "--methods", "paper", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]))
    wanted = json.loads(out.read_text())["summary"]
    assert found["methods"][0]["scores"]["nmae"] == pytest.approx(wanted["nmae"], abs=1e-9)
    assert found["methods"][0]["scores"]["rmse"] == pytest.approx(wanted["rmse"], abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--methods", "bias,nonesuch"], "no method 'nonesuch'"),
        (["--methods", "myfm-mf"], "--peer-python"),
        (["--methods", ","], "names no method"),
        (["--reference", "user", "--methods", "bias"], "add it to --methods"),
        (["--protocol", "none"], "holds nothing out"),
        (["--seeds", "5..1"], "no seed or range"),
        (["--peer-python", "/nonexistent/python"], "does not run"),
        (["--json", "/nonexistent/x.json"], "no folder"),
    ],
)
def test_mistakes_are_told_in_a_sentence(arguments, complaint, capsys):
    assert main([*SMALL, *arguments]) == 2
    assert complaint in capsys.readouterr().err


def test_the_list_names_every_method(capsys):
    assert main(["compare", "--list"]) == 0
    out = capsys.readouterr().out
    assert "knn" in out and "myfm-probit" in out and "not installed" in out


def test_tables_have_a_cell_for_every_column():
    result = compare([Noisy("good", 0.4), Broken("br|oken", 0.5)], [splits(1)[0]])
    lines = markdown(result).splitlines()
    assert all(line.replace(r"\|", "").count("|") == len(HEADER) + 1 for line in lines[:4])
    assert "br|oken" in text_table(result)


# In the background --------------------------------------------------------------------------


def plan_of(folder, methods=("bias", "item"), numbers=(0,), config=None) -> Plan:
    config = config or ExperimentConfig(filter=Filter(max_items=40))
    known = {**BASELINES, "knn": ItemProximity()}
    made = [known[name] for name in methods]
    return Plan(
        "A title",
        command_for(config, folder, numbers, methods, methods[0]),
        config.protocol,
        tuple(numbers),
        tuple((m.name, m.label, method_key(m)) for m in made),
        methods[0],
    )


def test_the_command_of_a_comparison_means_the_same(tmp_path):
    config = ExperimentConfig(
        data="ratings.csv",
        reading={"separator": ";", "header": False, "user": 1, "item": 0, "rating": 2},
        protocol="strong",
        filter=Filter(5, 1, 40),
        weak_users=200,
        strong_users=50,
    )
    command = command_for(config, ComparisonFolder(tmp_path), (0, 2), ["bias", "knn"], "knn", ["p"])
    arguments = build_parser().parse_args(list(command))
    assert config_from_arguments(arguments) == config
    assert arguments.seeds == (0, 2)
    assert arguments.methods == ("bias", "knn")
    assert arguments.reference == "knn"
    assert arguments.peer_python == ["p"]
    assert arguments.folder == str(tmp_path)


def test_the_command_of_a_comparison_finds_its_files_from_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("1,1,3\n")
    (tmp_path / "sample").mkdir()  # no reason to take it for the embedded one
    pair = ExperimentConfig(data="", protocol="pair", train_file="a.csv", test_file="b.csv")
    command = command_for(pair, ComparisonFolder(tmp_path), (0,), ["bias"], "bias", ["p/python"])
    assert f"--train={tmp_path / 'a.csv'}" in command
    assert f"--test={tmp_path / 'b.csv'}" in command
    assert f"--peer-python={tmp_path / 'p/python'}" in command
    named = command_for(ExperimentConfig(), ComparisonFolder(tmp_path), (0,), ["bias"], "bias")
    assert "--data=sample" in named


def test_a_comparison_is_found_by_its_data_and_protocol():
    config = ExperimentConfig(filter=Filter(max_items=40))
    same = replace(config, seed=5, repetitions=3, fit=FitSettings(epsilon=1.0))
    assert folder_for(config) == folder_for(same)
    assert folder_for(config) != folder_for(replace(config, protocol="strong"))
    assert folder_for(config) != folder_for(replace(config, filter=Filter()))


def wait_for(folder, *states) -> Status:
    until = time.monotonic() + 120
    while (status := folder.status()).state not in states:
        assert time.monotonic() < until, (status, folder.log.read_text())
        time.sleep(0.05)
    return status


def test_a_detached_comparison_finishes():
    folder = folder_for(ExperimentConfig(filter=Filter(max_items=40)))
    assert folder.status().state == "interrupted"
    comparisons.start(folder, plan_of(folder))
    assert folder.status().active
    with pytest.raises(ConfigError, match="already"):
        comparisons.start(folder, plan_of(folder))
    with pytest.raises(ConfigError, match="Cancel it first"):
        folder.delete()
    status = wait_for(folder, "finished", "failed", "interrupted")
    assert status.state == "finished", folder.log.read_text()
    assert (status.done, status.total) == (2, 2)
    assert folder.plan().title == "A title"
    assert [row.splits for row in folder.comparison().rows()] == [1, 1]
    assert [found.id for found in comparisons.comparisons()] == [folder.id]
    assert comparisons.comparison_named(folder.id) == folder
    folder.delete()
    assert comparisons.comparisons() == []
    with pytest.raises(StoreError, match="no comparison"):
        comparisons.comparison_named(folder.id)


def test_a_request_to_stop_reaches_the_command(tmp_path, capsys):
    folder = ComparisonFolder(tmp_path)
    # As if somebody had asked while the process was starting.
    folder.cancel()
    os.utime(tmp_path / "cancel", (time.time() + 60,) * 2)
    assert main([*SMALL, "--methods", "bias", "--folder", str(tmp_path)]) == 130
    assert folder.status().state == "cancelled"
    os.utime(tmp_path / "cancel", (1, 1))
    assert main([*SMALL, "--methods", "bias", "--folder", str(tmp_path)]) == 0
    assert folder.status().state == "finished"


def test_threads_may_ask_at_once(tmp_path):
    def ask(folder, barrier, told):
        barrier.wait()
        told.append(folder.cancelled())

    for wanted in (False, True):
        for _ in range(100):
            folder, barrier, told = ComparisonFolder(tmp_path), threading.Barrier(4), []
            asking = [threading.Thread(target=ask, args=(folder, barrier, told)) for _ in range(4)]
            for thread in asking:
                thread.start()
            for thread in asking:
                thread.join()
            assert told == [wanted] * 4
        folder.cancel()


def test_a_process_that_died_is_noticed(tmp_path):
    folder = ComparisonFolder(tmp_path)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    folder.keep_status(Status("running", 3, 8), dead.pid)
    dead.wait()
    status = folder.status()
    assert status.state == "interrupted"
    assert (status.done, status.total) == (3, 8)
    alive = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        folder.keep_status(Status("running", 3, 8), alive.pid)
        assert folder.status().active
    finally:
        alive.communicate()


def test_a_comparison_that_is_being_computed_is_not_started_again(tmp_path):
    folder = ComparisonFolder(tmp_path / "folder")
    with folder.claimed(), pytest.raises(ConfigError, match="being computed"):
        comparisons.start(folder, plan_of(folder))
    assert folder.plan() is None


def test_a_failure_says_why(tmp_path, capsys):
    command = ["compare", "--data", str(tmp_path / "no.csv"), "--folder", str(tmp_path / "f")]
    assert main(command) == 2
    status = ComparisonFolder(tmp_path / "f").status()
    assert status.state == "failed"
    assert "no.csv" in status.message


@pytest.mark.parametrize("text", ["", "[]", '{"title": 3}', "{", '{"scale": null}'])
def test_descriptions_that_cannot_be_read_are_no_comparisons(tmp_path, text):
    folder = ComparisonFolder(tmp_path)
    (tmp_path / "comparison.json").write_text(text)
    (tmp_path / "status.json").write_text(text)
    assert folder.plan() is None
    assert folder.comparison() is None
    assert folder.status().state == "interrupted"


def test_failures_are_read_back(tmp_path):
    folder = ComparisonFolder(tmp_path)
    split = splits(1)[0]
    truth = truth_of(split)
    ResultFiles(tmp_path).keep_truth(truth)
    plan = replace(plan_of(folder), scale=(1.0, 5.0, 1.0), splits=(truth.key,))
    folder.keep_plan(plan)
    assert folder.plan() == plan
    folder.keep_status(Status("finished", 2, 2, failures=(("item", truth.key, "It broke."),)))
    result = folder.comparison()
    assert isinstance(result, Comparison)
    assert [row.failure for row in result.rows()] == ["", "It broke."]
    assert issubclass(NumericalError, GmcError)

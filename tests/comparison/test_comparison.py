"""Comparisons: the figures, going on after an interruption, and the command."""

from __future__ import annotations

import json
import signal
import threading
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from making import STARS, random_table, ratings_of
from scipy import stats

from gmc_core.base.errors import ConfigError, DataError, NumericalError
from gmc_core.cli import main
from gmc_core.cli.compare import seeds
from gmc_core.cli.comparison_tables import HEADER, markdown, text_table
from gmc_core.comparison.comparators import BASELINES
from gmc_core.comparison.compare import compare, rmse_difference
from gmc_core.comparison.comparison_files import ResultFiles, held_out_of, is_result, method_key
from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.gaussian.linalg.threads import Cancelled, ThreadPool
from gmc_core.protocol.metrics import score
from gmc_core.protocol.splits import no_split, weak_split
from gmc_core.runs.comparisons import all_comparisons, comparison_of
from gmc_core.runs.store import Store


@dataclass
class Noisy:
    """The held-out ratings with noise of their own: no method, but errors of a known size."""

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
    outcomes = {m: [result.outcomes[m, held_out_of(s).key].predictions for s in own]
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
    expected = np.sqrt(1.09) - np.sqrt(1.21 + 0.16)
    covered = np.mean([d.low <= expected <= d.high for d in many])
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


def test_only_methods_that_read_times_are_computed_anew_for_other_times(tmp_path):
    class Timed(Noisy):
        reads_times = True

    def at(first):
        times = first + np.arange(len(RATINGS))
        return [weak_split(replace(RATINGS, times=times), seed) for seed in range(2)]

    plain, timed = Noisy("good", 0.4), Timed("timed", 0.4)
    alone = compare([plain], at(10**9), folder=tmp_path)
    both = compare([plain, timed], at(10**9), folder=tmp_path)
    assert (plain.calls, timed.calls) == ([0, 1], [0, 1])
    assert list(alone.held_out) == list(both.held_out)
    compare([plain, timed], at(2 * 10**9), folder=tmp_path)
    assert (plain.calls, timed.calls) == ([0, 1], [0, 1, 0, 1])
    compare([timed, plain], at(10**9), folder=tmp_path)
    assert (plain.calls, timed.calls) == ([0, 1], [0, 1, 0, 1])


@pytest.mark.parametrize("damage", [b"", b"PK no zip", None])
def test_damaged_results_are_computed_anew(tmp_path, damage):
    compare([Noisy("good", 0.4)], splits(1), folder=tmp_path)
    (file,) = tmp_path.glob("result--*")
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
    table = tmp_path / "table.md"
    command = [*SMALL, "--seeds", "0..1", "--methods"]
    assert main([*command, "bias,knn", "--markdown", str(table)]) == 0
    out, err = capsys.readouterr()
    assert "Item-based kNN" in out
    assert "[4/4] seed 1, Item-based kNN: NMAE 0." in err
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
    with Store() as store:
        newest, first = all_comparisons(store)
        assert [run.state for run in (newest, first)] == ["finished", "finished"]
        assert f"as run {newest.id}" in err
        rows = comparison_of(store, newest).rows()
        assert [row.as_dict() for row in rows] == found["methods"]
        assert newest.summary["table"] == found
        assert not store.rows("SELECT 1 FROM workers")
    # In another order it is the same one, and is shown as it is asked for now.
    capsys.readouterr()
    assert main([*command, "item,bias,knn", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    again = json.loads(out)
    assert f"computed before, as run {newest.id}" in err
    assert [method["name"] for method in again["methods"]] == ["item", "bias", "knn"]
    assert again["reference"] == "item"
    assert main([*command, "bias,knn", "--again", "--json", "-"]) == 0
    assert "kept from before" not in capsys.readouterr().err
    with Store() as store:
        assert len(all_comparisons(store)) == 3


def test_a_folder_keeps_predictions_apart_from_the_runs(tmp_path, capsys):
    folder = tmp_path / "folder"
    command = [*SMALL, "--seeds", "0..1", "--folder", str(folder), "--methods"]
    assert main([*command, "bias,item", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert json.loads((folder / "summary.json").read_text()) == found
    # The folders of an earlier version are read as well.
    for path in [path for path in folder.iterdir() if is_result(path.name)]:
        kind, _, name = path.name.partition("--")
        (folder / f"{kind}s").mkdir(exist_ok=True)
        path.rename(folder / f"{kind}s" / name)
    assert main([*command, "bias,item,user", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert err.count("kept from before") == 4
    assert json.loads(out)["methods"][:2] == found["methods"]
    assert main([*command, "bias,item", "--again", "--json", "-"]) == 0
    assert "kept from before" not in capsys.readouterr().err
    with Store() as store:
        assert all_comparisons(store) == []


def test_ctrl_c_cancels_and_the_same_command_goes_on(capsys, monkeypatch):
    command = [*SMALL, "--seeds", "0..1", "--methods", "bias,item"]
    predict = type(BASELINES["item"]).predict

    def interrupted(self, split, team):
        if self.name == "item" and split.seed == 1:
            signal.raise_signal(signal.SIGINT)
        return predict(self, split, team)

    with monkeypatch.context() as patch:
        patch.setattr(type(BASELINES["item"]), "predict", interrupted)
        assert main(command) == 130
    with Store() as store:
        (run,) = all_comparisons(store)
        assert (run.state, run.iteration) == ("cancelled", 3)
    assert "runs resume" in capsys.readouterr().err
    assert main(command) == 0
    assert capsys.readouterr().err.count("kept from before") == 3
    with Store() as store:
        (run,) = all_comparisons(store)
        assert (run.state, run.iteration) == ("finished", 4)


def test_a_request_to_stop_reaches_the_command(monkeypatch):
    """As the page's button makes it, while a fit is under way."""
    predict = type(BASELINES["item"]).predict

    def waiting(self, split, team):
        with Store() as store:
            store.cancel(all_comparisons(store)[0].id)
        while True:
            team.check()
            threading.Event().wait(0.01)

    monkeypatch.setattr(type(BASELINES["item"]), "predict", waiting)
    assert main([*SMALL, "--methods", "item"]) == 130
    monkeypatch.setattr(type(BASELINES["item"]), "predict", predict)
    with Store() as store:
        assert [run.state for run in all_comparisons(store)] == ["cancelled"]


def test_what_another_process_computes_is_refused(capsys, monkeypatch):
    second = []

    def beside(self, split, team):
        second.append(main([*SMALL, "--methods", "item"]))
        return np.full(split.n_test, 3.0)

    monkeypatch.setattr(type(BASELINES["item"]), "predict", beside)
    assert main([*SMALL, "--methods", "item"]) == 0
    assert second == [2]
    assert "is being computed already" in capsys.readouterr().err


def test_without_data_there_is_no_run(tmp_path, capsys):
    assert main(["compare", "--data", str(tmp_path / "no.csv")]) == 2
    assert "no.csv" in capsys.readouterr().err
    with Store() as store:
        assert all_comparisons(store) == []


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


# Plans --------------------------------------------------------------------------------------


def test_a_plan_is_read_back_and_ignores_order_in_what_it_stands_for():
    plan = ComparisonPlan.of([BASELINES["bias"], BASELINES["item"]], (3, 1), "item")
    assert ComparisonPlan.from_dict(json.loads(json.dumps(plan.as_dict()))) == plan
    other = ComparisonPlan.of([BASELINES["item"], BASELINES["bias"]], (1, 3))
    assert other.identity(STARS) == plan.identity(STARS)
    assert replace(plan, seeds=(1,)).identity(STARS) != plan.identity(STARS)
    assert plan.total == 4


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"methods": [], "labels": []}, "at least one method"),
        ({"labels": ["one"]}, "a label for each"),
        ({"seeds": []}, "at least one seed"),
        ({"seeds": [1, 1]}, "seed is given twice"),
        ({"seeds": [-1]}, "at least 0"),
        ({"seeds": list(range(1001))}, "at most 1,000"),
        ({"seeds": [1.5]}, "no whole number"),
        ({"reference": "user"}, "not among the methods"),
        ({"scale": [5, 1, None]}, "scale"),
        ({"scale": "x"}, "values to unpack"),
    ],
)
def test_plans_without_meaning_are_refused(changes, complaint):
    good = ComparisonPlan.of([BASELINES["bias"], BASELINES["item"]], (0, 1)).as_dict()
    with pytest.raises((ConfigError, TypeError, ValueError), match=complaint):
        ComparisonPlan.from_dict({**good, **changes})


def test_results_are_found_in_other_folders_and_get_a_second_name(tmp_path):
    split = splits(1)[0]
    compare([Noisy("good", 0.4)], [split], folder=tmp_path / "a")
    again = Noisy("good", 0.4)
    files = ResultFiles(tmp_path / "b", [tmp_path / "none", tmp_path / "a"])
    compare([again], [split], folder=files)
    assert again.calls == []
    names = {path.name for path in (tmp_path / "b").iterdir()}
    assert names == {path.name for path in (tmp_path / "a").iterdir()}
    for path in (tmp_path / "a").iterdir():
        path.unlink()
    compare([again], [split], folder=tmp_path / "b")
    assert again.calls == []

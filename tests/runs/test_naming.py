"""What runs are called, alone and in lists."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
from stored_runs import DATA, opened, small, stored, stored_sweep, use_folders

from gmc_core.cli import main
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.filters import Filter
from gmc_core.runs.store import Store
from gmc_core.runs.store.naming import distinct_names, run_name
from gmc_core.runs.store.transfer import export


@pytest.fixture(autouse=True)
def asked(tmp_path, monkeypatch):
    return use_folders(tmp_path, monkeypatch)


@pytest.fixture
def store(asked):
    with Store() as opened_store:
        yield opened_store


def named(store, known=DATA, **changes):
    run = store.submit(ExperimentConfig(**changes), again=True)
    return run_name(replace(run, data=known))


ORDINAL = FitSettings(model="ordinal", noise=None)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "sample, the paper’s MAP-EM, seed 0, weak, ε = 0.3, L = 10"),
        ({"fit": ORDINAL}, "sample, ordered ratings, seed 0, weak, L = 10"),
        ({"fit": ORDINAL, "seed": 7}, "sample, ordered ratings, seed 7, weak, L = 10"),
        (
            {"fit": FitSettings(model="exact", noise=0.7, prior_strength=20.0, warm=2,
                                relaxation=2.0, attributes=False), "repetitions": 3},
            "sample, exact EM, seeds 0–2, weak, σ² = 0.7, ν = 20, η = 2, warm-up 2, "
            "without attributes, L = 10",
        ),
        (
            {"fit": FitSettings(model="exact", noise=0.5, learn_noise=True, epsilon=0.1)},
            "sample, exact EM, seed 0, weak, ε = 0.1, σ² learned, L = 10",
        ),
        (
            {"fit": FitSettings(model="mixture", components=4, dtype="float32")},
            "sample, mixture of 4, seed 0, weak, ε = 0.3, float32, L = 10",
        ),
        (
            {"protocol": "none", "fit": FitSettings(model="mixture")},
            "sample, mixture of 2, all ratings, ε = 0.3, L = 10",
        ),
        (
            {"protocol": "random", "fit": ORDINAL},
            "sample, ordered ratings, seed 0, random 10 %, filtered, L = 10",
        ),
        (
            {"protocol": "random", "fit": ORDINAL, "folds": 5, "seed": 1, "repetitions": 3,
             "filter": Filter(0, 0)},
            "sample, ordered ratings, folds 2–4, random, 5 folds, no filter, L = 10",
        ),
        (
            {"protocol": "random", "fit": ORDINAL, "folds": 5, "seed": 7},
            "sample, ordered ratings, seed 7, random, 5 folds, filtered, L = 10",
        ),
        (
            {"protocol": "random", "fit": ORDINAL, "folds": "published"},
            "sample, ordered ratings, fold 1, random, published folds, filtered, L = 10",
        ),
        (
            {"protocol": "latest", "fit": ORDINAL, "held_out": 0.25, "filter": Filter(0, 0, 99)},
            "sample, ordered ratings, seed 0, latest 25 %, users from 0 ratings, items from 0 "
            "ratings, at most 99 items, L = 10",
        ),
        (
            {"protocol": "latest", "fit": ORDINAL},
            "sample, ordered ratings, seed 0, latest 1, filtered, L = 10",
        ),
        (
            {"protocol": "strong", "filter": Filter(5, 2, 800), "strong_users": 9,
             "fit": FitSettings(noise=0.25, initial=2.5, signals="rows")},
            "sample, the paper’s MAP-EM, seed 0, strong, ε = 0.3, σ² = 0.25, start 2.5, "
            "9 new users, users from 5 ratings, at most 800 items, L = 10",
        ),
        (
            {"fit": FitSettings(signals="blocks", block=(4, 9), noise="/x/noise.npy")},
            "sample, the paper’s MAP-EM, seed 0, weak, ε = 0.3, noise of noise.npy, blocks as "
            "signals of 4 × 9, L = 10",
        ),
    ],
)  # fmt: skip
def test_a_name_tells_model_seed_and_the_settings_that_matter(store, changes, name):
    assert named(store, **changes) == name


def test_a_name_before_the_data_have_been_seen(store):
    path = "/home/me/uploads/0123456789abcdef/my votes.csv"
    assert named(store, None, data=path) == (
        "my votes.csv, the paper’s MAP-EM, seed 0, weak, ε = default, L = 10"
    )


def test_a_sweep_names_its_model_and_seeds(store):
    assert run_name(stored_sweep(store)) == (
        "Sweep of 2 ε on sample, the paper’s MAP-EM, seeds 0–1, weak, ε = 0.1–0.3, "
        "at most 60 items, L = 2, 4"
    )


def test_in_a_list_no_two_names_are_equal(store):
    labels = [stored(store, config=small(seed=seed), label="mine") for seed in (0, 1)]
    alike = [stored(store), stored(store)]
    other = stored(store, data={**DATA, "sha256": "ab" * 32})
    alone = stored(store, config=small(seed=5))
    runs = [*labels, *alike, other, alone]
    names = distinct_names(runs)
    assert len(set(names.values())) == len(runs)
    assert names[labels[0].id] == "mine, seed 0" and names[labels[1].id] == "mine, seed 1"
    assert names[alone.id] == run_name(alone)
    assert ", data ababab" in names[other.id]
    for one in alike:  # told apart by their time, or if that is the same by their id
        assert names[one.id].startswith(f"{run_name(one)}, data {DATA['sha256'][:6]}, ")


def test_every_page_with_runs_names_model_and_seed(store):
    first = stored(store, config=small(seed=3))
    second = stored(store, config=small(seed=4, fit=replace(ORDINAL, iterations=4)))
    at = opened("runs")
    rows = at.dataframe[0].value
    assert list(rows["run"]) == [run_name(second), run_name(first)]
    assert list(rows["seeds"]) == ["4", "3"]
    assert list(rows["model"]) == ["ordered ratings", "the paper’s MAP-EM"]
    assert list(rows["epsilon"]) == ["–", "0.3"]
    assert at.multiselect(key="picked").options == [run_name(second), run_name(first)]
    links = [link.proto.label for link in opened("home").get("page_link")]
    assert {run_name(first), run_name(second)} <= {link.replace("\\", "") for link in links}


def test_the_command_line_and_the_exports_name_model_and_seed(store, tmp_path, capsys):
    run = stored(store, config=small(seed=3, fit=replace(ORDINAL, iterations=4)))
    name = "sample, ordered ratings, seed 3, weak, at most 60 items, L = 4"
    assert main(["runs", "list"]) == 0
    assert name in capsys.readouterr().out
    assert main(["runs", "show", run.id]) == 0
    assert name in capsys.readouterr().out
    other = stored(store, config=small(seed=4))
    assert main(["runs", "compare", run.id, other.id]) == 0
    out = capsys.readouterr().out
    assert name in out and run_name(other) in out
    for ending in ("html", "csv", "json"):
        text = export(store, run.id, tmp_path / f"r.{ending}").read_text()
        assert name in text
    assert run.id in [one.id for one in store.runs(text="seed 3")]


def test_a_start_on_the_command_line_that_finds_the_same_says_so(store, capsys):
    words = ["fit", "--detach", "--max-items=60", "--iterations=4"]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "nothing new was started" not in said.err
    assert main(words) == 0
    again = capsys.readouterr()
    assert again.out == said.out
    assert "is waiting to be computed, since" in again.err
    assert "nothing new was started. --again repeats it" in again.err
    assert main([*words, "--again"]) == 0
    new = capsys.readouterr()
    assert new.out != said.out and "nothing new" not in new.err
    sweep = ["sweep", "--detach", "--max-items=60", "--epsilon=0.1,0.3"]
    assert main(sweep) == 0
    assert "nothing new" not in capsys.readouterr().err
    assert main(sweep) == 0
    assert "this sweep is waiting to be computed" in capsys.readouterr().err


def test_a_waiting_run_is_repeated_with_the_options_that_it_was_given(store, tmp_path, capsys):
    data = tmp_path / "r.txt"
    data.write_text("who;what;how\na;x;1,5\nb;x;99\n")
    given = ["--separator=;", "--decimal=,", "--header", "--columns=user=1,item=2,rating=3"]
    given += ["--encoding=utf-8", "--scale=1,5,0.5", "--duplicates=first", "--format=delimited"]
    given += ["--not-rated=99", "--not-rated=NR", "--min-user-ratings=1", "--min-item-ratings=1"]
    given += ["--protocol=none"]
    assert main(["fit", "--detach", f"--data={data}", *given]) == 0
    run = capsys.readouterr().out.strip()
    assert main(["runs", "show", run]) == 0
    said = capsys.readouterr().out.split("repeat it with:")[1]
    missing = set(given) - set(shlex.split(said))
    assert not missing


def test_a_comparison_that_is_there_says_so_and_can_be_computed_again(tmp_path, capsys):
    words = ["compare", "--max-items=60", "--methods=bias,item", f"--folder={tmp_path / 'c'}"]
    assert main(words) == 0
    assert "nothing new was computed" not in capsys.readouterr().err
    assert main(words) == 0
    assert "computed before; nothing new was computed. --again" in capsys.readouterr().err
    assert main([*words, "--again"]) == 0
    assert "kept from before" not in capsys.readouterr().err

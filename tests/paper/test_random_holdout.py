"""The literature's figures under random hold-out: which data and experiments they belong to."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from commands import refused, run, write_ratings
from stored_runs import ML1M

from gmc_core.cli.reproduce import random_comparison
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.gaussian.settings import FitSettings
from gmc_core.paper.random_holdout import (
    CHOSEN_WORDS,
    MOVIELENS_1M,
    RANDOM_TABLES,
    caution,
    is_random_tenth,
    random_table_for,
)
from gmc_core.protocol.filters import Filter

WHOLE = {**ML1M, "items": 3706}
TENTH = ExperimentConfig(
    data="ml-1m", protocol="random", filter=Filter(0, 0), fit=FitSettings(iterations=2)
)


def test_tables_are_known_by_their_size_without_a_filter():
    assert random_table_for(WHOLE) is MOVIELENS_1M
    assert random_table_for(ML1M) is None  # after the filter
    assert random_table_for({**WHOLE, "scale": [0.5, 5.0, 0.5]}) is None
    assert random_table_for(None) is None


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({}, True),
        ({"held_out": 0.1}, True),
        ({"folds": 10, "repetitions": 3}, True),
        ({"held_out": 0.2}, False),
        ({"folds": 5}, False),
        ({"filter": Filter()}, False),
        ({"filter": Filter(0, 0, 500)}, False),
        ({"protocol": "latest"}, False),
        ({"protocol": "weak"}, False),
    ],
)
def test_only_a_random_tenth_without_a_filter_compares(changes, same):
    assert is_random_tenth(replace(TENTH, **changes)) == same


def test_every_figure_says_where_it_comes_from_and_how_it_was_chosen():
    for table in RANDOM_TABLES.values():
        assert f"{table.users:,} users" in caution(table)
        values = [one.rmse for one in table.results]
        assert values == sorted(values) and 0.7 < values[0] < values[-1] < 0.9
        for one in table.results:
            assert str(one.reference) and one.split and CHOSEN_WORDS[one.chosen]
    chosen = {one.method: one.chosen for one in MOVIELENS_1M.results}
    assert chosen["GLocal-K"] == "test" and chosen["CF-NADE"] == "inside"
    assert "times" in MOVIELENS_1M.results[0].uses
    assert [one.rmse_text for one in MOVIELENS_1M.results[:3]] == ["0.8140", "0.8227", "0.824"]


def test_the_measured_figure_stands_among_the_published():
    lines = random_comparison(
        MOVIELENS_1M, {"rmse": 0.8236, "nmae": 0.3714, "nmae_se": 0.001}, 1, "ordinal"
    ).splitlines()
    methods = [line.split("  ")[0] for line in lines[:10]]
    own = methods.index("This product, ordered ratings")
    assert methods[own - 1] == "GLocal-K" and methods[own + 1] == "SparseFC (kernelNet)"
    assert "on the test ratings" in lines[own - 1]


@pytest.mark.parametrize(
    ("given", "model"), [((), "two-sided"), (("--model", "ordinal"), "ordinal")]
)
def test_other_data_run_and_do_not_compare(capsys, tmp_path, given, model):
    path = write_ratings(tmp_path / "r.csv")
    code, out, err = run(
        capsys, "reproduce", "--table", "random", "--data", path, "--repetitions", 1, *given,
        "--json", tmp_path / "out.json",
    )  # fmt: skip
    assert code == 0, err
    assert "does not compare" in err and "no published figures for these data" in out
    content = json.loads((tmp_path / "out.json").read_text())
    config = ExperimentConfig.from_dict(content["random"]["config"])
    assert not content["comparable"] and is_random_tenth(config)
    assert (config.fit.model, config.fit.attributes) == (model, False)
    assert bool(config.fit.average_rank) == (model == "two-sided")
    assert "--model" in refused(capsys, "reproduce", "--table", "2", "--model", "best")
    assert "--epsilon" in refused(capsys, "reproduce", "--table", "random", "--epsilon", "1")

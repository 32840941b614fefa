"""The tables' systems, printed and measured."""

from __future__ import annotations

import numpy as np
import pytest
from making import STARS, random_table, ratings_of

from gmc_core.comparison.comparators import method_named
from gmc_core.comparison.comparators.measure import Outcome
from gmc_core.comparison.compare import Comparison
from gmc_core.comparison.comparison_files import held_out_of
from gmc_core.paper.published import EACHMOVIE, MOVIELENS_1M
from gmc_core.paper.systems import METHODS, OWN, system_rows, verdict
from gmc_core.protocol.splits import Split, weak_split


@pytest.mark.parametrize(
    ("printed", "measured", "se", "word"),
    [
        (0.40, 0.41, 0.004, "within 3 SE"),
        (0.40, 0.389, 0.004, "within 3 SE"),
        (0.40, 0.413, 0.004, "worse"),
        (0.40, 0.387, 0.004, "better"),
        (0.40, 0.40, 0.0, "within 3 SE"),
        (0.40, 0.41, float("nan"), "worse"),
    ],
)
def test_the_verdict_is_a_rule(printed, measured, se, word):
    assert verdict(printed, measured, se) == word


def test_every_line_of_both_tables_is_a_method():
    for table in (EACHMOVIE, MOVIELENS_1M):
        assert {row.method for row in table.results} == {*METHODS, OWN}
    for name in METHODS.values():
        assert method_named(name, STARS).name == name


@pytest.fixture
def comparison(small_split: Split) -> Comparison:
    split = small_split
    held = held_out_of(split)
    made = Comparison(STARS, {"paper": "GM", "urp": "URP"}, "paper", {held.key: held})
    off = np.where(np.arange(split.n_test) % 2 == 0, 1.0, 0.0)
    away = np.where(split.test_values < 3, off, -off)
    for name, predicted in (("paper", split.test_values), ("urp", split.test_values + away)):
        made.outcomes[name, held.key] = Outcome(predicted, 1.0, 2.0, 3.0)
    return made


@pytest.fixture
def small_split() -> Split:
    return weak_split(ratings_of(*random_table(60, 20, 0.6, 0)), 0)


def test_lines_have_what_is_printed_measured_and_their_difference(comparison):
    rows = {
        row.published.method: row
        for row in system_rows(MOVIELENS_1M, "strong", comparison, "paper", True)
    }
    urp, own = rows["URP"], rows["GM"]
    assert (urp.printed, own.printed) == (0.4444, 0.3928)
    assert urp.measured is not None and urp.measured.scores is not None
    assert urp.measured.scores.nmae == pytest.approx(0.5 / 1.6, abs=0.01)
    assert urp.difference is not None
    assert urp.difference.ratings.mean == pytest.approx(urp.measured.scores.nmae)
    assert own.verdict == "better" and own.difference is None
    assert rows["MMMF"].measured is None and rows["MMMF"].verdict == ""
    assert rows["M³F"].printed is None
    assert urp.as_dict()["measured"]["seconds"] == 1.0


def test_data_that_do_not_compare_get_no_verdict(comparison):
    rows = system_rows(EACHMOVIE, "weak", comparison, "paper", False)
    assert all(row.verdict == "" for row in rows)
    assert [row.printed for row in rows][:2] == [0.4422, 0.4520]

"""Verdicts of the paper's claims: every rule can come out every way."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from made_claims import DATA, ML1M, comparison, held_out, measured, results, subject
from scipy import stats

from gmc_core.paper.claims import CLAIMS, MARGIN, Measured, Results, judge
from gmc_core.paper.claims.accuracy import least_deviations_line, least_squares_line
from gmc_core.paper.claims.report import as_html, as_json, as_markdown, on_chart, summary_sentence
from gmc_core.paper.claims.verdict import Line, Verdict, above, all_of, at_most, number, within
from gmc_core.paper.measured import MeasuredSystems
from gmc_core.paper.published import MOVIELENS_1M
from gmc_core.paper.systems import OWN

BY_NAME = {claim.name: claim for claim in CLAIMS}
HOLDS, FAILS, OPEN, NONE = "holds", "does not hold", "not resolved", "not measured"
# Shares of worse predictions: .625 of it is the difference of NMAE.
MUCH, BORDER, LITTLE = 0.05, 0.008, 0.001


def verdict(name: str, found: Results) -> Verdict:
    return BY_NAME[name].judge(found)


# Rules ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "same", "small", "positive"),
    [
        (-0.004, 0.004, HOLDS, HOLDS, OPEN),
        (0.001, 0.005, HOLDS, HOLDS, HOLDS),
        (0.001, 0.006, OPEN, OPEN, HOLDS),
        (0.006, 0.009, FAILS, FAILS, HOLDS),
        (-0.009, -0.006, FAILS, HOLDS, FAILS),
        (-0.009, 0.009, OPEN, OPEN, OPEN),
        (-0.006, 0.001, OPEN, HOLDS, OPEN),
    ],
)
def test_the_interval_and_the_margin_decide(low, high, same, small, positive):
    line = Line("x", (low + high) / 2, low, high)
    assert (within(line), at_most(line), above(line)) == (same, small, positive)


def test_an_exact_figure_is_always_decided():
    assert within(Line("x", MARGIN)) == HOLDS
    assert at_most(Line("x", 0.0051)) == FAILS


def test_one_condition_that_fails_decides():
    assert all_of([HOLDS, OPEN, FAILS]) == FAILS
    assert all_of([HOLDS, OPEN]) == OPEN
    assert all_of([HOLDS, HOLDS]) == HOLDS
    with pytest.raises(ValueError, match="condition"):
        all_of([])


def test_nan_is_never_a_number():
    assert number(float("nan"), "NMAE") == "–"
    assert within(Line("x", float("nan"), float("nan"), float("nan"))) == OPEN


# Comparisons of settings -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "experiment", "worse", "expected"),
    [
        ("convergence", "longer", LITTLE, HOLDS),
        ("convergence", "longer", MUCH, FAILS),
        ("convergence", "longer", -MUCH, FAILS),
        ("convergence", "longer", BORDER, OPEN),
        ("epsilon", "epsilon 0.15", LITTLE, HOLDS),
        ("epsilon", "epsilon 0.6", MUCH, FAILS),
        ("epsilon", "epsilon 0.15", -BORDER, OPEN),
        ("initial", "initial 2", LITTLE, HOLDS),
        ("initial", "initial 4", -MUCH, FAILS),
        ("initial", "initial 2", BORDER, OPEN),
        ("noise", "noise 0.1", MUCH, HOLDS),
        ("noise", "noise 0.5", -MUCH, FAILS),
        ("noise", "noise 0.5", -BORDER, OPEN),
        ("mixtures", "mixture 2", MUCH, HOLDS),
        ("mixtures", "mixture 3", -MUCH, FAILS),
        ("mixtures", "mixture 3", -BORDER, OPEN),
    ],
)
def test_settings_are_compared_on_the_same_ratings(claim, experiment, worse, expected):
    found = results({experiment: measured(experiment, worse, iterations=20)})
    got = verdict(claim, found)
    assert got.verdict == expected, got.sentence
    assert got.low <= got.value <= got.high
    assert {f"run{experiment.replace(' ', '').replace('.', '')}", "runpaper"} <= set(got.runs)
    sign = -1 if claim in ("noise", "mixtures") else 1
    assert any(line.value == pytest.approx(sign * worse * 0.625, abs=1e-9) for line in got.lines)


@pytest.mark.parametrize(
    ("columns", "blocks", "expected", "words"),
    [
        (MUCH, MUCH, HOLDS, "says too little"),
        (0.004, MUCH, HOLDS, "as “slightly” says"),
        (-MUCH, MUCH, FAILS, "not better than every other"),
        (0.0, MUCH, OPEN, "not resolved"),
    ],
)
def test_rows_must_beat_columns_and_blocks(columns, blocks, expected, words):
    changes = {
        "columns": measured("columns", columns),
        "blocks 16": measured("blocks 16", blocks),
        "blocks 32": measured("blocks 32", blocks),
    }
    got = verdict("signals", results(changes))
    assert got.verdict == expected
    assert words in got.sentence


def test_held_out_ratings_that_differ_are_not_compared():
    other = replace(measured("columns"), held_out=tuple(held_out(seed) for seed in (7, 8, 9)))
    got = verdict("signals", results({"columns": other}))
    assert got.verdict == NONE
    assert "other held-out ratings" in got.sentence


# One set of predictions --------------------------------------------------------------------


def predicted(change, n=2000, noise=0.7):
    """The paper's run, with predictions made from ratings that scatter around them."""
    parts = []
    for seed in range(3):
        rng = np.random.default_rng(100 + seed)
        truth = rng.uniform(1.5, 4.5, n)
        actual = np.clip(np.round(truth + rng.normal(0, noise, n)), 1, 5)
        parts.append(replace(held_out(seed, n=n), predictions=change(truth, rng), actual=actual))
    return results({"paper": replace(measured("paper"), held_out=tuple(parts))})


def test_projection_helps_where_predictions_are_near_the_ratings():
    near = predicted(lambda truth, rng: truth, noise=0.01)
    assert verdict("projection", near).verdict == HOLDS
    # Just beyond the middle between two ratings, projection goes the wrong way.
    far = results()
    parts = tuple(
        replace(part, predictions=np.where(part.actual > 3, part.actual - 0.6, part.actual + 0.6))
        for part in far.measured["paper"].held_out
    )
    far.measured["paper"] = replace(far.measured["paper"], held_out=parts)
    assert verdict("projection", far).verdict == FAILS
    same = results()  # predictions on the scale already
    assert verdict("projection", same).verdict == OPEN
    data = {**DATA, "scale": [1.0, 5.0, None]}
    assert "continuous" in verdict("projection", results(subject=subject(data))).sentence


def test_a_line_that_is_better_refutes_the_estimate():
    best = predicted(lambda truth, rng: truth)
    assert verdict("optimal", best).verdict == HOLDS
    too_wide = predicted(lambda truth, rng: 3 + 2 * (truth - 3))
    got = verdict("optimal", too_wide)
    assert got.verdict == FAILS
    assert "theorem" in got.sentence
    few = predicted(lambda truth, rng: 3 + 1.2 * (truth - 3), n=60)
    assert verdict("optimal", few).verdict == OPEN


def test_the_lines_are_the_best_ones():
    rng = np.random.default_rng(5)
    x = rng.normal(3, 1, 400)
    y = 0.5 + 0.8 * x + rng.standard_t(2, 400)
    a, c = least_squares_line(x, y)
    np.testing.assert_allclose([c, a], np.polyfit(x, y, 1))
    a, c = least_deviations_line(x, y)
    loss = np.abs(a + c * x - y).sum()
    for da, dc in ((0.02, 0), (-0.02, 0), (0, 0.02), (0, -0.02), (0.05, -0.02)):
        assert np.abs(a + da + (c + dc) * x - y).sum() >= loss - 1e-6


# The algorithm -------------------------------------------------------------------------


def test_the_objective_must_rise_every_time():
    rising = measured("objective", map_objective=lambda t: -100.0 / t, penalised_objective=-1.0)
    assert verdict("objective", results({"objective": rising})).verdict == HOLDS
    falling = measured(
        "objective", map_objective=lambda t: -100.0 + t - 3 * (t == 5), penalised_objective=-1.0
    )
    got = verdict("objective", results({"objective": falling}))
    assert got.verdict == FAILS
    assert "iteration 5" in got.sentence
    assert got.value == 3  # falls in each of three repetitions
    unknown = measured("objective", map_objective=None)
    assert verdict("objective", results({"objective": unknown})).verdict == NONE


def test_full_rank_counts_the_fits_that_broke_down():
    broken = Measured(
        "runsingular", "failed", error_kind="not-positive-definite", error_iteration=4
    )
    got = verdict("full-rank", results({"singular": broken}))
    assert got.verdict == HOLDS
    assert "iteration 4, so it is needed" in got.sentence
    assert got.runs[-1] == "runsingular"
    assert "none became singular either" in verdict("full-rank", results()).sentence
    worded = Measured("runsingular", "failed", "Iteration 4: Σ is not positive definite.")
    assert "the run is failed" in verdict("full-rank", results({"singular": worded})).sentence
    failing = replace(broken, run="runcolumns")
    got = verdict("full-rank", results({"columns": failing}))
    assert (got.verdict, got.value) == (FAILS, 1)
    assert "(columns: a covariance became singular in iteration 4)" in got.sentence
    # One that ended in another way is not resumed either, so it counts as well.
    for kind, words in (
        ("not-finite", "a number was no longer finite"),
        ("numerical", "the computation broke down"),
    ):
        got = verdict("full-rank", results({"columns": replace(failing, error_kind=kind)}))
        assert (got.verdict, got.value) == (FAILS, 1)
        assert f"1 of {int(got.lines[1].value)} fits" in got.sentence
        assert f"(columns: {words} in iteration 4)" in got.sentence
        got = verdict("full-rank", results({"singular": replace(broken, error_kind=kind)}))
        assert f"With ε = 0 {words} in iteration 4, so it is needed here" in got.sentence
    waiting = results({"paper": Measured("runpaper", "running")})
    assert verdict("full-rank", waiting).verdict == NONE
    assert "not been tried" in verdict("full-rank", results({"singular": None})).sentence


def test_the_formula_fails_with_a_heavy_tail():
    assert verdict("cost", results()).verdict == HOLDS
    assert verdict("cost", results()).value == pytest.approx(1)
    tail = results(subject=subject(counts=[5] * 99 + [505]))
    got = verdict("cost", tail)
    assert got.verdict == FAILS
    assert "505" in got.sentence


@pytest.mark.parametrize(
    ("m_seconds", "expected"),
    [
        (0.05, HOLDS),
        (1.0, FAILS),
        (lambda t: 0.01 if t % 2 else 0.25, OPEN),
    ],
)
def test_the_m_steps_share_is_timed(m_seconds, expected):
    found = results({"paper": measured("paper", e_seconds=1.0, m_seconds=m_seconds)})
    assert verdict("m-step", found).verdict == expected


def test_a_range_of_few_values_is_no_interval():
    """Two values: their range, by that name; three: Student's interval, which is wider."""
    matrix = 8 * DATA["items"] ** 2
    two = comparison({"paper": 0.0}, peaks=[matrix, 2 * matrix, 3 * matrix])
    got = verdict("memory", results(comparison=two))
    assert got.interval == "range of 2: 2 to 3"
    assert "95 %" not in got.lines[0].label
    three = Line.over_splits("x", [2.0, 2.5, 3.0], "times")
    low, high = stats.t.interval(0.95, 2, loc=2.5, scale=0.5 / 3**0.5)
    assert (three.low, three.high, three.range_of) == pytest.approx((low, high, 0))
    one = Line.over_splits("x", [2.0], "times")
    assert (one.value, one.low, one.high) == (2.0, None, None)
    report = as_html(results(comparison=two)), as_markdown(results(comparison=two))
    assert all("range of 2: 2 to 3" in text for text in report)


def test_memory_is_counted_in_matrices():
    matrix = 8 * DATA["items"] ** 2
    few = comparison({"paper": 0.0, "knn": 0.0}, peaks=[99 * matrix, 2 * matrix, 3 * matrix])
    got = verdict("memory", results(comparison=few, comparison_id="abc"))
    assert got.verdict == HOLDS  # the first fit also loads code
    assert got.value == pytest.approx(2.5)
    assert got.comparison == "abc"
    many = comparison({"paper": 0.0}, peaks=[1, 9 * matrix, 8 * matrix])
    assert verdict("memory", results(comparison=many)).verdict == FAILS
    between = comparison({"paper": 0.0}, peaks=[1, 3 * matrix, 8 * matrix])
    assert verdict("memory", results(comparison=between)).verdict == OPEN
    unknown = comparison({"paper": 0.0}, peaks=[float("nan")] * 3)
    assert verdict("memory", results(comparison=unknown)).verdict == NONE
    assert verdict("memory", results()).verdict == NONE


# Tables and other methods --------------------------------------------------------------------


def with_nmae(protocol_nmae, n=60_000):
    """Results on data like MovieLens 1M with a given NMAE, by protocol."""
    changes = {}
    for name, nmae in protocol_nmae.items():
        # held_out has half of the predictions one star off: .3125.
        changes[name] = measured(name, (nmae - 0.3125) / 0.625, n=n, splits=1)
    return results(changes, subject=subject(ML1M, splits=2))


def test_the_tables_figures_are_reproduced_or_not():
    table = MOVIELENS_1M.results[-1]
    good = with_nmae({"paper": table.weak, "strong": table.strong + 0.001})
    assert verdict("table-weak", good).verdict == HOLDS
    assert verdict("table-strong", good).verdict == HOLDS
    bad = with_nmae({"paper": table.weak + 0.02, "strong": table.strong - 0.02})
    assert verdict("table-weak", bad).verdict == FAILS
    assert verdict("table-strong", bad).verdict == FAILS
    few = with_nmae({"paper": table.weak, "strong": table.strong}, n=1000)
    assert verdict("table-weak", few).verdict == OPEN
    assert verdict("table-strong", few).verdict == OPEN


def test_the_gap_to_the_best_published_method():
    assert verdict("gap", with_nmae({"paper": 0.392, "strong": 0.393})).verdict == HOLDS
    assert verdict("gap", with_nmae({"paper": 0.41, "strong": 0.393})).verdict == FAILS
    got = verdict("gap", with_nmae({"paper": 0.3966, "strong": 0.393}))
    assert got.verdict == OPEN
    assert "+0.0072 at most (EachMovie, strong)" in got.sentence
    assert len(got.lines) == 6
    assert "NBMC as printed with 0.3916, which is not measured here" in got.sentence
    assert got.comparison == ""


def test_a_system_that_is_measured_counts_instead_of_its_printed_figure():
    """Weak, where GPLVM is measured as better than NBMC is printed; strong has none."""
    found = with_nmae({"paper": 0.392, "strong": 0.393})
    own = comparison({"paper": 0.0, OWN: 0.0, "gplvm": -0.02, "urp": 0.1})
    systems = MeasuredSystems(ML1M, own.against(OWN), ("newest", "older"))
    got = verdict("gap", replace(found, systems={"weak": systems}))
    assert got.verdict == FAILS and got.value is not None
    assert got.value > 0.01 and got.comparison == "newest"
    assert "Weak: the best other is GPLVM, measured here with" in got.sentence
    assert "on 3 splits; on the same ratings" in got.sentence
    assert "Strong: the best other is NBMC as printed" in got.sentence
    labels = [line.label for line in got.lines]
    assert "measured against URP, measured too, weak" in labels
    # No worse than printed as long as a measured one is no better.
    made = comparison({"paper": 0.0, OWN: 0.0, "nbmc": 0.1}).against(OWN)
    poor = MeasuredSystems(ML1M, made, ("newest",))
    got = verdict("gap", replace(found, systems={"weak": poor}))
    assert got.verdict == HOLDS and "Weak: the best other is GPLVM as printed" in got.sentence


def test_the_share_of_known_entries():
    good = results(subject=subject(ML1M))
    assert verdict("filled", good).verdict == HOLDS
    other = results(subject=subject({**ML1M, "fill_ratio": 0.0421}))
    assert verdict("filled", other).verdict == FAILS


def test_other_data_have_no_table():
    found = results()
    for name in ("table-weak", "table-strong", "gap", "filled"):
        got = verdict(name, found)
        assert got.verdict == NONE
        assert "no figure for these data" in got.sentence
    assert "20 %" in verdict("filled", found).sentence


@pytest.mark.parametrize(
    ("knn", "seconds", "expected", "unit"),
    [
        (0.0, 20.0, HOLDS, "NMAE"),
        (-0.05, 20.0, FAILS, "NMAE"),
        (-0.008, 20.0, OPEN, "NMAE"),
        (0.0, 5.0, FAILS, "times"),
        (0.0, 10.1, OPEN, "times"),
        (-0.008, 5.0, FAILS, "times"),
    ],
)
def test_the_ballpark_is_accuracy_and_cost(knn, seconds, expected, unit):
    # The package's own models are no rivals, however good.
    made = comparison(
        {"paper": 0.0, "knn": knn, "bias": 0.1, "exact": -0.2, "auto": -0.2},
        {"knn": seconds, "exact": 1.0},
    )
    got = verdict("ballpark", results(comparison=made, comparison_id="abc"))
    assert (got.verdict, got.unit) == (expected, unit)
    assert "Knn" in got.sentence
    assert "best of 2 other methods" in got.sentence
    if knn == -0.05:
        assert got.value == pytest.approx(0.05 * 0.625)
        assert got.low > MARGIN


def test_the_ballpark_needs_a_comparison():
    assert verdict("ballpark", results()).verdict == NONE
    alone = comparison({"paper": 0.0})
    assert verdict("ballpark", results(comparison=alone)).verdict == NONE


# All of them -------------------------------------------------------------------------------


def test_every_claim_needs_known_experiments_and_is_told_once():
    names = [claim.name for claim in CLAIMS]
    assert len(set(names)) == len(names) == 18
    for about in (subject(), subject(ML1M)):
        for claim in CLAIMS:
            assert set(claim.needs(about)) <= set(about.experiments())
            assert set(claim.experiments(about)) == set(claim.needs(about))


def test_nothing_is_said_without_results():
    verdicts = judge(Results(subject(ML1M)))
    measured_without_runs = {name for name, v in verdicts.items() if v.verdict != NONE}
    assert measured_without_runs == {"cost", "filled"}
    stopped = results({"longer": Measured("runlonger", "cancelled", "Cancelled.")})
    got = verdict("convergence", stopped)
    assert got.verdict == NONE
    assert got.sentence == "Run runlonger is cancelled. Cancelled."
    assert got.runs == ("runpaper", "runlonger")


def test_precision_is_64_bit_where_the_claim_is_about_it():
    configs = subject().experiments()
    doubles = {name for name, config in configs.items() if config.fit.dtype == "float64"}
    assert doubles == {"objective", "singular"}
    assert configs["singular"].fit.epsilon == 0
    assert configs["mixture 3"].fit.components == 3


# Reports -------------------------------------------------------------------------------------


def test_reports_hold_every_claim_and_escape_what_they_show():
    found = results(comparison=comparison({"paper": 0.0, "knn": 0.1}), comparison_id="abc")
    page, text = as_html(found), as_markdown(found)
    assert "made &lt;up&gt;" in page and "made <up>" not in page
    assert "http" not in page.replace("http-equiv", "")
    for claim in CLAIMS:
        assert claim.title.replace("'", "&#x27;") in page
        assert f"| {claim.title} |" in text
    assert page.count("<svg") == 2  # intervals and the course of NMAE; no objective is known
    data = json.loads(as_json(found))
    assert [entry["name"] for entry in data["claims"]] == [claim.name for claim in CLAIMS]
    assert data["claims"][4]["verdict"] == "holds"


def test_the_summary_counts_all():
    verdicts = judge(results())
    sentence = summary_sentence(verdicts)
    counts = [int(word) for word in sentence.split() if word.isdigit()]
    assert counts[0] == sum(counts[1:]) == len(CLAIMS)


def test_what_is_far_stands_at_the_edge_of_the_chart():
    assert on_chart(Line("x", 0.2, 0.19, 0.21)) == (0.05, 0.05, 0.05, "+0.200")
    assert on_chart(Line("x", 0.01, -0.2, 0.02)) == (-0.05, 0.01, 0.02, "")


def test_a_place_reads_well_in_a_sentence():
    places = {claim.place for claim in CLAIMS}
    assert "Abstract, sections 1 and 4" in places
    assert all(place.startswith(("section ", "Abstract, sections ")) for place in places)

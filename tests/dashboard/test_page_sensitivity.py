"""The Sensitivity page: the grid, and a sweep in each of its states."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace

import pandas as pd
import pytest
from stored_runs import charts, opened, stored, stored_sweep, texts

from gmc_core.fitting import affordable
from gmc_core.runs.findings import BIAS
from gmc_core.runs.sensitivity import sensitivity_curve
from gmc_core.runs.sweeps import sweep_results
from gmc_dashboard.sensitivity.figures import epsilon_figure
from gmc_dashboard.sensitivity.sweep_view import against_bias, bias_of, progress_text, verdict

pytestmark = pytest.mark.usefixtures("asked")

FEW = {"max_items": "60"}


# The grid ----------------------------------------------------------------------------


def test_one_click_starts_five_values_around_the_papers(store, asked):
    at = opened("sensitivity", **FEW)
    assert not at.exception
    assert at.button(key="start_sweep").label == "Start 10 fits"
    at.button(key="start_sweep").click().run()
    assert not at.exception
    assert not at.error
    (sweep,) = store.runs()
    assert sweep.sweep == {
        "epsilons": [0.03, 0.0949, 0.3, 0.949, 3.0],
        "iterations": [5, 10],
        "seeds": [0, 1],
    }
    assert all(run.config.filter.max_items == 60 for run in store.runs(parent=sweep.id))
    assert at.query_params["sweep"] in (sweep.id, [sweep.id])
    assert asked


def test_the_grid_follows_its_controls(store):
    at = opened("sensitivity", seed="7", **FEW)
    at.slider(key="epsilon_count").set_value(3)
    at.slider(key="seed_count").set_value(1)
    at.multiselect(key="sweep_iterations").set_value([20, 3])
    at.number_input(key="noise").set_value(0.2)
    at.run()
    assert at.button(key="start_sweep").label == "Start 3 fits"
    at.button(key="start_sweep").click().run()
    (sweep,) = store.runs()
    assert sweep.sweep["epsilons"] == [0.03, 0.3, 3.0]
    assert sweep.sweep["iterations"] == [3, 20]
    assert sweep.sweep["seeds"] == [7]
    assert sweep.config.fit.noise == 0.2


def test_a_sweep_of_long_fits_is_started_only_if_it_is_wanted(store, monkeypatch):
    monkeypatch.setattr(affordable, "LONGEST_UNASKED", 1e-6)
    at = opened("sensitivity", **FEW)
    (said,) = at.warning
    assert said.value.startswith("Each of 10 fits (epsilon 0.03, L = 10 and others) would take")
    assert at.button(key="start_sweep").disabled
    at.checkbox(key="sweep_however_long").check().run()
    at.button(key="start_sweep").click().run()
    assert not at.exception
    (sweep,) = store.runs()
    assert all(run.however_long for run in store.runs(parent=sweep.id))


def test_no_iterations_and_no_memory_are_refused(monkeypatch):
    at = opened("sensitivity", **FEW)
    at.multiselect(key="sweep_iterations").set_value([]).run()
    assert "at least one L" in at.info[0].value
    monkeypatch.setenv("GMC_MEMORY_LIMIT", "0.000001")
    at = opened("sensitivity", **FEW)
    assert at.button(key="start_sweep").disabled
    assert "Keep fewer items" in at.error[0].value


def test_without_hold_out_there_is_nothing_to_compare():
    at = opened("sensitivity", protocol="none", **FEW)
    assert "nothing is held out" in texts(at)
    assert [button.key for button in at.button] == ["present_start"]  # the header's own


def test_earlier_sweeps_are_linked(store):
    sweep = stored_sweep(store)
    links = [link.proto.query_string for link in opened("sensitivity", **FEW).get("page_link")]
    assert f"sweep={sweep.id}" in links


# States ------------------------------------------------------------------------------


def test_queued_and_cancel(store, asked):
    sweep = stored_sweep(store, 0, "queued")
    at = opened("sensitivity", sweep=sweep.id)
    assert not at.exception
    assert asked
    assert len(charts(at)) == 3
    assert "no fit" in charts(at)[0]
    at.button(key="cancel_sweep").click().run()
    assert store.run(sweep.id).state == "cancelled"


def test_running_fills_in(store):
    sweep = stored_sweep(store, 2, "running")
    at = opened("sensitivity", sweep=sweep.id)
    assert not at.exception
    assert "Best so far" in texts(at)
    assert "at ε = 0.1" in charts(at)[0]
    text = progress_text(sweep, store.runs(parent=sweep.id))
    assert "2 of 4 fits are done" in text
    assert "left" in text or "longer than estimated" in text  # on a slow machine
    (run,) = store.runs(parent=sweep.id, state="running")
    store.rows("UPDATE runs SET iteration_began = ? WHERE id = ?", time.time() - 40, run.id)
    text = progress_text(sweep, store.runs(parent=sweep.id))
    assert f"Now: ε = {run.config.fit.epsilon:g}, " in text and "for 40 s" in text
    store.rows("UPDATE runs SET step = 'E-step', step_share = 0.41 WHERE id = ?", run.id)
    assert "for 40 s (41 % of the E-step)" in progress_text(sweep, store.runs(parent=sweep.id))


def test_finished_answers_in_words(store):
    at = opened("sensitivity", sweep=stored_sweep(store).id)
    assert not at.exception
    assert not at.error
    said = texts(at)
    assert "Best: **ε = 0.3, L = 4**" in said
    assert "optimistic" in said
    assert "paired differences" in said
    assert "smallest 0.4265 at iteration 4" in charts(at)[1]
    assert any("sweep" in code.value for code in at.code)
    assert len(at.dataframe[0].value) == 8
    at.button(key="new_sweep").click().run()
    assert at.button(key="start_sweep")


@pytest.mark.parametrize("state", ["cancelled", "failed", "interrupted"])
def test_ended_early_resumes(store, state):
    sweep = stored_sweep(store, 1, state)
    at = opened("sensitivity", sweep=sweep.id)
    assert "1 of 4 fits are done" in at.warning[0].value
    assert ("Raise ε" in at.warning[0].value) == (state == "failed")
    at.button(key="resume_sweep").click().run()
    assert store.run(sweep.id).state == "queued"


def test_wrong_links(store):
    at = opened("sensitivity", sweep=stored(store).id)
    assert "leads to a fit" in texts(at)
    at = opened("sensitivity", sweep="nonesuch")
    assert "no run" in at.error[0].value
    assert at.button(key="new_sweep")


# Words -------------------------------------------------------------------------------


def found(values, seeds=(0,), se=0.01):
    return sensitivity_curve(
        pd.DataFrame(
            [
                {"epsilon": e, "iterations": 10, "seed": s, "nmae": v + 0.05 * s, "nmae_se": se}
                for e, v in values.items()
                for s in seeds
            ]
        )
    )


def test_verdict_names_the_interval_and_its_open_end():
    text = verdict(found({0.1: 0.405, 0.3: 0.4, 1.0: 0.402, 3.0: 0.45}))
    assert "from **0.1 to 1** (3 of 4 values, 1.0 decades; it reaches the lower end" in text
    assert "with this L, NMAE varies by 0.0500, 12.5 % of the best; the worst is ε = 3" in text
    assert text.index("That is the paper’s ε.") < text.index("the worst")
    assert "That is the paper’s ε." in text
    assert "two or more seeds would" in text


def test_verdict_measures_the_papers_epsilon():
    text = verdict(found({0.1: 0.4, 0.3: 0.42}, seeds=(0, 1)))
    assert "No other ε next to it" in text
    assert "The paper’s ε = 0.3 is 0.0200 above the best, more than one standard" in text
    assert "paired differences" in text


def test_verdict_of_a_single_value():
    text = verdict(found({0.3: 0.4}, se=math.nan), complete=False)
    assert text.startswith("Best so far: **ε = 0.3, L = 10** with NMAE **0.4000**.")


def test_a_grid_kept_from_another_scale_falls_back():
    at = opened("sensitivity", **FEW)
    at.session_state["epsilon_range"] = (0.012, 1.234)
    at.run()
    assert not at.exception
    assert not at.error
    assert at.button(key="start_sweep").label == "Start 10 fits"


def test_columns_are_refused_for_new_users():
    at = opened("sensitivity", protocol="strong", **FEW)
    at.segmented_control(key="signals").set_value("columns").run()
    assert at.button(key="start_sweep").disabled


def test_a_single_run_leads_to_its_page(store):
    run = stored(store)
    at = opened("sensitivity", sweep=run.id)
    assert f"run={run.id}" in [link.proto.query_string for link in at.get("page_link")]


def test_a_sweep_that_is_there_is_said_to_be_there(store, asked):
    at = opened("sensitivity", **FEW)
    at.button(key="start_sweep").click().run()
    (sweep,) = store.runs()
    store.rename(sweep.id, "Mine")
    assert "nothing new was started" not in texts(at)
    at = opened("sensitivity", **FEW)
    at.button(key="start_sweep").click().run()
    assert not at.exception
    assert len(store.runs()) == 1
    assert "This sweep is waiting to be computed" in texts(at)
    assert "nothing new was started" in texts(at)
    at.button(key="run_again").click().run()
    assert not at.exception
    new, old = store.runs()
    assert old.id == sweep.id and new.sweep == old.sweep
    assert new.label == "Mine"
    assert at.query_params["sweep"] in (new.id, [new.id])


def test_two_seeds_are_two_values_and_no_error_of_a_mean(store):
    sweep = stored_sweep(store)
    at = opened("sensitivity", sweep=sweep.id)
    said = texts(at)
    assert "NMAE **0.4265** (2 seeds: 0.4250 and 0.4280)" in said
    assert "±" not in said
    assert "five or more" in said


# Against the baselines, and on from the best ------------------------------------------


def child(store, sweep, baselines):
    """The sweep's children as if each had found this NMAE of the bias baseline."""
    return [
        replace(run, summary={**(run.summary or {}), "baselines": {BIAS: {"nmae": baselines}}})
        for run in store.runs(parent=sweep.id)
    ]


def test_the_bias_is_a_line_once_every_seed_has_a_finished_fit(store):
    sweep = stored_sweep(store)
    assert bias_of(store.runs(parent=sweep.id)) is None  # of runs that kept none
    children = child(store, sweep, 0.5)
    assert bias_of(children) == 0.5
    assert bias_of([*children[:1], *(replace(run, summary=None) for run in children[1:])]) is None
    figure = epsilon_figure(
        sweep_results(store, sweep.id), [0.1, 0.3], bias=bias_of(children), dark=True
    )
    (line,) = (shape for shape in figure.layout.shapes if shape.showlegend)
    assert line.y0 == line.y1 == 0.5
    assert line.name == "user and item bias 0.5000"
    assert figure.layout.showlegend


def test_a_sweep_says_whether_any_setting_beats_the_bias(store):
    found = sensitivity_curve(sweep_results(store, stored_sweep(store).id))
    assert "below the user and item bias" in against_bias(found, 0.9)
    assert "no ε repairs this fit" in against_bias(found, 0.1)
    assert against_bias(found, None) == ""


def test_the_best_setting_is_fitted_by_one_button(store, asked):
    sweep = stored_sweep(store)
    at = opened("sensitivity", sweep=sweep.id)
    best = sensitivity_curve(sweep_results(store, sweep.id)).best
    assert at.button(key="fit_best").label == f"Fit ε = {best.epsilon:g}, L = {best.iterations}"
    at.button(key="fit_best").click().run()
    assert not at.exception
    (run,) = [found for found in store.runs() if found.kind == "run"]
    assert run.config.fit.epsilon == best.epsilon
    assert run.config.fit.iterations == best.iterations
    assert run.seeds == (0, 1)
    assert run.keeps_model
    assert asked


def test_an_unfinished_sweep_has_no_best_yet(store):
    at = opened("sensitivity", sweep=stored_sweep(store, 1, "queued").id)
    assert "fit_best" not in {button.key for button in at.button}


def test_on_a_projector_the_verdict_is_short_and_its_curves_are_on_the_screen(store, asked):
    sweep = stored_sweep(store)
    for present, told in (("0", True), ("1", False)):
        at = opened("sensitivity", sweep=sweep.id, present=present)
        assert not at.exception
        assert ("Over all ε with this L" in texts(at)) == told
        assert "Best: **ε" in texts(at)
        heights = [json.loads(c.proto.spec)["layout"]["height"] for c in at.get("plotly_chart")]
        assert (heights[0] == heights[1] <= 350) != told


def test_the_name_of_the_papers_epsilon_stays_inside_the_picture(store):
    table = sweep_results(store, stored_sweep(store).id)
    for epsilons, side in (
        ((0.1, 0.3), "right"),
        ((0.3, 1.0), "left"),
        ((0.03, 0.3, 10.0), "left"),
    ):
        (mark,) = [n for n in epsilon_figure(table, epsilons).layout.annotations if n.text]
        assert (mark.xanchor, mark.yanchor) == (side, "top")


def test_a_sweep_that_does_not_exist_leads_to_those_that_do(store, asked):
    at = opened("sensitivity", sweep="0123456789")
    assert "There is no run" in at.error[0].value
    assert "All runs" in [link.proto.label for link in at.get("page_link")]


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_how_a_sweep_ended_is_a_sentence(store, asked, state):
    at = opened("sensitivity", sweep=stored_sweep(store, 2, state).id)
    ended = {
        "failed": "The sweep has failed: 2 of 4",
        "cancelled": "The sweep was cancelled: 2 of 4",
    }
    assert ended[state] in texts(at)

"""The Fit page: settings, estimate, and a run in each of its states."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from making import movielens_folder
from stored_runs import (
    DATA,
    charts,
    opened,
    small,
    stored,
    stored_sweep,
    summary,
    texts,
)  # fmt: skip

from gmc_core.base.errors import ResourceError
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting import affordable
from gmc_core.gaussian.models import PRESETS, settings_for
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol import metrics
from gmc_core.runs.store import queue as worker_side
from gmc_core.runs.store.waiting import Waiting
from gmc_dashboard.fit import fit_form, overlay, run_view, run_words
from gmc_dashboard.shared import found_run, playing, references, sources, units
from gmc_dashboard.shared.units import LONGER

pytestmark = pytest.mark.usefixtures("asked")

FEW = {"max_items": "60"}


def ready(at):
    """The page once the baselines are there."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        if not any("being computed" in caption.value for caption in at.caption):
            return at
        time.sleep(0.05)
        at.run()
    raise AssertionError("the baselines were never ready")


def linked(at, name):
    """What the page's address says of a setting; "" for nothing."""
    value = at.query_params.get(name, "")
    return value if isinstance(value, str) else value[0]


# Settings ----------------------------------------------------------------------------


def test_without_a_run_there_are_settings_beside_their_formulas():
    at = opened("fit", **FEW)
    assert not at.exception
    formulas = " ".join(latex.value for latex in at.latex)
    assert r"\varepsilon I" in formulas
    assert r"\Sigma_w" in formulas
    assert at.select_slider(key="epsilon").value == 0.3
    assert at.slider(key="iterations").value == 10
    assert "Estimated" in texts(at)
    assert "60 × 60" in texts(at)


@pytest.mark.parametrize("model", ["paper", "exact", "ordinal", "mixture"])
def test_the_m_step_shown_is_the_chosen_models(model):
    at = opened("fit", **FEW)
    at.segmented_control(key="model").set_value(model).run()
    assert not at.exception
    formulas = " ".join(latex.value for latex in at.latex)
    exact = model in ("exact", "ordinal")
    assert ("C_i" in formulas) == exact
    assert (r"\varepsilon I" in formulas) != exact
    assert (r"\Sigma_k" in formulas) == (model == "mixture")


def test_every_control_that_is_declared_stands_in_a_card():
    controls = {name: one.control for name, one in fit_form.SETTINGS.items() if one.control}
    assert {control.card for control in controls.values()} == set(fit_form.CARDS)
    keys = [fit_form.SETTINGS[name].key for name in controls]
    assert len(set(keys)) == len(keys)
    at = opened("fit", **FEW)
    shown = {element.key for element in [*at.number_input, *at.slider, *at.toggle]}
    shown |= {element.key for element in [*at.segmented_control, *at.select_slider]}
    for name, control in controls.items():
        setting = fit_form.SETTINGS[name]
        if setting.needs is None:
            is_paper = "paper" in (control.models or setting.models)
            assert (setting.key in shown) == is_paper, name


def test_presets_set_every_control():
    at = opened("fit", **FEW)
    at.number_input(key="noise").set_value(2.0)
    at.button(key="preset_quick").click().run()
    assert at.slider(key="iterations").value == 5
    assert at.segmented_control(key="precision").value == "float32"
    assert at.number_input(key="noise").value == 0
    at.button(key="preset_paper").click().run()
    assert at.slider(key="iterations").value == 10
    assert at.slider(key="repetitions").value == 3
    assert at.segmented_control(key="precision").value == "float64"


def test_start_queues_what_the_controls_say(store, asked):
    at = opened("fit", **FEW)
    at.select_slider(key="epsilon").set_value(1.0)
    at.slider(key="iterations").set_value(4)
    at.number_input(key="noise").set_value(0.5)
    at.toggle(key="objective").set_value(True)
    at.run()
    at.button(key="start_fit").click().run()
    assert not at.exception
    (run,) = store.runs()
    expected = FitSettings(epsilon=1.0, iterations=4, noise=0.5, objective=True)
    assert run.config.fit == expected
    assert run.config.filter.max_items == 60
    assert at.query_params["run"] in (run.id, [run.id])
    assert asked


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_that_of_the_command_line(store, name):
    at = opened("fit", **FEW)
    at.button(key=f"preset_{name}").click().run()
    at.button(key="start_fit").click().run()
    assert not at.exception
    (run,) = store.runs()
    stars = RatingScale(0.5, 5.0, 0.5)
    assert run.config.fit.resolved(stars) == PRESETS[name].resolved(stars)


def test_exact_em_has_a_prior_and_noise_to_learn(store, asked):
    at = opened("fit", **FEW)
    at.segmented_control(key="model").set_value("exact").run()
    strength, learned = at.number_input(key="prior_strength"), at.toggle(key="noise_learned")
    assert strength.value is None and strength.placeholder == "30 (default)"
    assert learned.value is False
    learned.set_value(True).run()
    at.button(key="start_fit").click().run()
    assert not at.exception
    (run,) = store.runs()
    assert run.config.fit.learn_noise is True and run.config.fit.prior_strength is None
    assert "--learn-noise" in store.command(run.id)
    for model in ("paper", "ordinal"):  # a choice brings the model's defaults
        at = opened("fit", **FEW) if model == "paper" else at
        at.segmented_control(key="model").set_value(model).run()
    assert at.toggle(key="noise_learned").value is False


@pytest.mark.parametrize(
    ("link", "model", "noise"),
    [
        ({"model": "ordinal"}, "ordinal", 0.5),  # with the model's own noise
        ({"model": "exact"}, "exact", 0.5),
        ({"model": "exact", "noise": "0.7"}, "exact", 0.7),
        # Of earlier versions, which wrote what people read and left out a noise of 0.
        ({"model": "Ordered ratings"}, "ordinal", 0.5),
        ({"model": "Ordered ratings", "noise": "0.7"}, "ordinal", 0.7),
        ({"model": "Exact EM"}, "exact", 0.0),
        ({"model": "no such model"}, "paper", 0.0),
    ],
)
def test_a_link_carries_the_models_key_and_brings_its_defaults(link, model, noise):
    at = opened("fit", **link, **FEW)
    assert not at.exception and not at.warning
    assert at.segmented_control(key="model").value == model
    assert at.number_input(key="noise").value == noise
    assert linked(at, "model") == ("" if model == "paper" else model)
    at.segmented_control(key="model").set_value("mixture").run()
    assert linked(at, "model") == "mixture" and at.number_input(key="noise").value == 0
    at.segmented_control(key="model").set_value("paper").run()
    assert linked(at, "model") == "" and not at.warning


def test_a_link_carries_the_key_of_the_signals():
    at = opened("fit", **FEW)
    at.segmented_control(key="signals").set_value("columns").run()
    assert linked(at, "signals") == "columns"
    assert opened("fit", signals="columns", **FEW).session_state["signals"] == "columns"


def test_a_noise_in_proportion_to_a_wide_scale_is_within_the_controls_limits(tmp_path):
    rows = [f"u{u},i{i},{100 * ((u + i) % 2)}" for u in range(6) for i in range(6)]
    path = tmp_path / "percent.csv"
    path.write_text("user,item,rating\n" + "\n".join(rows) + "\n", encoding="utf-8")
    least = {"min_user": "1", "min_item": "1", "protocol": "none"}
    at = opened("fit", data=sources.register(path), model="ordinal", **least)
    assert not at.exception and not at.error
    assert at.number_input(key="noise").value == 0.5 * 25**2


def test_what_is_known_of_users_can_be_left_out(store, tmp_path):
    data = sources.register(movielens_folder(tmp_path / "ml-1m"))
    at = opened("fit", data=data)
    at.segmented_control(key="model").set_value("ordinal").run()
    assert not at.exception
    used = at.toggle(key="attributes")
    assert used.value is True
    assert "age, gender, occupation: μ + B x" in used.help and "zip" not in used.help
    weight = at.number_input(key="attributes_strength")
    assert weight.value is None and weight.placeholder == "100 (default)"
    used.set_value(False).run()
    assert "attributes_strength" not in [number.key for number in at.number_input]
    at.button(key="start_fit").click().run()
    assert not at.exception
    (run,) = store.runs()
    assert run.config.fit.attributes is False
    assert "--no-attributes" in store.command(run.id)
    paper = opened("fit", data=data, attributes="false")
    paper.button(key="start_fit").click().run()
    assert not paper.exception  # which does not know of them
    assert len(store.runs()) == 2
    without = opened("fit", **FEW)
    without.segmented_control(key="model").set_value("exact").run()
    assert "attributes" not in [toggle.key for toggle in without.toggle]


def test_learned_noise_is_shown(store):
    settings = FitSettings(model="exact", iterations=4, noise=None, learn_noise=True)
    run = stored(store, "finished", small(fit=settings))
    at = opened("fit", run=run.id, **FEW)
    assert not at.exception
    assert "Learned noise variance" in texts(at)


def test_blocks_ask_for_their_size(store):
    at = opened("fit", **FEW)
    at.segmented_control(key="signals").set_value("blocks").run()
    at.number_input(key="block_height").set_value(8).run()
    at.button(key="start_fit").click().run()
    assert store.runs()[0].config.fit.block == (8, 16)
    again = opened("fit", signals="Blocks", block_width="5", **FEW)
    assert again.number_input(key="block_width").value == 5


def test_columns_are_refused_for_new_users():
    at = opened("fit", protocol="strong", **FEW)
    at.segmented_control(key="signals").set_value("columns").run()
    assert at.button(key="start_fit").disabled
    assert any("Choose rows" in warning.value for warning in at.warning)


def test_too_much_memory_is_refused_with_a_remedy(monkeypatch):
    monkeypatch.setenv("GMC_MEMORY_LIMIT", "0.000001")
    at = opened("fit", **FEW)
    assert at.button(key="start_fit").disabled
    assert "Keep fewer items" in at.error[0].value


def test_what_takes_longer_than_an_hour_is_started_only_if_it_is_wanted(store, monkeypatch):
    monkeypatch.setattr(affordable, "LONGEST_UNASKED", 1e-6)
    at = opened("fit", **FEW)
    assert any(
        "“Low rank, for large tables” as the model" in warning.value for warning in at.warning
    )
    assert at.button(key="start_fit").disabled
    at.checkbox(key="fit_however_long").check().run()
    assert not at.exception and not at.button(key="start_fit").disabled
    at.button(key="start_fit").click().run()
    (run,) = store.runs()
    assert run.however_long


def test_a_fit_can_start_by_itself(store):
    at = opened("fit")
    at.session_state["fit_autostart"] = True
    at.run()
    (run,) = store.runs()
    assert run.config.data == "sample"
    assert run.repetitions == 1
    assert run.config.fit == FitSettings()
    at.run()
    assert len(store.runs()) == 1


def test_the_scaled_epsilon_is_on_the_slider():
    scale = RatingScale(0.0, 8.0, 1.0)
    assert fit_form.paper_epsilon(scale) == pytest.approx(1.2)
    assert 1.2 in fit_form.epsilon_grid(scale)
    assert "scaled" in fit_form.epsilon_text(1.2, 1.2)
    assert fit_form.epsilon_text(0.3, 0.3) == "0.3 (paper)"
    grid = fit_form.epsilon_grid(RatingScale(1.0, 5.0, 1.0))
    assert (grid[0], grid[-1]) == (0.001, 10.0)


# States ------------------------------------------------------------------------------


def test_unknown_run_offers_a_way_on():
    at = opened("fit", run="nonesuch")
    assert "no run" in at.error[0].value
    at.button[-1].click().run()
    assert at.button(key="start_fit")


def test_queued(store, asked):
    at = opened("fit", run=stored(store, "queued").id)
    assert not at.exception
    assert at.button(key="cancel_run")
    assert asked, "a reload revives a waiting run"
    at.button(key="cancel_run").click().run()
    assert store.runs()[0].state == "cancelled"
    assert at.button(key="resume_run")


def test_running_shows_progress_and_cancels(store):
    run = stored(store, "running", small(repetitions=2), done=3)
    at = ready(opened("fit", run=run.id))
    assert not at.exception
    words = charts(at)
    assert "at iteration 3" in words[0]
    assert "item mean" in words[0]
    assert len(words) == 5
    curves = [[record for _, record in store.records(run.id)]]
    store.rows("UPDATE runs SET iteration_began = ? WHERE id = ?", time.time(), run.id)
    assert "in the next" not in run_words.status_text(store.run(run.id), curves)
    store.rows("UPDATE runs SET iteration_began = ? WHERE id = ?", time.time() - 40, run.id)
    assert "3 of 4, in the next for 40 s" in run_words.status_text(store.run(run.id), curves)
    store.rows("UPDATE runs SET step = 'E-step', step_share = 0.41 WHERE id = ?", run.id)
    said = run_words.status_text(store.run(run.id), curves)
    assert "3 of 4, in the next for 40 s (41 % of the E-step)" in said
    store.rows("UPDATE runs SET repetition = 1, step = 'saving of the model' WHERE id = ?", run.id)
    store.rows("UPDATE runs SET iteration = 4, step_share = NULL WHERE id = ?", run.id)
    said = run_words.status_text(store.run(run.id), [curves[0] + curves[0][:1]] * 2)
    assert "4 of 4, saving of the model for 40 s" in said
    at.button(key="cancel_run").click().run()
    assert store.run(run.id).cancelling
    assert at.button(key="cancel_run").disabled


def test_running_without_a_record_explains_the_wait(store, monkeypatch):
    run = stored(store, "running", done=0)
    at = opened("fit", run=run.id)
    monkeypatch.setattr(run_words, "must_compile", lambda settings: True)
    assert "compiled first, once on this machine" in run_words.status_text(run, [[]])
    monkeypatch.setattr(run_words, "must_compile", lambda settings: False)
    assert "compiled" not in run_words.status_text(run, [[]])
    assert "no iteration" in charts(at)[0]


def test_an_estimate_that_was_exceeded_leaves_no_countdown(store, monkeypatch):
    run = stored(store, "running", done=0)
    behind = stored(store, "queued", small(seed=1))

    def said(identity, seconds):
        store.rows(
            "UPDATE runs SET iteration_began = ? WHERE id = ?", time.time() - seconds, run.id
        )
        curve = [record for _, record in store.records(identity)]
        return run_words.status_text(store.run(identity), [curve])

    monkeypatch.setattr(run_words, "must_compile", lambda settings: True)
    assert "preparing, for 6 s" in said(run.id, 6)
    late = said(run.id, 600)
    assert "Compiling the numerical code" in late and "for 10 min" in late
    assert LONGER in late and "about" not in late
    assert LONGER in said(behind.id, 600) and "begins" not in said(behind.id, 600)
    monkeypatch.setattr(run_words, "must_compile", lambda settings: False)
    assert "Preparing, and then the first iteration" in said(run.id, 600)
    at = opened("fit", run=run.id)
    assert LONGER in at.get("progress")[0].proto.text
    store.rows("UPDATE runs SET step = 'E-step', step_share = 0.41 WHERE id = ?", run.id)
    assert "The first iteration, for 6 s (41 % of the E-step)." in said(run.id, 6)
    assert f"for 10 min (41 % of the E-step), {LONGER}" in said(run.id, 600)


def test_an_iteration_longer_than_estimated_is_said(store, monkeypatch):
    run = stored(store, "running", done=3)
    curve = [record for _, record in store.records(run.id)]
    assert "left" in run_words.status_text(store.run(run.id), [curve])
    store.rows("UPDATE runs SET iteration_began = ? WHERE id = ?", time.time() - 400, run.id)
    late = run_words.status_text(store.run(run.id), [curve])
    assert LONGER in late and "left" not in late
    monkeypatch.setattr(run_words, "WORKER_SECONDS", -1.0)
    assert LONGER in run_words.waiting_text(Waiting((), 0.0), "any")


def test_finished(store):
    run = stored(store, "finished", small(repetitions=3), label="my fit")
    at = ready(opened("fit", run=run.id))
    assert not at.exception
    assert not at.error
    sentence = at.info[0].value  # no tick: it is not better than the baselines
    assert not at.success
    assert "NMAE 0.4200" in sentence
    assert "500 held-out ratings" in texts(at)
    assert "than the item mean" in texts(at)
    assert "Thin lines" in texts(at)
    assert "MovieLens 1M and EachMovie" in texts(at)
    assert any("gmc" in code.value for code in at.code)
    at.button(key="new_fit").click().run()
    assert at.button(key="start_fit")


@pytest.mark.parametrize(
    ("state", "kind", "text"),
    [
        ("cancelled", "info", "partial model"),
        ("interrupted", "warning", "resume it"),
        ("failed", "error", "positive definite"),
    ],
)
def test_ended_early_says_why_and_resumes(store, state, kind, text):
    run = stored(store, state, done=2, message="Σ is not positive definite. Raise ε.")
    at = ready(opened("fit", run=run.id))
    assert text in getattr(at, kind)[0].value
    assert "at iteration 2" in charts(at)[0]
    at.button(key="resume_run").click().run()
    assert not at.exception
    assert store.run(run.id).state == "queued"


@pytest.mark.parametrize(("kind", "leads"), [("settings", "new_fit"), ("memory", "resume_run")])
def test_what_would_fail_again_leads_to_other_settings(store, kind, leads):
    run = stored(store, "failed", done=0, message="It would take 3 h.", kind=kind)
    at = ready(opened("fit", run=run.id))
    looks = {key: at.button(key=key).proto.type for key in ("new_fit", "resume_run")}
    assert [key for key, look in looks.items() if look == "primary"] == [leads]


def test_what_ended_before_its_first_iteration_waits_for_none(store):
    at = ready(opened("fit", run=stored(store, "failed", done=0, message="No memory.").id))
    assert "No memory." in at.error[0].value
    assert not charts(at)  # lines of averages alone, and empty axes
    assert "Errors in ratings" not in texts(at)
    assert "No iteration" in run_words.first_iteration(store.runs()[0])


def test_without_hold_out_there_is_no_error_to_draw(store):
    run = stored(store, "running", small(protocol="none"), done=1)
    at = opened("fit", run=run.id)
    assert len(charts(at)) == 3
    assert "Nothing is held out" in texts(at)


# What to try next --------------------------------------------------------------------


def lossy(store, **changes):
    """A finished run that its baselines beat."""
    return stored(store, config=small(**changes), nmae=0.6)


def test_a_run_that_beats_the_baselines_has_the_tick(store):
    at = ready(opened("fit", run=stored(store, nmae=0.2).id))
    assert "NMAE 0.2000" in at.success[0].value
    assert "predicts better than the averages" in at.success[0].value


def test_a_run_that_loses_says_so_and_proposes(store):
    at = ready(opened("fit", run=lossy(store).id))
    assert not at.success
    assert "predicts better" in texts(at)
    assert at.button(key="try_ordinal")
    assert at.button(key="try_epsilon").label == "Try ε = 1"


def test_a_proposal_is_queued_on_the_same_split_and_drawn_beside(store, asked):
    run = lossy(store, seed=3)
    at = ready(opened("fit", run=run.id))
    at.button(key="try_epsilon").click().run()
    assert not at.exception
    (other,) = [found for found in store.runs() if found.id != run.id]
    assert other.state == "queued"
    assert other.config == replace(run.config, fit=other.config.fit)
    assert other.config.fit.epsilon == 1.0
    assert asked, "the worker was started"
    assert at.query_params["with"] == other.id
    assert at.query_params["run"] == run.id
    assert "Waiting for the worker" in texts(at)
    assert at.button(key="try_epsilon").disabled
    assert at.button(key="try_epsilon").label == "“Try ε = 1” is waiting …"
    assert not at.button(key="try_ordinal").disabled


def beside(store, run, state, **changes):
    """The ε = 1 that is proposed for a lossy run, in a state."""
    config = replace(run.config, fit=replace(run.config.fit, epsilon=1.0))
    return stored(store, state, config=config, **changes)


def test_a_follow_up_is_told_above_the_chart_while_it_runs_and_then_not_proposed_again(store):
    run = lossy(store)
    other = beside(store, run, "running", done=3, nmae=0.3)
    at = ready(opened("fit", run=run.id, **{"with": other.id}))
    assert not at.exception
    assert at.button(key="try_epsilon").label == "“Try ε = 1” is running …"
    (line,) = (part for part in at.markdown if "Iteration 3 of 4" in part.value)
    assert line.value.startswith(":blue-badge[running] **ε = 1**")
    assert "4 iterations" in line.help
    with pytest.raises(KeyError):
        at.button(key=f"open_{other.id}")


def test_a_finished_follow_up_is_opened_with_the_former_run_beside_it(store):
    run = lossy(store)
    other = beside(store, run, "finished", nmae=0.3)
    at = ready(opened("fit", run=run.id, **{"with": other.id}))
    assert any(f"NMAE {other.summary['nmae']:.4f}" in part.value for part in at.markdown)
    with pytest.raises(KeyError):
        at.button(key="try_epsilon")
    at.button(key=f"open_{other.id}").click().run()
    assert not at.exception
    assert linked(at, "run") == other.id
    assert linked(at, "with") == run.id
    assert at.multiselect(key=f"overlay_{other.id}").value == [run.id]
    assert any("scrollTo" in part.proto.body for part in at.get("html"))
    at.run()
    assert not any("scrollTo" in part.proto.body for part in at.get("html"))


def test_ordered_ratings_say_why_they_help_and_have_no_epsilon_to_vary(store):
    run = lossy(store)
    config = replace(run.config, fit=replace(settings_for("factor"), dtype="float32"))
    other = stored(store, config=config, nmae=0.3)
    at = ready(opened("fit", run=run.id, **{"with": other.id}))
    links = [link.label for link in at.get("page_link")]
    assert "Why does this help?" in links
    assert "ordered ratings of low rank: " in charts(at)[0]
    assert "…:" not in charts(at)[0]
    assert "Vary ε" not in [name for _, name, _ in run_view._ways_on(other)]
    assert "Low rank: " in run_words.name_help(other)


@pytest.mark.parametrize(
    ("low", "mean", "high", "words"),
    [
        (-0.05, -0.04, -0.03, "clearly better**: 0.0400 lower"),
        (0.03, 0.04, 0.05, "clearly worse**: 0.0400 higher"),
        (-0.05, -0.01, 0.03, "do not settle it"),
    ],
)
def test_a_difference_is_said_in_plain_words(low, mean, high, words):
    told = overlay.difference_words(metrics.PairedDifference(100, mean, 0.005, low, high))
    assert words in told
    assert ("clearly" in told) != ("settle" in told)


def test_what_helped_is_said_of_an_exact_model_beside_map_em(store):
    plain = stored(store)
    exact, ordered = (
        stored(store, config=replace(small(), fit=settings_for(name)))
        for name in ("exact", "ordinal")
    )
    assert "prior" in overlay.what_helped(plain, exact)
    assert "grades" not in overlay.what_helped(plain, exact)
    assert "grades in an order" in overlay.what_helped(plain, ordered)
    assert overlay.what_helped(exact, ordered) == overlay.what_helped(plain, plain) == ""


def test_the_sweep_is_queued_on_the_same_splits_and_shown(store):
    run = lossy(store, seed=3, repetitions=2)
    at = ready(opened("fit", run=run.id))
    at.button(key="try_sweep").click().run()
    (sweep,) = [found for found in store.runs() if found.kind == "sweep"]
    assert sweep.seeds == (3, 4)
    assert sweep.sweep["epsilons"] == [0.1, 0.3, 1.0, 3.0, 10.0]
    assert at.query_params["sweep"] == sweep.id


def test_a_sweep_that_cannot_be_queued_says_why(store, monkeypatch):
    def full(*arguments, **more):
        raise ResourceError("The disk is full.")

    at = ready(opened("fit", run=lossy(store).id))
    monkeypatch.setattr(found_run, "submit_or_find_sweep", full)
    at.button(key="try_sweep").click().run()
    assert not at.exception
    assert "The disk is full." in at.error[0].value


def test_a_link_draws_runs_beside_each_other(store):
    run = stored(store)
    other = stored(store, config=small(fit=FitSettings(epsilon=1.0, iterations=6)), nmae=0.3)
    elsewhere = stored(store, config=small(seed=9))
    link = {"run": run.id, "with": f"{other.id},{elsewhere.id},nothing"}
    at = ready(opened("fit", **link))
    assert not at.exception
    assert "ε = 1, L = 6: 0.3167 at iteration 6" in charts(at)[0]
    assert at.multiselect(key=f"overlay_{run.id}").value == [other.id]
    at.multiselect(key=f"overlay_{run.id}").set_value([]).run()
    assert "ε = 1, L = 6" not in charts(at)[0]
    assert "with" not in at.query_params


# Sentences ---------------------------------------------------------------------------


def test_result_is_worded_with_care(store):
    run = stored(store)
    far = run_words.result_sentence(run, {"item mean": 0.525, "user and item bias": 0.5})
    assert "20 % lower than the item mean’s 0.5250" in far


def test_compared():
    assert run_words.compared(0.4, 0.5) == "20 % lower"
    assert run_words.compared(0.55, 0.5) == "10 % higher"


def test_durations():
    assert [units.whole_duration(s) for s in (0.2, 3.4, 40, 300, 6000)] == [
        "1 s",
        "3 s",
        "40 s",
        "5 min",
        "1 h 40 min",
    ]


def test_baselines_that_cannot_be_computed_say_so_and_can_be_tried_again(store, monkeypatch):
    works = references.prepare
    monkeypatch.setattr(references, "prepare", lambda config: 1 / 0)
    run = stored(store)
    at = ready(opened("fit", run=run.id))
    assert "could not be computed" in texts(at)
    assert "division" not in texts(at)
    assert "mistake of the program" in texts(at)
    monkeypatch.setattr(references, "prepare", works)
    at.run()
    assert "could not be computed" in texts(at)
    assert "item mean" in charts(ready(opened("fit", run=run.id)))[0], "another visitor"
    at = ready(at.button(key="baselines_again").click().run())
    assert "could not be computed" not in texts(at)
    assert "item mean" in charts(at)[0]


def test_no_baselines_from_other_ratings_than_the_runs(store):
    run = stored(store, data={**DATA, "sha256": "0" * 64})
    at = ready(opened("fit", run=run.id))
    assert "not those that this run was fitted to" in texts(at)
    assert "item mean" not in charts(at)[0]


def test_a_run_resumed_elsewhere_is_noticed(store):
    run = stored(store, "cancelled", done=2)
    at = ready(opened("fit", run=run.id))
    store.resume(run.id)
    at.run()
    assert at.button(key="cancel_run")


def test_resuming_twice_is_a_sentence(store):
    run = stored(store, "cancelled", done=2)
    at = ready(opened("fit", run=run.id))
    store.resume(run.id)
    at.button(key="resume_run").click().run()
    assert not at.exception
    assert "nothing to resume" in at.error[0].value


def test_a_link_can_ask_for_the_settings_whatever_run_was_shown(store):
    at = ready(opened("fit", run=stored(store).id))
    at.query_params["run"] = "new"
    at.run()
    assert at.button(key="start_fit")
    assert "run" not in at.query_params


def test_a_sweep_leads_to_its_page(store):
    sweep = stored_sweep(store)
    at = opened("fit", run=sweep.id)
    links = [link.proto.query_string for link in at.get("page_link")]
    assert f"sweep={sweep.id}" in links


@pytest.mark.parametrize("page", ["fit", "sensitivity"])
def test_data_that_are_not_there_lead_to_the_data_page(page):
    at = opened(page, data="ml-1m")
    assert not at.exception
    assert "not on this machine yet" in texts(at)
    assert [link.proto.label for link in at.get("page_link")] == ["Choose the data"]


# Runs that are there already, and few ratings ------------------------------------------


def test_a_start_that_finds_the_same_run_says_so_and_offers_it_again(store, asked):
    at = opened("fit", **FEW)
    at.button(key="start_fit").click().run()
    (run,) = store.runs()
    store.rename(run.id, "Mine")
    assert "nothing new was started" not in texts(at)
    for state, words in (("queued", "is waiting to be computed"), ("finished", "was computed on")):
        if state == "finished":
            finish_queued(store)
        at = opened("fit", **FEW)
        at.button(key="start_fit").click().run()
        assert not at.exception
        assert [one.id for one in store.runs()] == [run.id]
        assert words in texts(at) and "nothing new was started" in texts(at)
    at.button(key="run_again").click().run()
    assert not at.exception
    new, old = store.runs()
    assert old.id == run.id and new.config == old.config and new.state == "queued"
    assert new.label == "Mine"
    assert at.query_params["run"] in (new.id, [new.id])
    assert "nothing new was started" not in texts(at)
    # Looked at on its own, the old run is no find.
    assert "nothing new" not in texts(ready(opened("fit", run=old.id)))


def test_a_fit_without_a_model_is_repeated_without_one(store, monkeypatch):
    started = {}
    monkeypatch.setattr(found_run, "start_fit", lambda *_, **how: started.update(how))
    found_run._again(store.submit(small(), label="Mine", keep_model=False))
    assert started == {"label": "Mine", "again": True, "keep_model": False}


def finish_queued(store):
    """Compute the waiting run, with made-up figures."""
    worker_side.register(store, "w", beside=True)
    claim = worker_side.take(store, "w")
    claim.describe(DATA)
    claim.end("finished", "", summary())
    worker_side.retire(store, "w")


def test_few_held_out_ratings_are_said_to_be_few_with_more_repetitions(store):
    run = stored(store, "finished")
    at = ready(opened("fit", run=run.id))
    assert "500 held-out ratings (of 9,000) are **few**" in texts(at)
    assert at.button(key="more_repetitions").label == "Run 4 repetitions"
    at.button(key="more_repetitions").click().run()
    assert not at.exception
    more = store.runs()[0]
    assert more.config == replace(run.config, repetitions=4)
    assert more.state == "queued"
    assert at.query_params["run"] in (more.id, [more.id])


def test_many_ratings_are_not_called_few():
    assert metrics.few_held_out(46, 0.033) and metrics.few_held_out(999, 0.001)
    assert metrics.few_held_out(5000, 0.011) and metrics.few_held_out(46, None)
    assert not metrics.few_held_out(5000, 0.006) and not metrics.few_held_out(0, None)
    assert metrics.enough_repetitions(1, 46, 0.033) == 20
    assert metrics.enough_repetitions(2, 1108, 0.0114) == 3
    assert metrics.enough_repetitions(1, 5000, 0.006) == 0
    assert metrics.enough_repetitions(20, 46, 0.033) == 0


def test_baselines_kept_with_the_run_need_no_data(store, monkeypatch):
    monkeypatch.setattr(references, "prepare", lambda config: 1 / 0)
    kept = {"item mean": {"nmae": 0.525, "mae": 1.0, "rmse": 1.0, "n": 500}, "junk": 3}
    run = replace(stored(store), summary={**summary(), "baselines": kept})
    assert references.references(run).lines == {"item mean": 0.525}


def test_the_heading_names_model_and_seed(store):
    settings = FitSettings(model="ordinal", iterations=4, noise=None)
    run = stored(store, "finished", small(fit=settings, seed=3, repetitions=2))
    at = ready(opened("fit", run=run.id))
    name = "sample, ordered ratings, seeds 3–4, weak, at most 60 items, L = 4"
    assert [heading.value for heading in at.subheader][:1] == [name]


# A run shown again as if live ----------------------------------------------------------


def test_a_finished_run_is_stepped_through_and_reset(store):
    run = stored(store)
    at = ready(opened("fit", run=run.id))
    assert "at iteration 4" in charts(at)[0]
    at.button(key="play_step").click().run()
    assert not at.exception
    assert "0.5200 at iteration 1," in charts(at)[0]
    assert "at iteration 4" not in charts(at)[0]
    at.button(key="play_step").click().run()
    assert "at iteration 2," in charts(at)[0]
    at.button(key="play_reset").click().run()
    assert "at iteration 4" in charts(at)[0]


def test_playing_moves_by_itself_and_ends_with_the_result(store, monkeypatch):
    run = stored(store)
    now = [100.0]
    monkeypatch.setattr(playing.time, "monotonic", lambda: now[0])
    at = ready(opened("fit", run=run.id))
    at.button(key="play_run").click().run()
    assert at.button(key="play_run").label == "Pause"
    seen = []
    for _ in range(5):
        seen.append(next((t for t in (4, 3, 2, 1) if f"at iteration {t}," in charts(at)[0]), 0))
        now[0] += 1.0
        at.run()
    assert seen == sorted(seen), "it never goes back"
    assert 2 in seen
    assert 3 in seen
    assert at.button(key="play_run").label == "Play"
    assert "at iteration 4" in charts(at)[0]


@pytest.mark.parametrize(
    ("chosen", "words", "settings"),
    [
        ({"protocol": "random", "held": "4-folds", "seed": "1"}, "fold 2 of 4", {"folds": 4}),
        ({"protocol": "latest", "held": "20%"}, "20 % of each user’s ratings", {"held_out": 0.2}),
    ],
)
def test_what_everyone_holds_out_is_said_and_started(store, chosen, words, settings):
    at = opened("fit", **FEW, **chosen)
    assert not at.exception and words in texts(at)
    at.button(key="start_fit").click().run()
    (run,) = store.runs()
    assert run.config.protocol == chosen["protocol"]
    assert {name: getattr(run.config, name) for name in settings} == settings


def test_a_random_run_is_told_with_its_rmse(store):
    config = small(protocol="random", held_out=0.2)
    run = stored(store, config=config)
    at = opened("fit", run=run.id)
    assert not at.exception
    assert "**RMSE 0.9000**" in texts(at) and "random 20 %" in run.title


@pytest.mark.parametrize("state", ["cancelled", "interrupted", "failed"])
def test_a_run_that_ended_before_its_first_iteration_draws_no_axes(store, state):
    at = ready(opened("fit", run=stored(store, state, done=0, message="Told.").id))
    assert not at.exception
    assert not at.get("plotly_chart")
    assert "Dashed lines" not in texts(at)
    assert "partial model" not in texts(at) and "shown here is lost" not in texts(at)
    if state == "cancelled":
        assert "before its first iteration" in at.info[0].value
    some = ready(opened("fit", run=stored(store, state, done=2, message="Told.").id))
    assert some.get("plotly_chart")

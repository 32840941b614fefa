"""The presentation view and the tour: what the address turns on, and where it leads."""

from __future__ import annotations

import json
import time

import pandas as pd
import plotly.graph_objects as go
import pytest
import stored_runs
import streamlit as st
from computed_runs import computed, small
from stored_runs import opened, stored, texts, use_folders

from gmc_core.data.ratings import RatingScale
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.metrics import PairedDifference
from gmc_core.runs.findings import BIAS, Evidence, next_steps
from gmc_core.runs.store import Store
from gmc_dashboard.shared import frames, presenting, tour, tour_words
from gmc_dashboard.shared.theme import style
from gmc_dashboard.shared.units import LONGER

LEAD = "Why one Gaussian can fill in"


@pytest.fixture
def asked(tmp_path, monkeypatch):
    return use_folders(tmp_path, monkeypatch)


def one(value):
    """A parameter of the address, however AppTest gives it."""
    return value[0] if isinstance(value, list) else value


def styles(at):
    return "\n".join(part.proto.body for part in at.get("html"))


def test_a_figure_has_no_text_below_the_least_size():
    figure = go.Figure(go.Heatmap(z=[[1, 2]], colorbar={"tickfont": {"size": 9}}))
    style(figure, title="Title", x="x", y="y", height=900)
    figure.add_annotation(text="small", font={"size": 11})
    figure.add_annotation(text="large", font={"size": 30})
    figure.update_layout(margin_r=130)
    presenting.enlarge(figure)
    layout = figure.layout
    assert [note.font.size for note in layout.annotations] == [presenting.LEAST, 30]
    sizes = (layout.font, layout.xaxis.tickfont, layout.yaxis.title.font, layout.title.font)
    assert all(font.size >= presenting.LEAST for font in sizes)
    assert figure.data[0].colorbar.tickfont.size == presenting.LEAST
    assert layout.height == presenting.TALLEST
    assert layout.margin.r == 180  # 130 px held the labels in 13 px


def test_a_long_legend_gives_way_to_the_picture():
    figure = go.Figure([go.Scatter(y=[1], name=str(index)) for index in range(6)])
    assert presenting.enlarge(style(figure)).layout.showlegend is False
    figure = go.Figure([go.Scatter(y=[1], name=str(index)) for index in range(3)])
    assert presenting.enlarge(style(figure)).layout.showlegend is True


def test_a_legend_below_the_axis_stands_above_the_figure():
    lines = [go.Scatter(y=[1], name=str(index)) for index in range(4)]
    figure = style(go.Figure(lines), x="x", height=300)
    figure.update_layout(legend={"orientation": "h", "y": -0.3, "yanchor": "top"})
    layout = presenting.enlarge(figure).layout
    assert layout.legend.y > 1 and layout.legend.yanchor == "bottom"
    assert layout.height > 300  # the plot keeps its room


def test_the_presentation_stays_from_page_to_page_until_it_is_left(asked):
    at = opened("learn")
    assert LEAD in texts(at)
    assert "21px" not in styles(at)
    at = at.button(key="present_start").click().run()
    assert one(at.query_params["present"]) == "1"
    assert LEAD not in texts(at)
    assert "21px" in styles(at)
    at = at.switch_page("pages/data.py").run()
    assert one(at.query_params["present"]) == "1"
    at = at.button(key="present_leave").click().run()
    assert "present" not in at.query_params
    assert "21px" not in styles(at)


def test_a_link_hides_the_controls_only_in_a_presentation(asked):
    at = opened("learn", present="1", controls="0")
    assert one(at.query_params["controls"]) == "0"
    assert presenting._NO_CONTROLS in styles(at)
    assert at.slider(key="learn_rating").value == 4.5  # hidden, but there
    alone = opened("learn", controls="0")
    assert presenting._NO_CONTROLS not in styles(alone)


def test_the_tour_queues_its_fits_once_and_says_what_it_waits_for(asked):
    at = opened("fit", tour="1")
    assert not at.exception
    with Store() as store:
        ids = {name: store.submit_or_find(config)[0].id for name, config in tour.configs().items()}
        assert len(store.runs()) == 4
    assert len(asked) >= 1  # a worker was asked for
    assert one(at.query_params["run"]) == ids["paper"]
    assert "**1 of 6**" in texts(at)
    assert "waits for its turn" in texts(at) and "done in about" in texts(at)
    assert "Next may be pressed meanwhile" in texts(at)
    assert "iteration 0" not in texts(at)  # the page says that
    at = opened("covariance", tour="5", run=ids["grades"])
    assert "**5 of 6**" in texts(at)
    with Store() as store:
        assert len(store.runs()) == 4


def test_the_tour_goes_on_back_and_stops(asked):
    at = opened("fit", tour="1")
    assert at.button(key="tour_back").disabled
    at = at.button(key="tour_next").click().run()
    assert one(at.query_params["tour"]) == "2"
    at = at.button(key="tour_next").click().run()
    assert "," not in one(at.query_params["with"])
    at = at.button(key="tour_back").click().run()
    assert one(at.query_params["tour"]) == "2"
    at = at.button(key="tour_stop").click().run()
    assert "tour" not in at.query_params
    assert "of 6**" not in texts(at)


def test_the_story_is_not_over_while_its_last_fit_is_awaited(asked):
    at = opened("recommend", tour="6")
    assert "waits for its turn" in texts(at)
    assert "whole story" not in texts(at)
    assert at.button(key="tour_stop").label == "Done"


@pytest.mark.parametrize("number", ["0", "7", "x", ""])
def test_a_step_that_is_not_there_is_no_tour(asked, number):
    at = opened("learn", tour=number)
    assert not at.exception
    assert "of 6**" not in texts(at)
    with Store() as store:
        assert not store.runs()


@pytest.fixture
def told(asked):
    """The tour's fits, finished with made-up records; their ids."""
    with Store() as store:
        errors = {"paper": 0.44, "epsilon": 0.42, "grades": 0.39, "numbers": 0.40}
        return {
            name: stored(store, config=config, nmae=errors[name]).id
            for name, config in tour.configs().items()
        }


def test_the_first_steps_show_one_curve_whatever_was_picked_before(told):
    at = opened("fit", run=told["paper"], **{"with": told["epsilon"]})
    assert "ε = 1" in stored_runs.charts(at)[0]
    at.query_params.clear()
    at.query_params.update({"run": told["paper"], "tour": "2"})
    at.run()
    assert "ε = 1" not in stored_runs.charts(at)[0]
    assert not at.multiselect


def test_the_fourth_step_says_who_won_and_by_how_much(told):
    link = {"run": told["paper"], "with": f"{told['epsilon']},{told['grades']}"}
    at = opened("fit", tour="4", **link)
    assert not at.exception
    assert "Ordered ratings win: NMAE **0.3900** against 0.4400" in texts(at)
    assert "lower by 0.0500" in texts(at)
    assert "remembers how unsure each filled-in value is" in texts(at)
    assert "takes stars as grades; with stars as numbers it has 0.4000." in texts(at)
    drawn = stored_runs.charts(at)[0]
    assert "ordered ratings: " in drawn and "ε = 1: " in drawn


def spec(at):
    """The figure of the page's first chart."""
    return json.loads(at.get("plotly_chart")[0].proto.spec)


def beside(told, number):
    """The address of one of the first four steps, whose curves are drawn."""
    names = {3: ("epsilon",), 4: ("epsilon", "grades")}.get(number, ())
    others = {"with": ",".join(told[name] for name in names)} if names else {}
    return {"tour": str(number), "run": told["paper"], **others}


@pytest.mark.parametrize(
    ("number", "sign", "name"),
    [(1, "●", "ε = 0.3 (paper)"), (3, "■", "ε = 1"), (4, "◆", "ordered ratings")],
)
def test_a_step_is_headed_by_the_curve_that_it_is_about(told, number, sign, name):
    at = opened("fit", **beside(told, number))
    assert not at.exception
    own = {1: "paper", 3: "epsilon", 4: "grades"}[number]
    with Store() as store:
        nmae = store.run(told[own]).summary["nmae"]
    assert at.subheader[0].value == f"{name}: NMAE {nmae:.4f} ± 0.0200"
    assert f'"{sign}"' in styles(at)
    figure = spec(at)
    names = ["ε = 0.3 (paper)", "ε = 1", "ordered ratings"][: max(number - 1, 1)]
    faint = [trace.get("opacity", 1) < 1 for trace in figure["data"][: len(names)]]
    assert faint == [other != name for other in names]
    bold = [note["text"] for note in figure["layout"]["annotations"] if "<b>" in note["text"]]
    assert bold == [f"<b>{name} {nmae + 0.01:.4f}</b>"]  # the made-up last iteration


def test_one_axis_serves_all_steps_of_the_chart(told):
    seen = [spec(opened("fit", **beside(told, n)))["layout"] for n in (1, 2, 3, 4)]
    assert len({tuple(layout["yaxis"]["range"]) for layout in seen}) == 1
    assert len({tuple(layout["xaxis"]["range"]) for layout in seen}) == 1
    assert seen[0]["yaxis"]["range"][0] < tour.ERRORS[0]


def test_in_a_tour_the_page_has_its_one_chart_and_no_way_on_but_the_cards(told):
    at = opened("fit", **beside(told, 4))
    assert len(stored_runs.charts(at)) == 1
    assert not at.expander
    keys = {button.key for button in at.button}
    assert "new_fit" not in keys and not any(key.startswith("open_") for key in keys)
    at = at.button(key="tour_stop").click().run()
    assert len(stored_runs.charts(at)) == 5
    assert at.subheader[0].value.startswith("sample")  # the run's own name
    assert at.button(key="new_fit")


def test_a_step_leads_aside_to_learn_and_back(told):
    assert "leave_to_tour_why" not in {b.key for b in opened("fit", **beside(told, 3)).button}
    at = opened("fit", **beside(told, 4))
    at = at.button(key="leave_to_tour_why").click().run()
    assert not at.exception
    assert "EM (expectation, maximisation)" in texts(at) and tour.AT_LEARN in texts(at)
    assert "Aside from 4 of 6" in texts(at)
    assert at.slider(key="learn_step").value == 20
    at = opened("learn", **{name: one(value) for name, value in at.query_params.items()})
    # From chapter to chapter the way back stays.
    at = at.button(key="learn_next_chapter").click().run()
    assert "Aside from 4 of 6" in texts(at) and tour.AT_LEARN not in texts(at)
    at = at.button(key="leave_to_tour_return").click().run()
    assert "**4 of 6**" in texts(at)
    assert one(at.query_params["run"]) == told["paper"]
    assert stored_runs.charts(at)


def test_the_tour_can_be_stopped_at_the_explanation(told):
    at = opened("learn", tour="4", chapter="steps")
    at = at.button(key="tour_stop").click().run()
    assert "tour" not in at.query_params and "Aside from" not in texts(at)
    assert "EM (expectation, maximisation)" in texts(at)


def test_what_did_not_help_is_not_explained(asked):
    with Store() as store:
        ids = {
            name: stored(store, config=config, nmae=0.5 if name == "grades" else 0.4).id
            for name, config in tour.configs().items()
        }
    at = opened("fit", **beside(ids, 4))
    assert "Ordered ratings do not win" in texts(at)
    assert "leave_to_tour_why" not in {button.key for button in at.button}


def test_a_step_whose_fit_is_awaited_says_how_far_that_is(asked):
    with Store() as store:
        ids = {"paper": stored(store, config=tour.configs()["paper"]).id}
        ids["epsilon"] = stored(store, "running", tour.configs()["epsilon"], done=3).id
    at = opened("fit", **beside(ids, 3))
    assert not at.exception
    assert at.subheader[0].value == "ε = 1"
    assert "3 of 10" in at.get("progress")[0].proto.text
    assert not any("Beside it" in box.label for box in at.multiselect)


def test_what_grades_are_worth_is_measured_before_it_is_said(told):
    with Store() as store:
        run, first = store.run(told["grades"]), store.run(told["paper"])
        other = tour.configs()["paper"]
        for state, words in (
            ("running", "takes stars as grades; what that adds is being computed."),
            ("failed", "takes stars as grades."),
        ):
            beside = stored(store, state, other, done=1)
            assert tour_words.what_repaired_it(run, first, beside).endswith(words)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (-0.02, -0.01, "0.4000, so that helps as well."),
        (-0.02, 0.01, "these ratings do not settle."),
        (0.01, 0.02, "0.3800, so that does not help here."),
    ],
)
def test_what_grades_add_is_as_sure_as_the_interval(told, monkeypatch, low, high, words):
    found = PairedDifference(500, (low + high) / 2, 0.005, low, high)
    monkeypatch.setattr(tour_words, "difference", lambda *_: found)
    with Store() as store:
        run, first = store.run(told["grades"]), store.run(told["paper"])
        nmae = 0.4 if low < 0 else 0.38
        beside = stored(store, config=tour.configs()["paper"], nmae=nmae)
        assert tour_words.what_repaired_it(run, first, beside).endswith(words)


def test_what_few_ratings_cannot_tell_apart_is_called_likely(told, monkeypatch):
    with Store() as store:
        run = store.run(told["paper"])  # .45 with a standard error of .02
        for bias, words in ((0.42, "(0.4200; likely, not certain, with 500"), (0.3, "(0.3000). ")):
            monkeypatch.setattr(type(run), "baselines", {BIAS: bias})
            assert words in tour_words.what_went_wrong(run, run, run)


def test_a_larger_epsilon_has_a_verdict_of_its_own(told):
    at = opened("fit", tour="3", run=told["paper"], **{"with": told["epsilon"]})
    assert "That helps: NMAE **0.4200** against 0.4400 of the first fit" in texts(at)
    assert "ε = 1: " in stored_runs.charts(at)[0]  # as in the fourth step


def test_a_verdict_names_the_averages(told, monkeypatch):
    with Store() as store:
        run, first = store.run(told["epsilon"]), store.run(told["paper"])
        for bias, words in ((0.4, "still beaten by"), (0.45, "and better than")):
            monkeypatch.setattr(type(run), "baselines", {BIAS: bias})
            assert f"; {words} the averages" in tour_words.what_epsilon_did(run, first, first)
        worse = tour_words.what_epsilon_did(first, run, run)
        assert "That does not help here" in worse and "higher by 0.0200" in worse


def test_the_card_follows_the_state_of_the_fit(asked):
    with Store() as store:
        run = stored(store, "running", tour.configs()["paper"], done=8)
        at = opened("fit", tour="2", run=run.id)
        assert "It is being computed" in texts(at) and "Its whole curve tells" in texts(at)
        assert "Why: it fills in" not in texts(at)  # there is nothing to explain yet
        store.rows("UPDATE runs SET iteration_began = ? WHERE id = ?", time.time() - 900, run.id)
        assert LONGER in tour_words.awaited(store.run(run.id), True)
        for page, number, words in (
            ("covariance", "5", "This is what was learned"),
            ("recommend", "6", "Two Star Wars films"),
        ):
            at = opened(page, tour=number, run=run.id)
            assert words not in texts(at) and "waits for its turn" in texts(at)
        assert "Next may be pressed" not in texts(at)  # there is none


def test_start_goes_on_with_a_tour_that_the_menu_left(told):
    at = opened("home")
    assert "leave_to_tour_again" not in {button.key for button in at.button}
    at = opened("fit", tour="3", run=told["paper"], **{"with": told["epsilon"]})
    at = at.switch_page("pages/fit.py")
    at.query_params.clear()  # as the menu does
    at = at.run()
    assert at.button(key="start_fit")  # no half of the tour
    at = at.switch_page("pages/home.py").run()
    at = at.button(key="leave_to_tour_again").click().run()
    assert not at.exception
    assert one(at.query_params["tour"]) == "3" and "**3 of 6**" in texts(at)
    at = at.button(key="tour_stop").click().run()
    assert one(at.query_params["run"]) == told["paper"]  # stopped, one stays where one is


def test_the_last_step_ends_with_done(told):
    with Store() as store:  # of a fit with a model, whose list is what the step is about
        run = computed(store, small(items=60, iterations=1)).id
    at = opened("recommend", tour="6", **{**tour.STEPS[5].query, "run": run})
    assert at.number_input(key="top").value == 5
    # One press too many of Next does not leave the tour.
    assert at.button(key="tour_next").disabled
    assert at.button(key="tour_stop").label == "Done"
    assert "That was the whole story" in texts(at)
    at = at.button(key="tour_stop").click().run()
    assert one(at.query_params["run"]) == run
    assert not at.exception
    assert at.number_input(key="top").value == 10
    for name in ("tour", "rated", "why", "top"):
        assert name not in at.query_params


def test_every_step_names_fits_that_are_queued():
    ids = {name: f"id of {name}" for name in tour.FITS}
    for step in tour.STEPS:
        assert step.of in ids
        assert "{" not in "".join(value.format_map(ids) for value in step.query.values())


def test_the_second_step_says_what_the_records_show(asked, monkeypatch):
    with Store() as store:
        run = stored(store, config=tour.configs()["paper"])
        # The made-up error falls to the end.
        assert "did not go wrong here" in tour_words.what_went_wrong(run, run, run)
        made = stored_runs.record
        monkeypatch.setattr(stored_runs, "record", lambda t, nmae: made(t, 0.4 + 0.01 * abs(t - 6)))
        run = stored(store, config=tour.configs()["paper"])
        wrong = tour_words.what_went_wrong(run, run, run)
        assert "lowest point, iteration 6 (NMAE **0.4000**)" in wrong
        assert "learns from its own fills" in wrong and "from iteration 7 on" in wrong
        monkeypatch.setattr(type(run), "baselines", {BIAS: 0.39})
        beaten = tour_words.what_went_wrong(run, run, run)
        assert "Even at its lowest point" in beaten and "(0.3900; likely" in beaten


def test_the_tours_fits_are_those_that_the_fit_page_proposes(asked):
    # So that a click on "Try next" in class finds what the tour has computed.
    with Store() as store:
        run = stored(store, config=tour.configs()["paper"])
        curve = [record for _, record in store.records(run.id)]
        seen = Evidence.of(run, [curve], {"user and item bias": 0.1})
        assert seen is not None
        proposed = {step.kind: step.fit for step in next_steps(seen)}
    assert proposed["ordinal"] == tour.FITS["grades"]
    scale = RatingScale(0.5, 5.0, 0.5)
    wanted = tour.FITS["epsilon"].resolved(scale, 60)
    assert proposed["epsilon"].resolved(scale, 60) == wanted


def test_a_projected_table_has_the_labels_and_formats_of_its_columns():
    table = pd.DataFrame(
        {
            "title": ["*M_A*S*H*", None],
            "nmae": [0.41234, float("nan")],
            "gain": [-0.5, 0.5],
            "n": [1_000_209, 7],
            "share": [0.5, 1.25],
        }
    )
    number = st.column_config.NumberColumn
    config = {"title": "Title", "nmae": number("NMAE", format="%+.3f"), "n": number("n", width=3)}
    shown = frames.styled(table, config, "–")
    cells = shown.to_html()
    for expected in (r"\*M\_A\*S\*H\*", "+0.412", "–", "−0.5", "1000209", "0.5", "1.25"):
        assert f">{expected}<" in cells
    assert list(shown.data.columns) == ["Title", "NMAE", "gain", "n", "share"]
    assert pd.api.types.is_numeric_dtype(shown.data["NMAE"])  # stays flush right


def test_on_a_projector_curves_stand_above_what_came_of_others(asked, tmp_path):
    with Store(tmp_path / "home") as store:
        run = stored(store)
        other = stored(store, config=stored_runs.small(fit=FitSettings(iterations=4, epsilon=1.0)))
    places = {}
    for present in ("0", "1"):
        at = opened("fit", run=run.id, present=present, **{"with": other.id})
        assert not at.exception
        kinds = walked(at.main)
        chart = next(i for i, (kind, _) in enumerate(kinds) if kind == "plotly_chart")
        words = next(i for i, (_, text) in enumerate(kinds) if "-badge[finished] **" in text)
        places[present] = chart < words
    assert places == {"0": False, "1": True}


def walked(block):
    """Kind and text of each element, in the order of the page."""
    found = []
    for part in block.children.values():
        if hasattr(part, "children"):
            found += walked(part)
        else:
            found.append((part.type, str(getattr(part, "value", "") or "")))
    return found


def test_a_projector_has_the_sample_in_figures_and_formulas_in_their_columns():
    at = opened("data", present="1")
    assert not at.exception
    assert "nothing to download" not in texts(at)
    assert "nothing to download" in texts(opened("data"))
    assert ".katex-display > .katex { font-size: 1em }" in styles(at)  # as wide as a column holds

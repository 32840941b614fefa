"""The Fit page where auto chooses the settings: the button, the wait, and what came of it."""

from __future__ import annotations

import secrets
from dataclasses import replace

import pytest
from made_records import record
from stored_runs import DATA, charts, opened, small, stored, summary, texts
from test_page_fit import ready

from gmc_core.gaussian.models import settings_for
from gmc_core.runs.store import queue as worker_side
from gmc_core.runs.store.selection import Selection

pytestmark = pytest.mark.usefixtures("asked")

REASON = "ordinal with L = 2 had the smallest NMAE of 9 settings"


def begun(store):
    """A run whose worker has tried two settings, in that worker's hands."""
    run, _ = store.submit_or_find(small(), selection=Selection(), data=DATA)
    name = secrets.token_hex(4)
    worker_side.register(store, name, beside=True)
    claim = worker_side.take(store, name, run.id)
    claim.select(replace(run.selection, tried=2, best=0.41, spent=18.0))
    return claim


def ended(claim):
    """The same at its end, with ordered ratings."""
    fit = replace(settings_for("ordinal"), iterations=2)
    claim.select(replace(claim.run.selection, spent=60.0, reason=REASON), fit)
    claim.describe(DATA)
    claim.start_at(0, [], {"seconds": 1.0})
    for t in (1, 2):
        claim.add_record(0, record(t, 0.3))
    claim.end("finished", "", summary(0.3))
    return claim.store.run(claim.run.id)


def test_the_button_queues_the_choice_on_the_first_split_and_shows_it_beside(store, asked):
    run = stored(store, config=small(seed=3, repetitions=2))
    at = ready(opened("fit", run=run.id))
    at.button(key="try_auto").click().run()
    assert not at.exception
    (other,) = [found for found in store.runs() if found.id != run.id]
    assert other.choosing and other.state == "queued"
    assert other.config.seeds == (3,)
    assert replace(other.config, fit=run.config.fit, repetitions=2) == run.config
    assert asked, "the worker was started"
    assert at.query_params["with"] == other.id
    assert "auto: settings not chosen yet" in texts(at)


def test_while_it_chooses_the_pages_say_how_far_it_is(store):
    run = stored(store)
    claim = begun(store)
    told = "2 tried, the lowest NMAE inside the training set 0.4100 · at most about 42 s left"
    at = opened("fit", run=claim.run.id)
    assert "The test ratings play no part" in texts(at)
    assert at.button(key="cancel_run")
    assert told in at.get("progress")[0].proto.text
    at = ready(opened("fit", run=run.id, **{"with": claim.run.id}))
    assert told in texts(at)
    at = opened("runs")
    assert not at.exception
    table = at.dataframe[0].value.set_index("run")
    row = next(row for name, row in table.iterrows() if "not chosen" in name)
    assert (row["model"], row["epsilon"]) == ("auto: settings not chosen yet", "–")


def test_what_was_chosen_stands_in_the_chart_and_why_in_the_result(store):
    run = stored(store)
    other = ended(begun(store))
    at = ready(opened("fit", run=run.id, **{"with": other.id}))
    assert "auto: ordered ratings" in charts(at)[0]
    at = ready(opened("fit", run=other.id))
    assert REASON in at.success[0].value
    assert "try_auto" not in [button.key for button in at.button]
    assert "more_repetitions" not in [button.key for button in at.button]

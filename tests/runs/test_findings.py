"""What a finished fit is said to show, rule by rule, and what is proposed next."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_records import record
from stored_runs import DATA, small, stored, summary, use_folders

from gmc_core.data.ratings import RatingScale
from gmc_core.gaussian.models import PRESETS, settings_for
from gmc_core.gaussian.settings import FitSettings
from gmc_core.runs.findings import BIAS, Evidence, findings, next_steps
from gmc_core.runs.store import Store

STARS = RatingScale(1, 5)
# The first fit of the embedded sample with the paper's settings, and its bias baseline.
SAMPLE = (0.4985, 0.4734, 0.4532, 0.4444, 0.4373, 0.4297, 0.4308, 0.4313, 0.4341, 0.4368)
STILL = (0.5, 0.45, 0.43, 0.425, 0.4245, 0.4244)


def seen(nmae=STILL, *, bias=0.45, fit=None, scale=STARS, **changes) -> Evidence:
    fit = (fit or FitSettings(iterations=len(nmae))).resolved(scale, 50)
    usual = {
        "nmae_se": 0.002,
        "n": 5000,
        "likelihood_rose": True,
        "covariance_change": 0.01,
        "users": 1000,
        "items": 50,
    }
    return Evidence(
        fit=fit,
        scale=scale,
        nmae=tuple(nmae),
        baselines={BIAS: bias},
        **{**usual, **changes},
    )


def kinds(evidence: Evidence) -> list[str]:
    return [finding.kind for finding in findings(evidence)]


def steps(evidence: Evidence) -> dict[str, FitSettings | None]:
    return {step.kind: step.fit for step in next_steps(evidence)}


def test_the_first_fit_of_the_sample_is_said_to_lose_and_to_over_fit():
    evidence = seen(SAMPLE, bias=0.4128, nmae_se=0.016, covariance_change=0.0756, items=2000)
    found = findings(evidence)
    assert [finding.kind for finding in found] == ["loses", "rising", "few_users"]
    assert "iteration 6 (0.4297)" in found[1].sentence
    assert "over-fitting" in found[1].sentence
    assert "its own guesses of the missing ratings" in found[1].sentence
    exact = seen(SAMPLE, bias=0.4128, nmae_se=0.016, fit=settings_for("exact"))
    assert "over-fitting" in findings(exact)[1].sentence
    assert "guesses" not in findings(exact)[1].sentence
    assert "1,000" in found[2].sentence
    proposed = steps(evidence)
    assert list(proposed) == ["ordinal", "epsilon", "stop", "auto", "sweep"]
    assert proposed["epsilon"].epsilon == 1.0
    assert proposed["stop"].iterations == 6
    assert proposed["ordinal"].model == "factor" and proposed["ordinal"].is_ordered


def test_a_fit_that_wins_is_said_to_win():
    assert kinds(seen()) == ["beats"]
    assert findings(seen())[0].good
    assert "epsilon" not in steps(seen())
    assert "stop" not in steps(seen())


def test_a_difference_within_a_standard_error_is_not_decided():
    assert kinds(seen(bias=0.4246, nmae_se=0.002))[0] == "undecided"
    assert kinds(seen(bias=0.4246, nmae_se=0.0001))[0] == "beats"
    assert kinds(seen(bias=0.4242, nmae_se=0.0001))[0] == "loses"


def test_without_the_training_likelihood_rising_over_fitting_is_not_claimed():
    rising = findings(seen(SAMPLE, bias=0.5, likelihood_rose=False))[1]
    assert rising.kind == "rising"
    assert "over-fitting" not in rising.sentence


WINNER = (0.4200, 0.3950, 0.3900, 0.3890, 0.3895, 0.3906)


@pytest.mark.parametrize(
    ("nmae", "se", "kind"),
    [
        (WINNER, 0.016, "flat"),  # a tenth of a standard error
        (WINNER, 0.0001, "flat"),  # .0016
        ((*WINNER, 0.3915), 0.0001, "rising"),
        ((*WINNER, 0.3915), 0.016, "flat"),
        (SAMPLE, 0.016, "rising"),
        (WINNER, float("nan"), "flat"),
        (WINNER, None, "flat"),
    ],
)
def test_a_rise_within_chance_is_flat_and_no_reason_to_stop(nmae, se, kind):
    evidence = seen(nmae, nmae_se=se)
    assert [found for found in kinds(evidence) if found in ("flat", "rising")] == [kind]
    assert ("stop" in steps(evidence)) == (kind == "rising")
    told = " ".join(finding.sentence for finding in findings(evidence))
    assert ("over-fitting" in told) == (kind == "rising")
    assert ("flat since" in told) == (kind == "flat")


@pytest.mark.parametrize(("bias", "sure"), [(0.4244 + 0.003, False), (0.4244 + 0.005, True)])
def test_better_by_less_than_two_standard_errors_is_not_certain(bias, sure):
    (found,) = findings(seen(bias=bias, nmae_se=0.002))
    assert found.kind == "beats"
    assert ("not certain" in found.sentence) != sure


def test_a_fit_that_still_falls_is_to_go_on():
    falling = seen((0.5, 0.47, 0.45, 0.43), fit=FitSettings(iterations=4), covariance_change=0.3)
    assert kinds(falling) == ["beats", "falling"]
    assert steps(falling)["more"].iterations == 8
    longest = seen((0.5, 0.47), fit=FitSettings(iterations=1000))
    assert "more" not in steps(longest)


def test_a_last_step_to_the_mean_is_told_and_is_no_reason_to_go_on():
    averaged = replace(settings_for("ordinal"), average_rank=9)
    fell = seen((0.5, 0.42, 0.4), fit=averaged)
    assert kinds(fell) == ["beats", "averaged"]
    assert "lowered the error (0.4200 before, 0.4000 after)" in findings(fell)[1].sentence
    assert "more" not in steps(fell)
    rose = seen((0.5, 0.42, 0.421), fit=averaged)
    assert "did not lower the error" in findings(rose)[1].sentence


def test_the_best_is_proposed_where_ordered_ratings_are_in_use():
    for name in ("ordinal", "factor", "two-sided"):
        assert steps(seen(fit=settings_for(name)))["best"] == PRESETS["best"]
        plain = replace(settings_for(name), attributes=False)
        assert steps(seen(fit=plain))["best"].attributes is False
    for fit in (
        FitSettings(),
        PRESETS["best"],
        replace(settings_for("ordinal"), session_noise=0.1),
    ):
        assert "best" not in steps(seen(fit=fit))


def test_a_covariance_that_moves_is_said_to():
    assert kinds(seen(covariance_change=0.2)) == ["beats", "moving"]
    assert kinds(seen(covariance_change=None)) == ["beats"]


def test_fewer_users_than_titles_matter_only_where_users_are_the_signals():
    assert "few_users" in kinds(seen(users=40))
    assert "few_users" not in kinds(seen(users=40, fit=FitSettings(signals="columns")))
    assert "few_users" not in kinds(seen(users=0))


def test_nothing_held_out_is_no_error_and_no_next_step():
    nothing = seen((), bias=0.4)
    assert kinds(nothing) == ["no_hold_out"]
    assert next_steps(nothing) == ()


@pytest.mark.parametrize(
    ("scale", "proposed"),
    [
        (RatingScale(0.5, 5, 0.5), True),
        (RatingScale(0, 1), True),
        (RatingScale(-10, 10, None), False),
        (RatingScale(0, 100), False),
    ],
)
def test_ordered_ratings_are_for_few_grades(scale, proposed):
    assert ("ordinal" in steps(seen(scale=scale))) == proposed


def test_what_is_in_use_is_not_proposed_again():
    ordinal = seen(fit=settings_for("ordinal"))
    assert set(steps(ordinal)) == {"auto", "best"}
    assert set(steps(replace(ordinal, auto=True))) == {"best"}
    large = seen(SAMPLE, bias=0.4, fit=FitSettings(epsilon=1.0))
    assert "epsilon" not in steps(large)


def test_auto_is_asked_for_the_same_task():
    timed = seen(fit=replace(settings_for("ordinal"), session_noise=0.2, attributes=False))
    (step,) = (step for step in next_steps(timed) if step.kind == "auto")
    assert step.selection.times and not step.selection.attributes
    assert step.fit is None


def test_epsilon_is_a_share_of_the_squared_range():
    wide = RatingScale(0, 100)
    evidence = seen(SAMPLE, bias=0.4, scale=wide)
    assert steps(evidence)["epsilon"].epsilon == 625.0
    sweep = next(step for step in next_steps(evidence) if step.kind == "sweep")
    assert sweep.epsilons == (62.5, 188.0, 625.0, 1880.0, 6250.0)


def test_proposed_settings_can_be_fitted():
    for step in next_steps(seen(SAMPLE, bias=0.4)):
        if step.fit is not None:
            assert replace(step.fit).resolved(STARS, 50).epsilon is not None


def test_the_evidence_of_a_stored_run(tmp_path, monkeypatch):
    use_folders(tmp_path, monkeypatch)
    with Store() as store:
        run = stored(store, nmae=0.4)
        curves = [[record for _, record in store.records(run.id)]]
        evidence = Evidence.of(run, curves, {BIAS: 0.41})
        assert evidence.nmae == pytest.approx([0.5, 0.45, 0.4 + 0.1 / 3, 0.425])
        assert evidence.users == DATA["users"]
        assert evidence.fit.epsilon == 0.3
        assert evidence.n == summary()["n"]
        assert evidence.likelihood_rose is False  # the best iteration is the last
        waiting = stored(store, "queued", small(seed=5))
        assert Evidence.of(waiting, [[]], {}) is None


def test_repetitions_are_averaged(tmp_path, monkeypatch):
    use_folders(tmp_path, monkeypatch)
    with Store() as store:
        run = stored(store, config=small(repetitions=2))
        curves = [[record(1, 0.5), record(2, 0.4)], [record(1, 0.3), record(2, 0.2)]]
        assert Evidence.of(run, curves, {}).nmae == pytest.approx((0.4, 0.3))

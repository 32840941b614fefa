"""What the cards of the tour say: what is awaited, and what came of a fit, from its figures.

awaited(run, onward)              # while the fit is not done
what_went_wrong(run, first)       # of a finished one; ``first`` is the paper's fit
"""

from __future__ import annotations

from gmc_core.protocol.baselines import BIAS
from gmc_core.runs.findings import Evidence
from gmc_core.runs.overlay import difference
from gmc_core.runs.store import Run
from gmc_core.runs.store.waiting import is_late, left_now
from gmc_dashboard.shared import context
from gmc_dashboard.shared.units import LONGER, whole_duration

AVERAGES = "averages of users and titles, which know nothing of tastes"
WHY_BEATEN = (
    "Why: it fills in what nobody rated, then learns from its own fills as if people had given "
    "them, and it takes stars as exact numbers. So where two titles have few ratings in common it "
    "is too sure of itself"
)
WHY_REPAIRED = (
    "It remembers how unsure each filled-in value is instead of treating it as a rating, and a "
    "prior holds it back where few ratings speak. To it stars are grades, not numbers"
)


def awaited(run: Run, onward: bool) -> str:
    """That a fit is not done yet, about how long that takes, and whether to go on meanwhile.

    onward : whether there is a Next to press.
    """
    if run.ended_for_good:
        return f"This fit was {run.state}; resume it on the Runs page."
    store = context.store()
    if run.state == "queued":
        waiting = store.waiting(run.id)
        text, before, late = "**Its fit waits for its turn", waiting.seconds, waiting.late
        own = store.remaining_seconds(run.id)
        left = None if before is None or own is None else before + own
    else:
        records = [record for _, record in store.records(run.id)]
        text, late, left = "**It is being computed", is_late(run, records), left_now(run, records)
    if late:
        text += f", {LONGER}.**"
    else:
        text += "**." if left is None else f"**, done in about {whole_duration(left)}."
    return f"{text} What came of it will be said here." + (
        " Next may be pressed meanwhile." if onward else ""
    )


def what_is_drawn(run: Run, first: Run) -> str:
    """What the curve of the first fit is."""
    lines = ", and dashed lines are what plain averages reach" if run.baselines else ""
    return (
        "MAP-EM with the paper’s settings has learned one Gaussian from the ratings of all users. "
        f"The curve is its error on ratings that were hidden from it, lower is better{lines}."
    )


def what_went_wrong(run: Run, first: Run) -> str:
    """Whether averages beat the first fit, even at its lowest point, and why."""
    seen = _seen(run)
    if seen is None or not seen.nmae:
        return "This fit has no error on hidden ratings to look at."
    lowest, bias = min(seen.nmae), seen.baselines.get(BIAS)
    at = f"at its lowest point, iteration {seen.best} (NMAE **{lowest:.4f}**)"
    if bias is not None and bias < lowest:
        text = f"Even {at}, it is beaten by {AVERAGES} ({bias:.4f}). "
    elif bias is not None and bias < seen.nmae[-1]:
        text = f"Better {at}, it ends beaten ({seen.nmae[-1]:.4f}) by {AVERAGES} ({bias:.4f}). "
    elif seen.rising:
        text = f"It was best {at}, and has become worse since. "
    else:
        return f"It did not go wrong here: the error was lowest {at[3:]}."
    learns = f"; from iteration {seen.best + 1} on it learns chance" if seen.rising else ""
    return f"{text}{WHY_BEATEN}{learns}."


def what_epsilon_did(run: Run, first: Run) -> str:
    """Whether a larger ε is better than the first fit, and than the averages."""
    text = "A larger ε adds more to every variance, so agreements of few ratings are trusted less."
    return f"{text} {_verdict(run, first, 'That helps', 'That does not help here')}"


def what_repaired_it(run: Run, first: Run) -> str:
    """How ordered ratings compare with the first fit and the averages, and what makes that."""
    verdict = _verdict(run, first, "Ordered grades win", "Ordered grades do not win here")
    seen, other = _seen(run), _seen(first)
    if seen is None or other is None or not seen.nmae or not other.nmae:
        return f"{verdict} {WHY_REPAIRED}."
    if seen.nmae[-1] >= other.nmae[-1]:
        return verdict
    flat = seen.nmae[0] < min(other.nmae) and not seen.rising
    so = ": that is why its curve starts low and stays flat" if flat else ""
    return f"{verdict} {WHY_REPAIRED}{so}."


def _verdict(run: Run, first: Run, won: str, lost: str) -> str:
    """A run's error against the first fit's and the averages', from the figures."""
    own, other = ((each.summary or {}).get("nmae") for each in (run, first))
    if own is None:
        return ""
    text = f"NMAE **{own:.4f}**"
    if first.state == "finished" and other is not None:
        found = difference(context.store(), run, first)
        clearly = "clearly " if found is not None and found.resolved else ""
        unsure = "" if found is None or found.resolved else ", which these ratings do not settle"
        way = "lower" if own < other else "higher"
        lead = "Within chance" if unsure else won if own < other else lost
        text = (
            f"{lead}: {text} against {other:.4f} of the first fit, "
            f"{clearly}{way} by {abs(own - other):.4f}{unsure}"
        )
    bias = run.baselines.get(BIAS)
    if bias is None:
        return f"{text}."
    still = "still beaten by" if own > bias else "and better than"
    return f"{text}; {still} the averages of users and titles ({bias:.4f})."


def _seen(run: Run) -> Evidence | None:
    return Evidence.of(run, context.curves_of(run), run.baselines)

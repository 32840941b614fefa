"""What the cards of the tour say: what is awaited, and what came of a fit, from its figures.

awaited(run, onward)              # while the fit is not done
what_went_wrong(run, first, _)    # of a finished one; ``first`` is the paper's fit
"""

from __future__ import annotations

from gmc_core.fitting.compiling import compile_seconds
from gmc_core.fitting.fit import IterationRecord
from gmc_core.protocol.baselines import BIAS
from gmc_core.runs.findings import SURE_SE, Evidence
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
    "It remembers how unsure each filled-in value is instead of taking it for a rating, and a "
    "prior, what is believed before any rating speaks, keeps Σ modest where ratings are few"
)


def awaited(run: Run, onward: bool) -> str:
    """That a fit is not done yet, about how long that takes, and whether to go on meanwhile.

    onward : whether there is a Next to press.
    """
    if run.ended_for_good:
        return f"This fit was {run.state}; resume it on the Runs page."
    store = context.store()
    records: list[IterationRecord] = []
    if run.state == "queued":
        waiting = store.waiting(run.id)
        text, before, late = "**Its fit waits for its turn", waiting.seconds, waiting.late
        own = store.remaining_seconds(run.id)
        left = None if before is None or own is None else before + own
    else:
        records = [record for _, record in store.records(run.id)]
        text, late, left = "**It is being computed", is_late(run, records), left_now(run, records)
    compiling = 0.0 if not late and records else compile_seconds(run.config.fit)
    if late:
        text += f", {LONGER}.**"
    else:
        text += "**." if left is None else f"**, done in about {whole_duration(left + compiling)}."
    if compiling:
        text += " The numerical code is compiled first, once on this machine."
    return f"{text} What came of it will be said here." + (
        " Next may be pressed meanwhile." if onward else ""
    )


def what_is_drawn(run: Run, first: Run, beside: Run) -> str:
    """What the curve of the first fit is."""
    lines = ", and dashed lines are what plain averages reach" if run.baselines else ""
    nmae = (run.summary or {}).get("nmae")
    end = "" if nmae is None else f" It ends at NMAE **{nmae:.4f}**; Next says what that means."
    return (
        "MAP-EM with the paper’s settings has learned one Gaussian from the ratings of all users. "
        f"The curve is its error on ratings that were hidden from it, lower is better{lines}.{end}"
    )


def what_went_wrong(run: Run, first: Run, beside: Run) -> str:
    """Whether averages beat the first fit, even at its lowest point, and why."""
    seen = _seen(run)
    if seen is None or not seen.nmae:
        return "This fit has no error on hidden ratings to look at."
    lowest, bias = min(seen.nmae), seen.baselines.get(BIAS)
    at = f"at its lowest point, iteration {seen.best} (NMAE **{lowest:.4f}**)"
    if bias is not None and bias < lowest:
        text = f"Even {at}, it is beaten by {AVERAGES} ({bias:.4f}{_unsure(seen, lowest - bias)}). "
    elif bias is not None and bias < seen.nmae[-1]:
        than = f"{bias:.4f}{_unsure(seen, seen.nmae[-1] - bias)}"
        text = f"Better {at}, it ends beaten ({seen.nmae[-1]:.4f}) by {AVERAGES} ({than}). "
    elif seen.rising:
        text = f"It was best {at}, and has become worse since. "
    else:
        return f"It did not go wrong here: the error was lowest {at[3:]}."
    learns = f"; from iteration {seen.best + 1} on it learns chance" if seen.rising else ""
    return f"{text}{WHY_BEATEN}{learns}."


def _unsure(seen: Evidence, gap: float) -> str:
    """As the page says it of errors so close that few ratings cannot quite tell them apart."""
    if seen.nmae_se is None or not abs(gap) < SURE_SE * seen.nmae_se:
        return ""
    return f"; likely, not certain, with {seen.n:,} hidden ratings"


def what_epsilon_did(run: Run, first: Run, beside: Run) -> str:
    """Whether a larger ε is better than the first fit, and than the averages."""
    text = "A larger ε adds more to every variance, so agreements of few ratings are trusted less."
    return f"{text} {_verdict(run, first, 'That helps', 'That does not help here')}"


def what_repaired_it(run: Run, first: Run, beside: Run) -> str:
    """How ordered ratings compare with the first fit and the averages, and what makes that.

    beside : the same model with stars taken as numbers, which tells what grades are worth.
    """
    verdict = _verdict(run, first, "Ordered ratings win", "Ordered ratings do not win here")
    seen, other = _seen(run), _seen(first)
    if seen is None or other is None or not seen.nmae or not other.nmae:
        return f"{verdict} {WHY_REPAIRED}."
    if seen.nmae[-1] >= other.nmae[-1]:
        return verdict
    flat = seen.nmae[0] < min(other.nmae) and not seen.rising
    so = ": its curve starts low and stays flat" if flat else ""
    return f"{verdict} {WHY_REPAIRED}{so}. It also takes stars as grades{_grades(run, beside)}."


def _grades(run: Run, numbers: Run) -> str:
    """What taking stars as grades adds, from the same model on numbers."""
    own, other = ((each.summary or {}).get("nmae") for each in (run, numbers))
    if numbers.state != "finished" or own is None or other is None:
        return "" if numbers.ended_for_good else "; what that adds is being computed"
    text = f"; with stars as numbers it has {other:.4f}"
    found = difference(context.store(), run, numbers)
    if found is None:
        return text
    if not found.resolved:
        return f"{text}: whether that adds something these ratings do not settle"
    return f"{text}, so that {'helps as well' if own < other else 'does not help here'}"


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

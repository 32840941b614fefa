"""Which gains add up: ordered ratings with all combinations of what helps, on the same splits.

    python -m benchmarks.combinations --data ml-1m.zip [--max-items 1000] [--seeds 0]

The parts are users' attributes, the prior from who rated what, the users' side, the mean with a
fit of low rank and, where ratings have times, session noise. The users' side and low rank begin at
the directions of who rated what, so they come with it only. A random tenth of the ratings is held
out; nothing is chosen. Prints the table of ``gmc compare`` of all combinations that a model has,
beside none of them, and what each part adds to the least and to the largest that it goes
with.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gmc_core.base.errors import ConfigError
from gmc_core.base.signs import signed
from gmc_core.cli.comparison_tables import interval, markdown
from gmc_core.comparison.comparators import GaussianMethod
from gmc_core.comparison.compare import Comparison, Difference, Step, compare
from gmc_core.data.datasets import load_named
from gmc_core.data.ratings import RatingScale
from gmc_core.gaussian.averaged_settings import BEST_RANK
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.session_settings import USUAL_SESSION_NOISE
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.filters import Filter, apply_filter
from gmc_core.protocol.random_splits import random_split

SHARE = 0.1


@dataclass(frozen=True, eq=False)
class Part:
    """Something that helps. with_it, without : what it changes in the settings."""

    name: str
    with_it: Mapping[str, Any]
    without: Mapping[str, Any]


ATTRIBUTES = Part("attributes", {"attributes": True}, {"attributes": False})
# Needs the scale's own numbers, see without_who_rated.
WHO_RATED = Part("who rated what", {}, {})
USERS = Part("users' side", {"model": "two-sided"}, {"model": "ordinal"})
MEAN = Part("mean with low rank", {"average_rank": BEST_RANK}, {})
PARTS = (ATTRIBUTES, WHO_RATED, USERS, MEAN)
SESSIONS = Part("session noise", {"session_noise": USUAL_SESSION_NOISE}, {})


def combined(parts: tuple[Part, ...], chosen: tuple[bool, ...], scale: RatingScale) -> FitSettings:
    """Settings with the chosen parts and without the others.

    Raises
    ------
    ConfigError
        If no model has them all.
    """
    has = {part for part, there in zip(parts, chosen, strict=True) if there}
    if has & {USERS, MEAN} and WHO_RATED not in has:
        raise ConfigError("what it begins at is who rated what")
    changes: dict[str, Any] = {}
    for part, there in zip(parts, chosen, strict=True):
        changes |= part.with_it if there else part.without
    given = replace(settings_for(changes["model"]), dtype="float32", **changes)
    given.check_needed(changes)
    settings = given.resolved(scale)
    return settings if WHO_RATED in has else without_who_rated(settings)


def without_who_rated(settings: FitSettings) -> FitSettings:
    """What the target of the prior has of who rated what becomes each item's own."""
    assert settings.prior_target is not None
    shared, genres, who, own = settings.prior_target
    return replace(settings, prior_target=(shared, genres, 0.0, who + own))


def methods_of(
    parts: tuple[Part, ...], scale: RatingScale
) -> dict[tuple[bool, ...], GaussianMethod]:
    """Which parts → the method, for all combinations that a model has."""
    found = {}
    for chosen in itertools.product((False, True), repeat=len(parts)):
        try:
            settings = combined(parts, chosen, scale)
        except ConfigError as error:
            print(f"left out: {_names(parts, chosen)} ({error})", file=sys.stderr)
            continue
        found[chosen] = GaussianMethod(_names(parts, chosen), settings)
    return found


def _names(parts: tuple[Part, ...], chosen: tuple[bool, ...]) -> str:
    names = [part.name for part, there in zip(parts, chosen, strict=True) if there]
    return " + ".join(names) or "ordered ratings alone"


def what_each_adds(
    result: Comparison, parts: tuple[Part, ...], methods: Mapping[tuple[bool, ...], GaussianMethod]
) -> str:
    """Each part added to the least and to the largest combination that it goes with."""
    lines = ["| part | added to | NMAE | RMSE |", "|---|---|---|---|"]
    for place, part in enumerate(parts):
        for without in _without(place, methods):
            with_it = (*without[:place], True, *without[place + 1 :])
            compared = result.against(methods[without].name).rows()
            row = next(row for row in compared if row.name == methods[with_it].name)
            lines.append(
                f"| {part.name} | {methods[without].name} | {_told(row.nmae)} | {_told(row.rmse)} |"
            )
    return "\n".join(lines)


def _without(
    place: int, methods: Mapping[tuple[bool, ...], GaussianMethod]
) -> list[tuple[bool, ...]]:
    """The least and the largest combination that a part can be added to."""
    can = [
        chosen
        for chosen in methods
        if not chosen[place] and (*chosen[:place], True, *chosen[place + 1 :]) in methods
    ]
    return [min(can, key=sum), max(can, key=sum)]


def _told(found: Difference | None) -> str:
    return "" if found is None else f"{signed(found.ratings.mean, 4)} {interval(found.ratings)}"


def tell(step: Step, _: Comparison) -> None:
    """A line for each finished fit, on stderr."""
    nmae = step.nmae()
    text = step.failure if nmae is None else f"NMAE {nmae:.4f}"
    print(f"{step.method.label}: {text}", file=sys.stderr, flush=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", default="sample")
    parser.add_argument("--max-items", type=int)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    args = parser.parse_args()
    kept = Filter(min_user_ratings=0, min_item_ratings=0, max_items=args.max_items)
    ratings = apply_filter(load_named(args.data).ratings, kept)[0]
    parts = PARTS if ratings.user_info else tuple(p for p in PARTS if p is not ATTRIBUTES)
    if ratings.times is not None:
        parts = (*parts, SESSIONS)
    methods = methods_of(parts, ratings.scale)
    splits = [random_split(ratings, seed, share=SHARE) for seed in args.seeds]
    result = compare(list(methods.values()), splits, on_end=tell)
    print(f"{sum(len(split.test_values) for split in splits):,} held-out ratings\n")
    print(markdown(result), what_each_adds(result, parts, methods), sep="\n")


if __name__ == "__main__":
    main()

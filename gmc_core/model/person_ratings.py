"""One person's list of ratings on the items and the scale of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gmc_core.base.errors import DataError
from gmc_core.data.ratings import RatingScale
from gmc_core.data.readers.one_person import Entry, PersonList
from gmc_core.model.gaussian_model import GaussianModel
from gmc_core.model.lookup import TitleIndex, names_of


@dataclass(frozen=True)
class Matched:
    """What of a list a model can use; ``listed == len(ratings) + repeated + len(unmatched)``.

    ratings : item position → rating on the model's scale.
    unmatched : entries that are none of the model's items, each with the reason.
    repeated : entries whose item comes again further down, which counts.
    without_rating : rows of the file that hold no rating, not counted in ``listed``.
    scaling : in a sentence, what became of the values.
    """

    kind: str
    listed: int
    ratings: dict[int, float]
    unmatched: tuple[tuple[Entry, str], ...]
    repeated: int
    without_rating: int
    scaling: str

    def summary(self) -> str:
        """One sentence with all the counts."""
        text = (
            f"{self.kind} with {self.listed:,} ratings: {len(self.ratings):,} matched to titles of "
            f"the model, {len(self.unmatched):,} not"
        )
        if self.repeated:
            text += f", {self.repeated:,} of a title that comes again (the last one counts)"
        if self.without_rating:
            text += f"; {self.without_rating:,} rows without a rating left out"
        return text

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "kind": self.kind,
            "listed": self.listed,
            "matched": len(self.ratings),
            "repeated": self.repeated,
            "without_rating": self.without_rating,
            "scaling": self.scaling,
            "unmatched": [
                {"line": entry.line, "title": entry.title or entry.id, "year": entry.year,
                 "rating": entry.rating, "reason": reason}
                for entry, reason in self.unmatched
            ],
        }  # fmt: skip


def match(found: PersonList, model: GaussianModel, scale: RatingScale | None = None) -> Matched:
    """The ratings of a list that are of items of the model, on the model's scale.

    Titles are matched whole, with their year where both tell it; ids only where one of the two
    has no titles. Ids that are names are the titles of a model without any, for a list without
    ids. Values are converted only from a scale that is known or given, end to end; then they go to
    the nearest value of the model's scale.

    scale : of the list's ratings; None takes the service's own, if the list is an export.

    Raises
    ------
    DataError
        If a rating is not on the list's scale, or that is not known and a rating lies outside the
        model's.
    """
    known = scale or found.scale
    convert, scaling = _conversion(found, known, model.scale)
    titled = any(model.item_info.titles)
    names = names_of(model.item_info.titles, model.items.ids.tolist())
    named = any(names)
    index = TitleIndex(names, model.item_info.years.tolist())
    ratings: dict[int, float] = {}
    unmatched = []
    repeated = 0
    for entry in found.entries:
        if entry.title and (titled or (named and not entry.id)):
            item, reason = index.find(entry.title, entry.year)
        else:
            place = int(model.items.find([entry.id])[0]) if entry.id else -1
            item, reason = (place, "") if place >= 0 else (None, "no such id")
        if item is None:
            unmatched.append((entry, reason))
            continue
        repeated += item in ratings
        ratings.pop(item, None)  # the later one also stands later in the list
        ratings[item] = convert(entry)
    return Matched(
        kind=found.kind,
        listed=len(found.entries),
        ratings=ratings,
        unmatched=tuple(unmatched),
        repeated=repeated,
        without_rating=found.without_rating,
        scaling=scaling,
    )


def _conversion(
    found: PersonList, known: RatingScale | None, target: RatingScale
) -> tuple[Callable[[Entry], float], str]:
    """The function from an entry to a rating of the model, and what it does in words."""
    rounded = "" if target.step is None else f", to the nearest step of {target.step:g}"
    source = known or target
    for entry in found.entries:
        if not source.low <= entry.rating <= source.high:
            raise DataError(
                f"The rating is not on the scale {source}"
                + (
                    ". Give the scale of the list as it is, or correct the line."
                    if known
                    else " of the model, and the file does not tell its own; give it "
                    "(--file-scale LOW,HIGH, or on the Recommend page)."
                ),
                path=found.path,
                line=entry.line,
                value=f"{entry.rating:g}",
            )
    if known is None:
        text = f"taken as they are, on the model's scale {target.low:g}..{target.high:g}{rounded}"
    elif (known.low, known.high) == (target.low, target.high):
        text = f"on the model's scale {target.low:g}..{target.high:g} already{rounded}"
    else:
        text = (
            f"brought from {known.low:g}..{known.high:g} to the model's "
            f"{target.low:g}..{target.high:g}, end to end{rounded}"
        )

    def convert(entry: Entry) -> float:
        span = source.high - source.low
        share = (entry.rating - source.low) / span if span else 0.0
        return float(target.project(target.low + share * (target.high - target.low)))

    return convert, f"ratings {text}"

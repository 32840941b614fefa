"""What a reader hands back: the ratings, and an account of how they were read."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from gmc_core.data.ratings import Ratings, RatingScale
from gmc_core.data.reading_options import POLICIES as POLICIES
from gmc_core.data.reading_options import DuplicatePolicy as DuplicatePolicy


@dataclass(frozen=True)
class LoadReport:
    """An account of one reading, in which every row of the source is found again.

    ``rows_read == ratings + duplicates + sum(count for _, count in dropped)``.

    Attributes
    ----------
    source : the path, and the member inside it, that the ratings came from.
    format : name of the format, one of ``gmc_core.data.readers.FORMATS``.
    encoding : of the ratings file; the notes name that of the title file.
    rows_read : rows (in a dense matrix: filled cells) that hold a rating or vote.
    ratings : ratings kept.
    dropped : (reason, count) of rows left out for another reason than repetition.
    duplicates : rows beyond the first for the same user and item.
    duplicate_policy : which of them was kept.
    blank_lines : empty lines skipped.
    scale, scale_found : the rating scale, and how it was found.
    users, items : distinct users and items with at least one rating.
    notes : further sentences (encoding of titles, guessed columns, …).
    reading : options that read the source in this very way, as ``ExperimentConfig.reading``
        has them; without those that a known layout decides.
    scale_derived : what of the scale is only that of the values that occur: "ends", "step",
        "ends and step", or "" if nothing.
    """

    source: str
    format: str
    encoding: str
    rows_read: int
    ratings: int
    dropped: tuple[tuple[str, int], ...]
    duplicates: int
    duplicate_policy: DuplicatePolicy
    blank_lines: int
    scale: RatingScale
    scale_found: str
    users: int
    items: int
    notes: tuple[str, ...] = ()
    reading: dict[str, Any] = field(default_factory=dict)
    scale_derived: str = ""

    def __str__(self) -> str:
        lines = [
            f"{self.source}: format {self.format}, encoding {self.encoding}",
            f"{self.ratings:,} ratings of {self.items:,} items by {self.users:,} users, "
            f"from {self.rows_read:,} rows",
            f"scale {self.scale} ({self.scale_found})",
        ]
        if self.duplicates:
            lines.append(
                f"{self.duplicates:,} repeated ratings of one item by one user "
                f"(policy: {self.duplicate_policy})"
            )
        if self.scale_derived:
            lines.append(scale_warning(self.scale, self.scale_derived))
        lines += [f"{count:,} rows left out: {reason}" for reason, count in self.dropped]
        if self.blank_lines:
            lines.append(f"{self.blank_lines:,} blank lines skipped")
        lines += self.notes
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries, lists, numbers and strings, for JSON."""
        plain = asdict(self)
        plain["dropped"] = [{"reason": reason, "count": count} for reason, count in self.dropped]
        plain["notes"] = list(self.notes)
        return plain


# What of a scale may be taken from the values that occur.
DERIVED = ("ends", "step", "ends and step")


def scale_warning(scale: RatingScale, derived: str) -> str:
    """What follows from a scale of which ``derived`` is that of the values that occur."""
    divisor = f" {scale.nmae_divisor:.4g}" if scale.high > scale.low else ""
    return (
        f"scale {scale}: {derived} taken from the values that occur, and with that the NMAE "
        f"divisor{divisor}; if ratings can take other values, give the scale with --scale "
        "LOW,HIGH,STEP"
    )


@dataclass(frozen=True)
class Loaded:
    """Ratings with the report of their reading."""

    ratings: Ratings
    report: LoadReport

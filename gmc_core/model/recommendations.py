"""What a model tells of a user: recommendations and explanations, shown by notebooks as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gmc_core.base import html
from gmc_core.base.signs import signed
from gmc_core.model.calibration import Calibration, note_of


@dataclass(frozen=True)
class Contribution:
    """One rated item's share in the centre of a belief: in ratings, or in latent responses.

    session : the part of ``share`` that it has because both ratings were given at about the same
        time; 0 where times are not read.
    """

    item: int
    item_id: object
    title: str
    rating: float
    share: float
    session: float = 0.0


@dataclass(frozen=True)
class Recommendation:
    """One recommended item.

    predicted : in ratings, unprojected; as everywhere, see :mod:`gmc_core.model.answers`.
    rating : the same projected to the scale.
    latent : what the explanation adds up to: the prediction itself, or for ordered
        ratings the latent response.
    sd : posterior standard deviation of a rating, or of a latent response.
    n_ratings : training ratings of the item, 0 if the model does not know.
    low, high : ends of its interval in ratings;
        :func:`gmc_core.model.calibration.note_of` says which.
    """

    item: int
    item_id: object
    title: str
    genres: tuple[str, ...]
    predicted: float
    rating: float
    latent: float
    sd: float
    n_ratings: int
    low: float
    high: float


class Recommendations(list[Recommendation]):
    """A list of recommendations that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        rows = [
            (
                item.title,
                f"{item.predicted:.2f}",
                f"{item.low:.2f} – {item.high:.2f}",
                item.n_ratings,
            )
            for item in self
        ]
        return html.table(("title", "predicted", "interval", "training ratings"), rows)


class Explanation(list[Contribution]):
    """A list of contributions that a notebook shows as a sum.

    start : the belief about the item before any rating. title : of the item.
    similar : what users who resemble this one add; None where the model knows of none.
    """

    def __init__(
        self, parts: list[Contribution], start: float, title: str, similar: float | None = None
    ) -> None:
        super().__init__(parts)
        self.start, self.title, self.similar = start, title, similar

    @property
    def total(self) -> float:
        """The centre of the belief: the start, what similar users add, and all shares."""
        return self.start + (self.similar or 0.0) + sum(part.share for part in self)

    def _repr_html_(self) -> str:
        rows = [("before any rating", "", signed(self.start, 3))]
        if self.similar is not None:
            rows.append(("similar users", "", signed(self.similar, 3)))
        rows += [(part.title, f"{part.rating:g}", signed(part.share, 3)) for part in self]
        rows.append((f"together: {self.title}", "", f"{self.total:.3f}"))
        return html.table(("because of", "rated", "share"), rows)


def model_html(about: str, settings: Mapping[str, Any], calibration: Calibration | None) -> str:
    """HTML of a model: what it is, how sure its intervals are, and how it was made."""
    given = [(key, value) for key, value in settings.items() if value is not None]
    return html.caption(f"{about}. {note_of(calibration)}") + html.table(
        ("setting", "value"), given
    )

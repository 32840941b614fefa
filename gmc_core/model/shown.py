"""A model, recommendations and explanations as a notebook shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gmc_core.base import html
from gmc_core.model.calibration import note_of

if TYPE_CHECKING:
    from gmc_core.model.gaussian_model import Contribution, GaussianModel, Recommendation


class Recommendations(list["Recommendation"]):
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


class Explanation(list["Contribution"]):
    """A list of contributions that a notebook shows as a sum.

    start : the belief about the item before any rating. title : of the item.
    """

    def __init__(self, parts: list[Contribution], start: float, title: str) -> None:
        super().__init__(parts)
        self.start, self.title = start, title

    @property
    def total(self) -> float:
        """The centre of the belief: the start and all shares."""
        return self.start + sum(part.share for part in self)

    def _repr_html_(self) -> str:
        rows = [("before any rating", "", f"{self.start:+.3f}")]
        rows += [(part.title, f"{part.rating:g}", f"{part.share:+.3f}") for part in self]
        rows.append((f"together: {self.title}", "", f"{self.total:.3f}"))
        return html.table(("because of", "rated", "share"), rows)


def model_html(model: GaussianModel) -> str:
    """HTML of a model: of what it is, how it was made, and how sure its intervals are."""
    given = [(key, value) for key, value in model.settings.as_dict().items() if value is not None]
    ratings = "kept without its ratings"
    if model.ratings is not None:
        ratings = f"{len(model.ratings):,} training ratings of {model.ratings.n_users:,} users"
    about = (
        f"Gaussian over {model.gaussian.dimension:,} coordinates ({model.layout.kind} as signals), "
        f"iteration {model.iteration}; {model.data_name}, {ratings}, scale {model.scale}. "
    )
    return html.caption(about + note_of(model.calibration)) + html.table(
        ("setting", "value"), given
    )

"""What is declared of a setting of a fit, besides what :mod:`gmc_core.base.setting` has for all.

The settings themselves are in :mod:`gmc_core.gaussian.settings`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from gmc_core.base.kinds import listed
from gmc_core.base.setting import Setting, setting

if TYPE_CHECKING:
    from gmc_core.data.ratings import RatingScale

MAX_ITERATIONS = 1000

ModelKind = Literal["paper", "exact", "ordinal", "factor", "two-sided", "mixture"]
MODEL_KINDS: tuple[ModelKind, ...] = (
    "paper", "exact", "ordinal", "factor", "two-sided", "mixture"
)  # fmt: skip
EXACT: tuple[ModelKind, ...] = ("exact", "ordinal", "factor", "two-sided")
# Of these those whose Σ is a full matrix.
DENSE: tuple[ModelKind, ...] = ("exact", "ordinal", "two-sided")
# Of these again those that know of the items' side alone.
ONE_SIDED: tuple[ModelKind, ...] = ("exact", "ordinal")
# Those that take ratings as numbers or as ordered values.
EITHER: tuple[ModelKind, ...] = ("factor", "two-sided")


def variance_unit(scale: RatingScale) -> float:
    """What 1 star² is on this scale: the same share of the squared range."""
    return 1.0 if scale.is_stars else ((scale.high - scale.low) / 4) ** 2


Usual = Callable[["RatingScale", int | None], Any]


@dataclass(frozen=True)
class Above:
    """Any number above a limit, as what a setting needs of another."""

    limit: float


@dataclass(frozen=True, kw_only=True)
class FitSetting(Setting):
    """What is declared of a setting of a fit besides.

    models : that have it; all by default. needs : another setting and the value of it (or
    :class:`Above` a limit) without which this one has no meaning.
    usual : model → what None stands for, a value or a function of rating scale and N.
    scaled : that value is in stars²; on other scales it is the same share of the squared range.
    """

    models: tuple[ModelKind, ...] = MODEL_KINDS
    needs: tuple[str, Any] | None = None
    usual: Mapping[str, Any | Usual] = field(default_factory=dict)
    scaled: bool = False

    def usual_for(self, model: ModelKind, scale: RatingScale, items: int | None = None) -> Any:
        """What None stands for with these data; None if that is not known of them."""
        value = self.usual.get(model)
        if callable(value):
            return value(scale, items)
        if not self.scaled or value is None:
            return value
        unit = variance_unit(scale)
        return tuple(part * unit for part in value) if isinstance(value, tuple) else value * unit

    def is_usual(self, value: Any, model: ModelKind) -> bool:
        """Whether a value is the default whatever the data."""
        return value == self.default or (not self.scaled and value == self.usual.get(model))

    @property
    def may_be_none(self) -> bool:
        """Whether None stands for the model's default."""
        return self.default is None or bool(self.usual)

    def applies(self, settings: Any) -> bool:
        """Whether it has a meaning beside the other settings."""
        if settings.model not in self.models:
            return False
        return self.has_needed(lambda name: getattr(settings, name))

    def has_needed(self, value_of: Callable[[str], Any]) -> bool:
        """Whether the setting that it needs has the value for it.

        value_of : name of a setting → its value, None if it has none.
        """
        if self.needs is None:
            return True
        name, wanted = self.needs
        value = value_of(name)
        if isinstance(wanted, Above):
            return value is not None and value > wanted.limit
        return bool(value == wanted)

    @property
    def scope(self) -> str:
        """The models that have it, "" for all."""
        return "" if self.models == MODEL_KINDS else listed(self.models, "and")

    @property
    def default_words(self) -> str:
        """The default for a person: the paper's, then what other models have."""
        values = {} if self.usual_words else self.usual
        groups: dict[str, list[str]] = {}
        for model, value in values.items():
            scaled = self.scaled and value != 0
            words = self.kind.write(value) + (", scaled" if scaled else "")
            groups.setdefault(words, []).append(model)
        if not groups:
            return super().default_words
        first, *others = groups
        return "; ".join([first, *(f"{listed(groups[words], 'and')}: {words}" for words in others)])


def fit_setting(default: Any, **declared: Any) -> Any:
    """A field that is a setting of a fit; ``declared`` : see :class:`FitSetting`."""
    return setting(default, FitSetting(**declared))

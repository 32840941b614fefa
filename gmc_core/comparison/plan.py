"""What a comparison compares: methods, the reference, and the seeds of the splits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gmc_core.base.errors import ConfigError
from gmc_core.comparison.comparators import method_named
from gmc_core.comparison.comparators.chosen import TunedMapEm
from gmc_core.comparison.comparators.external import EXTERNAL_LABELS, installed_baselines
from gmc_core.comparison.comparators.gaussian import GaussianMethod
from gmc_core.comparison.comparators.method import Method, reads_times
from gmc_core.comparison.comparison_files import method_key
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.affordable import Wanted

MOST_SEEDS = 1000
MOST_METHODS = 1000

Scale = tuple[float, float, float | None]


def fits_of(methods: Iterable[Method]) -> list[Wanted]:
    """One fit of each of these methods that fits a Gaussian with known settings."""
    return [
        Wanted(method.settings, f"A fit of {method.label} ({method.name})")
        for method in methods
        if isinstance(method, GaussianMethod | TunedMapEm)
    ]


@dataclass(frozen=True)
class ComparisonPlan:
    """Methods on splits of the same data; data, filter and protocol are in a configuration.

    methods : names for :func:`gmc_core.comparison.comparators.method_named`.
    labels : of the methods, in the same order.
    reference : the method that the others are compared with.
    seeds : one for each split; (0,) for a given pair of training and test ratings.
    pythons : paths of interpreters that have methods of other packages.
    scale : low, high and step of the ratings, where nothing else tells them; None otherwise.

    Raises
    ------
    ConfigError
        If there is no method or no seed, one comes twice, or the reference is no method.
    """

    methods: tuple[str, ...]
    labels: tuple[str, ...]
    reference: str
    seeds: tuple[int, ...] = (0,)
    pythons: tuple[str, ...] = ()
    scale: Scale | None = None

    def __post_init__(self) -> None:
        if not self.methods or len(self.labels) != len(self.methods):
            raise ConfigError("A comparison needs at least one method, and a label for each.")
        if not self.seeds:
            raise ConfigError("A comparison needs at least one seed.")
        for name, values, most in (
            ("method", self.methods, MOST_METHODS), ("seed", self.seeds, MOST_SEEDS),
        ):  # fmt: skip
            if len(set(values)) < len(values):
                raise ConfigError(f"A {name} is given twice; give each once.")
            if len(values) > most:
                raise ConfigError(
                    f"A comparison has at most {most:,} {name}s, not {len(values):,}."
                )
        if not all(0 <= seed < 2**63 for seed in self.seeds):
            raise ConfigError("A seed is a whole number of at least 0.")
        if self.reference not in self.methods:
            raise ConfigError(
                f"The reference {self.reference!r} is not among the methods compared: "
                f"{', '.join(self.methods)}. Add it, or choose another."
            )

    @classmethod
    def of(
        cls,
        methods: Sequence[Method],
        seeds: Sequence[int],
        reference: str | None = None,
        external: Mapping[str, str] | None = None,
    ) -> ComparisonPlan:
        """The plan of methods that have been made.

        reference : the first method by default.
        external : of :func:`gmc_core.comparison.comparators.external.installed_baselines`.
        """
        names = tuple(method.name for method in methods)
        return cls(
            names,
            tuple(method.label for method in methods),
            reference or (names[0] if names else ""),
            tuple(seeds),
            tuple(dict.fromkeys(external[name] for name in names if external and name in external)),
        )

    @property
    def total(self) -> int:
        """How many fits: methods times splits."""
        return len(self.methods) * len(self.seeds)

    def make(self, scale: RatingScale) -> list[Method]:
        """The methods, for ratings of this scale.

        Raises
        ------
        GmcError
            If there is no such method, or the package that has it does not run.
        """
        external = installed_baselines(self.pythons) if self.pythons else {}
        return [method_named(name, scale, external) for name in self.methods]

    def fits(self, scale: RatingScale) -> list[Wanted]:
        """One fit of each method that fits a Gaussian with known settings.

        Other methods, and those of other packages, are not among them.

        Raises
        ------
        ConfigError
            If there is no such method.
        """
        own = [name for name in self.methods if name not in EXTERNAL_LABELS]
        return fits_of(method_named(name, scale) for name in own)

    def identity(self, scale: RatingScale) -> str:
        """Hash of what decides the figures, besides the splits: methods and seeds, in any order.

        Raises
        ------
        GmcError
            As :meth:`make`.
        """
        content = [sorted(map(method_key, self.make(scale))), sorted(self.seeds)]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def reads_times(self, scale: RatingScale) -> bool:
        """Whether a method's predictions depend on when ratings were given.

        Those of other packages do not, and need not be there.

        Raises
        ------
        ConfigError
            If there is no such method.
        """
        own = [name for name in self.methods if name not in EXTERNAL_LABELS]
        return any(reads_times(method_named(name, scale)) for name in own)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; :meth:`from_dict` is the way back."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ComparisonPlan:
        """Read what :meth:`as_dict` wrote.

        Raises
        ------
        ConfigError, ValueError, TypeError, KeyError
            If it is anything else.
        """
        scale = values.get("scale")
        if scale is not None:
            low, high, step = scale
            checked = RatingScale(float(low), float(high), None if step is None else float(step))
            scale = (checked.low, checked.high, checked.step)
        if any(isinstance(seed, bool) or not isinstance(seed, int) for seed in values["seeds"]):
            raise TypeError("a seed that is no whole number")
        return cls(
            tuple(map(str, values["methods"])),
            tuple(map(str, values["labels"])),
            str(values["reference"]),
            tuple(values["seeds"]),
            tuple(map(str, values.get("pythons", ()))),
            scale,
        )

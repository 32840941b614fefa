"""A setting is declared once, as a field of a frozen dataclass made with :func:`setting`.

From the declaration follow the check of a value wherever it comes from (:func:`check`), the option
of the command line with its help (:mod:`gmc_core.cli.options`), the command that repeats a run
(:mod:`gmc_core.runs.store.command`), the control on a page
(:mod:`gmc_dashboard.shared.setting_controls`) and the tables of the docs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import Any

from gmc_core.base.errors import ConfigError
from gmc_core.base.kinds import Kind, YesNo

_KEY = "setting"


@dataclass(frozen=True)
class Control:
    """How a form shows a setting; which control it is follows from the setting's kind.

    card : the part of the form where it stands. label, help : what people read.
    key : its name in a link; by default the setting's.
    low, high, step : the form's own limits, a convenience within those of the kind.
    slider : for a whole number. format : of a number. names : value → what the page calls it.
    filled : begins with the default, and is not empty where the setting is None.
    models : for which the form shows it; by default those that have the setting.
    constant : a sweep over other settings keeps it constant, and its page shows it too.
    """

    card: str
    label: str
    help: str = ""
    key: str = ""
    low: float | None = None
    high: float | None = None
    step: float | None = None
    slider: bool = False
    format: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    filled: bool = False
    models: tuple[str, ...] = ()
    constant: bool = False


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is declared of a setting.

    kind : its values. noun : what errors call it, at the beginning of a sentence.
    about : one phrase for the help text and the docs' table.
    flag, former : the option, and names that it had before, which still work.
    usual_words : its default, where the value does not say enough.
    control : on a form, None for a setting that only the command line and Python have.
    named : how a run's name tells of a value that is not the default; "" for not at all.
    name, default : of the field, filled in by :func:`declared`.
    """

    kind: Kind
    noun: str
    about: str
    flag: str
    former: tuple[str, ...] = ()
    usual_words: str = ""
    control: Control | None = None
    named: str = ""
    name: str = ""
    default: Any = None

    @property
    def key(self) -> str:
        """Its name in a link, and of its control."""
        return (self.control and self.control.key) or self.name

    @property
    def scope(self) -> str:
        """Which models have this setting, in words; "" if all have it."""
        return ""

    @property
    def default_words(self) -> str:
        """The default for a person."""
        if self.usual_words:
            return self.usual_words
        if self.default in (None, ()):
            return ""
        if isinstance(self.kind, YesNo):
            return "on" if self.default else "off"
        return self.kind.write(self.default)

    def words(self, value: Any) -> list[str]:
        """The words of a command line that give it this value."""
        if isinstance(self.kind, YesNo):
            return [self.flag if value else f"--no-{self.flag.removeprefix('--')}"]
        # One word with its option, so that a value may begin with a minus sign.
        values = value if self.kind.repeated else [value]
        return [f"{self.flag}={self.kind.write(one)}" for one in values]

    @property
    def may_be_none(self) -> bool:
        """Whether None stands for a default that depends on other things."""
        return self.default is None

    def check(self, value: Any) -> None:
        """Refuse what is no value of this setting.

        Raises
        ------
        ConfigError
            Says the range and the value.
        """
        if not (self.kind.holds(value) or (value is None and self.may_be_none)):
            raise ConfigError(f"{self.noun} must be {self.kind.range}, not {repr(value)[:80]}.")


def setting(default: Any, declaration: Setting) -> Any:
    """A field of a frozen dataclass that is a setting."""
    return field(default=default, metadata={_KEY: declaration})


def declared(owner: type) -> Mapping[str, Setting]:
    """Name → declaration of the settings of a dataclass, in its order."""
    return _declared(owner)


@cache
def _declared(owner: Any) -> Mapping[str, Setting]:
    found = {}
    for one in dataclasses.fields(owner):
        declaration = one.metadata.get(_KEY)
        if declaration is not None:
            found[one.name] = replace(declaration, name=one.name, default=one.default)
    return MappingProxyType(found)


def check(owner: Any) -> None:
    """Check all settings of a frozen dataclass, and keep lists from JSON as tuples.

    Raises
    ------
    ConfigError
        If a value is none of its setting's.
    """
    for name, one in declared(type(owner)).items():
        value = one.kind.normal(getattr(owner, name))
        object.__setattr__(owner, name, value)
        one.check(value)

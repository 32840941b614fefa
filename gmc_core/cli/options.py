"""The options of declared settings: from a declaration to argparse, and back to words."""

from __future__ import annotations

import argparse
from typing import Any

from gmc_core.base.kinds import OneOf, YesNo
from gmc_core.base.setting import Setting
from gmc_core.cli.output import note
from gmc_core.cli.values import typed


class _Former(argparse.Action):
    """A name that an option had before: it works, and says the new one."""

    def __init__(self, *args: Any, now: argparse.Action, **options: Any) -> None:
        super().__init__(*args, **options)
        self.now = now

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        note(f"note: {option_string} is now called {self.now.option_strings[0]}")
        self.now(parser, namespace, values, option_string)


def add_option(group: argparse._ActionsContainer, setting: Setting, **others: Any) -> None:
    """Add a setting's option and, hidden, its former names.

    What is not given is None, so that the defaults stand in the declaration alone.

    others : of ``add_argument``, in place of what follows from the declaration.
    """
    kind = setting.kind
    default = setting.default_words and f"default: {setting.default_words}"
    brackets = "; ".join(part for part in (setting.scope, default) if part)
    help = f"{setting.about} ({brackets})" if brackets else setting.about
    options: dict[str, Any] = {
        "dest": setting.name,
        "default": None,
        "help": help.replace("%", "%%"),
    }
    if isinstance(kind, YesNo):
        options["action"] = argparse.BooleanOptionalAction
    elif isinstance(kind, OneOf):
        options["choices"] = kind.choices
        options["metavar"] = kind.metavar or None
    else:
        options["metavar"] = kind.metavar
        options["type"] = typed(kind)
        if kind.repeated:
            options["action"] = "append"
    options |= others
    now = group.add_argument(setting.flag, **options)
    for former in setting.former:
        hidden = {**options, "help": argparse.SUPPRESS}
        group.add_argument(former, action=_Former, now=now, **hidden)

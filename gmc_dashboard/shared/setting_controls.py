"""Declared settings as controls: which one it is follows from the setting's kind.

Every control is bound to the URL by the setting's key, so that a link reproduces it.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from gmc_core.base.kinds import OneOf, Whole, YesNo
from gmc_core.base.setting import Control, Setting
from gmc_dashboard.shared.linked_choice import linked_choice


def control(setting: Setting, *, usual: Any = None, help: str | None = None) -> Any:
    """Draw a setting's control; returns its value, None where it was left empty.

    usual : what None stands for: what the control begins with, or shows while it is empty.
    help : in place of the declared one.
    """
    shown = setting.control
    assert shown is not None, f"the setting {setting.name} has no control"
    begin = usual if shown.filled else setting.default
    bound: dict[str, Any] = {
        "key": setting.key,
        "bind": "query-params",
        "help": shown.help if help is None else help,
    }
    if isinstance(setting.kind, YesNo):
        return bool(st.toggle(shown.label, begin, **bound))
    if isinstance(setting.kind, OneOf) and shown.names:
        words = {name: shown.names.get(name, name) for name in setting.kind.choices}
        return linked_choice(shown.label, words, begin, key=setting.key, help=bound["help"])
    if isinstance(setting.kind, OneOf):
        chosen = st.segmented_control(
            shown.label,
            list(setting.kind.choices),
            default=begin,
            required=True,
            **bound,
        )
        return chosen or begin
    if shown.slider:
        low, high = _limits(shown, int)
        return int(st.slider(shown.label, low, high, begin, **bound))
    return _number(setting, shown, begin, usual, bound)


def _number(setting: Setting, shown: Control, begin: Any, usual: Any, bound: dict[str, Any]) -> Any:
    kind = int if isinstance(setting.kind, Whole) else float
    low, high = _limits(shown, kind)
    if begin is not None and high is not None:
        high = max(high, begin)  # a default in proportion to a wide rating scale
    value = st.number_input(
        shown.label,
        low,
        high,
        begin,
        None if shown.step is None else kind(shown.step),
        format=shown.format,
        placeholder=f"{usual:g} (default)" if begin is None and usual is not None else None,
        **bound,
    )
    return None if value is None else kind(value)


def _limits(shown: Control, kind: type) -> tuple[Any, Any]:
    """The ends of what the form offers, of the type that Streamlit expects."""
    ends = (shown.low, shown.high)
    low, high = (None if end is None else kind(end) for end in ends)
    return low, high

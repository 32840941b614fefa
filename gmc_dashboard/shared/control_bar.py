"""The bar above whatever is computed in the background: what it is, its state, its buttons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import streamlit as st

from gmc_dashboard.shared.components import escape

Colour = Literal["gray", "blue", "green", "orange", "red"]
Badge = tuple[str, Colour, str]  # label, colour, icon


# Before the title, so that it never stands on a line of its own; without words of its own.
_MARK = """<style>
.st-key-control_bar h3::before { content: "%s" / ""; color: %s; margin-right: .6rem }
</style>"""


class Action(NamedTuple):
    """A button: its label, key, explanation, and what a click does."""

    label: str
    key: str
    help: str | None
    on_click: Callable[..., None]
    args: tuple[Any, ...] = ()
    disabled: bool = False


def control_bar(
    title: str,
    badge: Badge,
    *,
    mark: tuple[str, str] | None = None,
    help: str | None = None,
    cancel: Action | None = None,
    resume: Action | None = None,
    new: Action | None = None,
    lead: Literal["resume", "new"] = "resume",
) -> None:
    """Draw the bar.

    Parameters
    ----------
    title : plain text. badge : of the state. help : what the title's words mean.
    mark : sign and colour of the line that is drawn of it, where there are several.
    cancel, resume, new : what can be done now; at most one of the first two.
    lead : which of the others is the thing to do, where one can be resumed.
    """
    if mark is not None:
        st.html(_MARK % mark)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="control_bar"):
        st.subheader(escape(title), anchor=False, width="content", help=help)
        label, colour, icon = badge
        st.badge(label, color=colour, icon=icon)
        st.space("stretch")
        if cancel is not None:
            _button(cancel, ":material/stop:")
        elif resume is not None:
            _button(resume, ":material/resume:", "primary" if lead == "resume" else "secondary")
        if new is not None:
            leads = resume is not None and lead == "new"
            _button(new, ":material/add:", "primary" if leads else "secondary")


def _button(action: Action, icon: str, kind: Literal["primary", "secondary"] = "secondary") -> None:
    st.button(
        action.label,
        key=action.key,
        icon=icon,
        type=kind,
        help=action.help,
        disabled=action.disabled,
        on_click=action.on_click,
        args=action.args,
    )

"""Tables that can be read on a projector, too.

    event = frame(table, column_config=…, projected=("Title", "Rating"), on_select="rerun")
    rows = rows_of(event)

``st.dataframe`` draws into a canvas, whose type follows the page's only if that was set before.
In the presentation view its place is taken by a plain table, which follows always: the most telling
columns, the first rows. It cannot be sorted and no row can be chosen in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from gmc_core.base.signs import unsigned_zero
from gmc_dashboard.shared.components import escape
from gmc_dashboard.shared.presenting import presenting
from gmc_dashboard.shared.theme import is_dark, palette
from gmc_dashboard.shared.units import minus

_BY_WIDTH = """<style>
[class*="st-key-narrow_"] { display: none }
@media (max-width: 640px) {
    [class*="st-key-narrow_"] { display: flex }
    [class*="st-key-wide_"] { display: none }
}
:is([class*="st-key-narrow_"], [class*="st-key-plain_"]) td:not(:first-of-type) * {
    white-space: nowrap }
</style>"""
ROWS = 10  # on a projector; 18 px high text leaves no room for more


def frame(
    table: pd.DataFrame,
    *,
    projected: Sequence[str] = (),
    narrow: Sequence[str] = (),
    marked: int | None = None,
    **options: Any,
) -> Any:
    """A table with the ``options`` of ``st.dataframe``; returns what that does, None if projected.

    projected : the columns that a projector shows, as far as they are there; by default all.
    narrow : those of a plain table, whose words wrap, that takes its place where the window is as
    narrow as a telephone; by default none does. The first of them may be long, the others not.
    marked : place of a row to stand out, from 0: that which something beside the table is about.
    """
    if presenting():
        _projected(table, projected, bool(narrow), options)
        return None
    given, missing = options.get("column_config") or {}, options.get("placeholder")
    shown = _unsigned(table, options)
    if marked is not None:
        shown = _with_mark(table.style if shown is table else shown, marked)
    if not narrow:
        return st.dataframe(shown, **options)
    st.html(_BY_WIDTH)
    with st.container(key=f"wide_{options['key']}"):
        event = st.dataframe(shown, **options)
    with st.container(key=f"narrow_{options['key']}"):
        plain = styled(table[list(narrow)], given, missing or "–")
        st.table(
            plain if marked is None else _with_mark(plain, marked, wraps=True),
            hide_index=options.get("hide_index"),
            border="horizontal",
            alt=f"For a narrow window. {options.get('alt') or ''}".strip(),
        )
    return event


def _projected(
    table: pd.DataFrame, projected: Sequence[str], wraps: bool, options: Mapping[str, Any]
) -> None:
    """The plain table that a projector shows. wraps : whether only its first column may."""
    wanted = projected or options.get("column_order") or table.columns
    columns = [name for name in wanted if name in table.columns]
    shown = table[columns].head(ROWS)
    if wraps:
        st.html(_BY_WIDTH)
    with st.container(key=f"plain_{options['key']}" if wraps else None):
        st.table(
            styled(shown, options.get("column_config") or {}, options.get("placeholder", "–")),
            hide_index=options.get("hide_index"),
            border="horizontal",
            alt=options.get("alt"),
        )
    if len(table) > len(shown):
        st.markdown(f"… and {len(table) - len(shown):,} more")


def _unsigned(table: pd.DataFrame, options: dict[str, Any]) -> Any:
    """The table, or a styler of it that writes its differences, whose columns then lose their own
    formats in ``options``: the browser, which fills these in, would put a sign before zero."""
    given = options.get("column_config") or {}
    patterns = {name: _signing(column) for name, column in given.items()}
    patterns = {name: text for name, text in patterns.items() if text and name in table}
    if not patterns:
        return table
    options["column_config"] = {
        name: _plain(column) if name in patterns else column for name, column in given.items()
    }
    formats: dict[Any, Any] = {name: _printed(pattern) for name, pattern in patterns.items()}
    return table.style.format(formats, na_rep=options.get("placeholder", "None"))


def _with_mark(styler: Any, place: int, *, wraps: bool = False) -> Any:
    """A row with a colour of its own and in bold type.

    wraps : a canvas cuts off what is too long, so there the first column keeps its type.
    """
    looks = np.full(styler.data.shape, "", dtype=object)
    looks[place] = f"background-color: {palette(is_dark()).sequential[1]}"
    looks[place, 0 if wraps else 1 :] += "; font-weight: 600"
    return styler.apply(lambda _: looks, axis=None)


def _signing(column: Any) -> str:
    """The format of a column of differences, as "%+.4f"; "" of any other."""
    kind = (column.get("type_config") or {}) if isinstance(column, dict) else {}
    pattern = str(kind.get("format") or "")
    return pattern if pattern.startswith("%+") else ""


def _plain(column: Any) -> Any:
    """A column without a format of its own."""
    kind = {name: value for name, value in column["type_config"].items() if name != "format"}
    return {**column, "type_config": kind}


def rows_of(event: Any) -> list[int]:
    """The rows chosen in a table of :func:`frame`; none in a projected one."""
    return [] if event is None else list(event.selection.rows)


def cell_rows_of(event: Any) -> list[int]:
    """The rows of the cells chosen in a table of :func:`frame`; none in a projected one."""
    return [] if event is None else [row for row, _ in event.selection.cells]


def styled(table: pd.DataFrame, config: Mapping[str, Any], missing: str) -> Any:
    """The table with the labels and number formats of a column configuration, as a styler."""
    plain = table.copy()
    formats: dict[Any, Any] = {}
    labels = {name: _label(config.get(name), name) for name in table.columns}
    for name in table.columns:
        kind = config[name].get("type_config", {}) if isinstance(config.get(name), dict) else {}
        if pd.api.types.is_numeric_dtype(plain[name]):
            given = str(kind.get("format") or "")
            usual = "%d" if pd.api.types.is_integer_dtype(plain[name]) else "%g"
            formats[labels[name]] = _printed(given if given.startswith("%") else usual)
        else:
            plain[name] = plain[name].map(lambda cell: escape(str(cell)) if _known(cell) else None)
    return plain.rename(columns=labels).style.format(formats, na_rep=missing)


def _label(given: Any, name: str) -> str:
    return escape(str((given if isinstance(given, str) else (given or {}).get("label")) or name))


def _printed(pattern: str) -> Callable[[float], str]:
    """Numbers as a pattern of C's printf shows them, as those of Streamlit's columns are."""
    return lambda value: minus(unsigned_zero(pattern % value))


def _known(cell: object) -> bool:
    return cell is not None and cell == cell  # NaN is not

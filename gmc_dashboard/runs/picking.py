"""Picked runs of the Runs page: the ticks of its table and the box below it say the same.

tick(key, rows)                              # before the table: what was picked otherwise
picked = taken_over(picked, ticked, shown)   # after a click in the table
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from gmc_dashboard.shared.presenting import presenting


def tick(key: str, rows: Sequence[int]) -> None:
    """Have these rows of a table ticked; written only where they are not, as that redraws it.

    key : of the table, which is drawn afterwards. rows : their places, from 0.
    """
    if presenting():  # the table there has no ticks
        return
    state = st.session_state.get(key)
    if sorted(state["selection"]["rows"] if state else ()) != sorted(rows):
        st.session_state[key] = {"selection": {"rows": list(rows), "columns": [], "cells": []}}


def ticked_rows(key: str) -> list[int]:
    """The rows that are ticked in a table, in the order of the clicks."""
    return list(st.session_state[key]["selection"]["rows"])


def taken_over(before: Sequence[str], ticked: Sequence[str], shown: Sequence[str]) -> list[str]:
    """The picked runs after a click: those that filters hide stay, and a new one comes last.

    before : what was picked. ticked : what is ticked now, of ``shown``, the rows of the table.
    """
    kept = [one for one in before if one in ticked or one not in shown]
    return [*kept, *(one for one in ticked if one not in kept)]

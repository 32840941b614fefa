"""Compiling the numerical code while the start page is read, in a process of its own."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading

import streamlit as st

log = logging.getLogger(__name__)

COMMAND = (sys.executable, "-m", "gmc_core.fitting.compiling")


@st.cache_resource(show_spinner=False)
def begin() -> subprocess.Popen[bytes] | None:
    """Start it, once in the dashboard's life; it ends at once where all is compiled.

    A fit that comes sooner waits for it and says so. ``GMC_SPARE_TIME=0`` leaves compiling to
    the first fit.
    """
    if os.environ.get("GMC_SPARE_TIME") == "0":
        return None
    try:
        process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:  # then the first fit compiles
        log.warning("Compiling in the background was not possible: %s", error)
        return None
    # Waited for, so that it leaves no entry among the system's processes.
    threading.Thread(target=process.wait, name="compiling", daemon=True).start()
    return process

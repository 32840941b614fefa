"""Which TCP ports of this machine are free."""

from __future__ import annotations

import os
import socket

ADDRESS = "127.0.0.1"
DEFAULT_PORT = 8501  # Streamlit's own, so that older links still lead to the dashboard
TRIED = 20


def is_free(port: int) -> bool:
    """Whether a server can listen at this port (1 to 65535) of 127.0.0.1."""
    with socket.socket() as probe:
        if os.name == "posix":
            # As servers do: what is left of connections that have ended does not count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:  # taken, or below 1024 and not ours to use
            return False
    return True


def first_free(start: int = DEFAULT_PORT) -> int | None:
    """The first free port of the ``TRIED`` that begin with ``start``; None if all are taken."""
    ports = range(start, min(start + TRIED, 65536))
    return next((port for port in ports if is_free(port)), None)

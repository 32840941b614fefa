"""What the commands print and write: tables, notes, JSON."""

from __future__ import annotations

import io
import json
import math
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from gmc_core.base.errors import ConfigError
from gmc_core.base.files import replacing, try_target, without_nan, written_in_place
from gmc_core.base.times import duration as duration


class MovingLine:
    """The last line of a terminal's stderr, written over again and again; what stays takes its
    place.

    owner : who has shown it, None while there is none.
    changed : when somebody has last told something that was not the owner's again.
    """

    def __init__(self) -> None:
        self.owner: object = None
        self.changed = 0.0
        self._width = 0
        self._lock = threading.RLock()

    def show(self, text: str, owner: object) -> None:
        """Write it."""
        with self._lock:
            if owner is not self.owner:
                self.owner, self.changed = owner, time.monotonic()
            self._width = max(self._width, len(text))
            print("\r" + text.ljust(self._width), end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take it away, before something that stays."""
        with self._lock:
            self.owner, self.changed = None, time.monotonic()
            if self._width:
                print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)
                self._width = 0


moving_line = MovingLine()


class ResultStream:
    """Standard output of a terminal that shows the moving line too, which goes before a result."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a result."""
        moving_line.clear()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def results_on_a_terminal() -> Iterator[None]:
    """Inside the ``with`` a result on stdout takes the place of the moving line."""
    stream = sys.stdout
    both = stream.isatty() and sys.stderr.isatty()
    if both:
        sys.stdout = ResultStream(stream)  # type: ignore[assignment]
    try:
        yield
    finally:
        if both:
            sys.stdout = stream


def note(text: str = "") -> None:
    """Print a line for the person, on stderr."""
    moving_line.clear()
    print(text, file=sys.stderr, flush=True)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """Columns as wide as their content; the first ``left`` are text, the rest numbers."""
    lines = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if k < left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def figure(value: float | None, digits: int = 4) -> str:
    """A score; "-" where there is none."""
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def size(count: float) -> str:
    """Bytes for a person."""
    return f"{count / 1e9:.1f} GB" if count >= 5e7 else f"{count / 1e6:.1f} MB"


def check_output(path: str | None, flag: str) -> None:
    """Refuse, before any work is done, a target that could not be written at the end.

    Raises
    ------
    ConfigError
        If the folder does not exist, may not be written to or has no room, or ``path``
        is a folder.
    """
    if path is None or path == "-":
        return
    folder = Path(os.path.realpath(path)).parent
    if not path or path.endswith(("/", os.sep)):
        raise ConfigError(f"{flag}: {path!r} names no file; give the name of one.")
    if not written_in_place(Path(path)) and not folder.is_dir():
        raise ConfigError(f"{flag}: there is no folder {folder}; make it first.")
    try:
        try_target(Path(path))
    except IsADirectoryError:
        raise ConfigError(f"{flag}: {path} is a folder; give the name of a file.") from None
    except OSError as error:
        raise ConfigError(
            f"{flag}: {path} cannot be written ({error.strerror or error}). Choose another file "
            "or folder, or make room on the disk."
        ) from error


def write_json(path: str, value: Any) -> None:
    """Write JSON to a file (completely or not at all), or to stdout for "-".

    NaN becomes null: JSON has no NaN.
    """
    write_text(
        path, json.dumps(without_nan(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    )


def write_text(path: str, text: str) -> None:
    """Write text to a file (completely or not at all), or to stdout for "-"."""
    if path == "-":
        sys.stdout.write(text)
        return
    with replaced(path) as file:
        file.write(text)


@contextmanager
def replaced(path: str) -> Iterator[TextIO]:
    """A text file that takes the name ``path`` only when it is written completely."""
    with replacing(Path(path)) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        yield text
        text.detach()  # written out, and left to be closed by its owner

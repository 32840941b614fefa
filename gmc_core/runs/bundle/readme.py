"""The README of a bundle: what is in it, the settings, the data's hash, and the command."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from gmc_core.runs.bundle.contents import Contents
from gmc_core.runs.bundle.latex import visible
from gmc_core.runs.bundle.tables import Table
from gmc_core.runs.report_html import flat, settings_of, text
from gmc_core.runs.store.seal import NOT_OURS

WIDTH = 92
SEEN = ("name", "users", "items", "ratings", "scale", "sha256", "side_sha256")


def readme(
    contents: Contents,
    command: str,
    data: Mapping[str, Any],
    figures: Mapping[str, str],
    tables: Sequence[Table],
) -> str:
    """As plain text.

    command : that repeats the run. data : what is known of its data. figures : name → caption.
    """
    run = contents.run
    state = f"State: {run.state}. {run.message}".strip()
    if run.kind == "run" and run.state != "finished":
        state += " What it has reached is no final result."
    parts = [
        run.title, "=" * min(len(run.title), WIDTH), "",
        f"Run {run.id}, computed by version {run.version} of Gaussian matrix completion.",
        *_wrapped(state),
        *([] if run.reusable else _wrapped(NOT_OURS)),
    ]  # fmt: skip
    if figures:
        parts += _heading("Figures: PDF (fonts embedded), SVG (text stays text), PNG (300 dpi)")
        for name, caption in figures.items():
            parts += [f"figures/{name}", *_wrapped(caption, "    "), ""]
    parts += _heading("Tables: CSV with all digits; .tex for \\input, without any package")
    for table in tables:
        parts += [f"tables/{table.name}", *_wrapped(table.caption, "    "), ""]
    parts += [
        "tables/records.csv",
        *_wrapped("Every figure of the run as it was recorded.", "    "),
        "",
        *_wrapped(
            "± and “SE” are standard errors over held-out ratings, of sweeps over seeds from two "
            "seeds on. Titles in other scripts than Latin need LuaLaTeX or XeLaTeX."
        ),
    ]
    if contents.missing:
        parts += _heading("Not in this bundle")
        for sentence in contents.missing:
            parts += _wrapped(sentence, "  ", "- ")
    parts += [
        *_heading("Settings"),
        *_wrapped("A dash stands for the default; the command below writes it out."),
        *_pairs(flat(settings_of(run))),
    ]
    seen = {name: data[name] for name in SEEN if data.get(name) not in (None, "")}
    parts += [*_heading("Data"), *_pairs(flat({**seen, "sha256": run.data_sha256 or _hash(data)}))]
    parts += [*_heading("The command that repeats it"), command, ""]
    parts += _wrapped(
        "It names the data by their hash and refuses others. The data are not in this bundle, and "
        "their licence may forbid to pass them on."
    )
    return "\n".join(map(visible, parts)) + "\n"


def _hash(data: Mapping[str, Any]) -> object:
    return data.get("sha256", "not known: the data have not been read yet")


def _heading(words: str) -> list[str]:
    return ["", words, "-" * len(words)]


def _wrapped(words: str, indent: str = "", first: str | None = None) -> list[str]:
    return textwrap.wrap(
        words, WIDTH, initial_indent=indent if first is None else first, subsequent_indent=indent
    )


def _pairs(values: Mapping[str, Any]) -> list[str]:
    width = max((len(name) for name in values), default=0)
    return [f"{name:<{width}}  {text(value)}" for name, value in values.items()]

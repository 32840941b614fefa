"""Text and tables as LaTeX that compiles with the plain ``article`` class."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "%": r"\%",
    "&": r"\&",
    "_": r"\_",
    "#": r"\#",
    "$": r"\$",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # After the end of a row, a star or a bracket would be taken for an argument of ``\\``.
    "*": "{*}",
    "[": "{[}",
    "]": "{]}",
    "`": "{`}",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "²": "$^2$",
    "½": r"$\frac{1}{2}$",
    "ε": r"$\varepsilon$",
    "μ": r"$\mu$",
    "σ": r"$\sigma$",
    "Σ": r"$\Sigma$",
    "λ": r"$\lambda$",
    "–": "--",
    "—": "---",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "…": r"\ldots{}",
    "\N{NO-BREAK SPACE}": "~",
}
# Control characters, line ends, and marks that turn the direction of all that follows.
_SIGN = re.compile(r"([-',])(?=\1)|.", flags=re.DOTALL)  # first: two of them would make one sign
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+")


def visible(text: str) -> str:
    """The text with a space for line ends and control characters, which some files cannot hold."""
    return _UNSEEN.sub(" ", text)


def escape(text: str) -> str:
    """Any text as LaTeX that shows it; line ends and control characters become one space.

    Other scripts, and Greek letters that the field's formulas do not need, stay as they are:
    LuaLaTeX and XeLaTeX set them with a font that has them.
    """
    return _SIGN.sub(_escaped, visible(text))


def _escaped(found: re.Match[str]) -> str:
    return f"{found[1]}{{}}" if found[1] else _SIGNS.get(found[0], found[0])


def tabular(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1, comment: str = ""
) -> str:
    """A ``tabular`` with lines of LaTeX itself: no package is needed.

    Parameters
    ----------
    head, rows : plain text, one entry a column; all is escaped.
    words : how many columns, from the left, hold words: they are flush left, others flush right.
    comment : lines above it, as comments of LaTeX.
    """
    lines = [f"% {visible(line)}" for line in comment.splitlines()]
    lines.append(rf"\begin{{tabular}}{{{'l' * words}{'r' * (len(head) - words)}}}")
    lines += [r"\hline", _row(head), r"\hline", *(_row(row) for row in rows)]
    return "\n".join([*lines, r"\hline", r"\end{tabular}"]) + "\n"


def _row(cells: Sequence[str]) -> str:
    return " & ".join(map(escape, cells)) + r" \\"

"""How the site is built: ``make docs``, or ``python -m sphinx -W -b html docs build/docs``.

The pages are Markdown that can be read in the repository as well. The build asks nothing of the
network, and neither does the built site: fonts are the system's, formulas are text, and search
runs in the browser over an index in the site.
"""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from gmc_core.base.version import VERSION  # noqa: E402

project = "Gaussian Matrix Completion"
author = "the Gaussian Matrix Completion developers"
release = VERSION
copyright = author

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["README.md"]
nitpicky = False  # types of NumPy and of other packages are no pages here

# Markdown: headings are link targets as on code hosts (#few-held-out-ratings).
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# Notebooks are stored with what they show; tests/docs execute them, the build does not.
nb_execution_mode = "off"
nb_merge_streams = True

# Python: the order is that of the source, types stand in the signature.
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False

html_theme = "furo"
html_title = f"{project} {release}"
html_static_path: list[str] = []
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "monokai"

# "name, other : what they are" opens an entry; in the sections of numpydoc that is a type for
# napoleon, and elsewhere a paragraph that would run on.
_ENTRY = re.compile(r"^([a-z_]\w*(?:, [a-z_]\w*)*) : (.+)$")
_WITHIN = re.compile(r"(?<=\.) ([a-z_]\w*(?:, [a-z_]\w*)*) : ")
_SECTION = re.compile(r"^-{3,}$")


def _entries(lines: list[str]) -> list[str]:
    """Docstring lines in which every described name is an item of a list."""
    found: list[str] = []
    inside = False
    for line in lines:
        entry = _ENTRY.match(line)
        if entry:
            if not inside:
                found.append("")
            inside = True
            parts = _WITHIN.split(entry[2])
            found.append(f"- **{entry[1]}**: {parts[0]}")
            found += [f"- **{name}**: {text}" for name, text in zip(*[iter(parts[1:])] * 2)]
        elif inside and line.strip() and not line.startswith((" ", "-")):
            parts = _WITHIN.split(line)
            found.append(f"  {parts[0]}")
            found += [f"- **{name}**: {text}" for name, text in zip(*[iter(parts[1:])] * 2)]
        elif inside and line.startswith(" "):
            found.append(f"  {line.strip()}")
        else:
            inside = False
            found.append(line)
    return found


def _formulas(lines: list[str]) -> list[str]:
    """Docstring lines in which an indented block after a blank line is shown as it stands."""
    found = lines[:1]
    literal = False
    for before, line in pairwise(lines):
        indented = line.startswith("    ")
        if line.strip() and not indented:
            literal = False
        elif indented and not before.strip() and not literal:
            above = next((text for text in reversed(found) if text.strip()), "")
            if not above.startswith((" ", "- ", "..")) and not above.endswith("::"):
                found += ["::", ""]
            literal = True
        found.append(line)
    return found


def _readable(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Make the house's docstrings into reStructuredText, in place."""
    cut = next((k - 1 for k, line in enumerate(lines) if _SECTION.match(line)), len(lines))
    head, sections = lines[:cut], lines[cut:]
    # In sections an entry's text is its description, not its type.
    told = [_ENTRY.sub(r"\1\n    \2", line).split("\n") for line in sections]
    lines[:] = [*_entries(_formulas(head)), *(line for part in told for line in part)]


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx; before napoleon, whose priority is 500."""
    app.connect("autodoc-process-docstring", _readable, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""How the site is built: ``make docs``, or ``python -m sphinx -W -b html docs build/docs``.

The pages are Markdown that can be read in the repository as well. The build asks nothing of the
network, and neither does the built site: fonts are the system's, formulas are text, and search
runs in the browser over an index in the site.
"""

from __future__ import annotations

import re
import sys
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
autodoc_type_aliases = {"npt.ArrayLike": "ArrayLike"}

html_theme = "furo"
html_title = f"{project} {release}"
html_static_path: list[str] = []
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "monokai"

# Files of the repository that are pages of the site as well: links to them lead there.
_PAGES = {
    "../CHANGELOG.md": "changes.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../gmc_core/data/sample/NOTICE.md": "sample.md",
}
# "name, other : what they are" opens an entry. Under the headings of numpydoc napoleon would take
# the text for a type; elsewhere it would be a paragraph that runs on.
_ENTRY = re.compile(r"^([a-z_]\w*(?:, [a-z_]\w*)*) : (.+)$")
_NEXT_ENTRY = re.compile(r"(?<=\.) (?=[a-z_]\w*(?:, [a-z_]\w*)* : )")
_UNDERLINE = re.compile(r"^-{3,}$")
# What reStructuredText would take for a substitution or a reference: |x|, name_.
_MARKUP = re.compile(r"(\||(?<=\w)_(?!\w))")


def _link_pages(app: Any, name: str, source: list[str]) -> None:
    """Lead links to files of the repository to their pages, in place."""
    for file, page in _PAGES.items():
        source[0] = source[0].replace(f"]({file})", f"]({page})")


def _plain(line: str) -> str:
    """A line of prose whose bars and trailing underscores are what they look like."""
    parts = re.split(r"(``.*?``|:\w+:`.*?`_?)", line)
    parts[::2] = [_MARKUP.sub(r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def _prose(lines: list[str]) -> list[str]:
    """Docstring lines with entries as items of a list, and indented blocks as they stand."""
    found: list[str] = []
    inside = ""  # "entry", or "block" of formulas, code or figures
    for line in lines:
        indented, blank = line.startswith("    "), not line.strip()
        if inside == "block" and (indented or blank):
            found.append(line)
        elif indented and inside != "entry" and found and not found[-1].strip():
            inside = "block"
            above = next((text for text in reversed(found) if text.strip()), "")
            found += [line] if above.endswith("::") else ["::", "", line]
        elif _ENTRY.match(line):
            if inside != "entry":
                found.append("")
            inside = "entry"
            for entry in _NEXT_ENTRY.split(line):
                names, text = entry.split(" : ", 1)
                found.append(f"- **{names}**: {_plain(text)}")
        elif inside == "entry" and not blank:
            first, *others = _NEXT_ENTRY.split(line.strip())
            found.append(f"  {_plain(first)}")
            for entry in others:
                names, text = entry.split(" : ", 1)
                found.append(f"- **{names}**: {_plain(text)}")
        else:
            inside = ""
            found.append(_plain(line))
    return found


def _readable(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Make the house's docstrings into reStructuredText, in place."""
    heads = [k - 1 for k, line in enumerate(lines) if _UNDERLINE.match(line)]
    cut = heads[0] if heads else len(lines)
    sections: list[str] = []
    for line in lines[cut:]:
        if entry := _ENTRY.match(line):
            sections += [entry[1], f"    {_plain(entry[2])}"]
        elif _UNDERLINE.match(line) or line.startswith((">>>", "...")):
            sections.append(line)
        else:
            sections.append(_plain(line))
    lines[:] = [*_prose(lines[:cut]), "", *sections]


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx; before napoleon, whose priority is 500."""
    app.connect("source-read", _link_pages)
    app.connect("autodoc-process-docstring", _readable, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

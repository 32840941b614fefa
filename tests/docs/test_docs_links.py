"""Every link of the Markdown pages and notebooks leads somewhere, file and heading."""

from __future__ import annotations

import json
import re
from argparse import _SubParsersAction
from pathlib import Path

import pytest

from gmc_core.cli import build_parser

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
PAGES += [*sorted(DOCS.rglob("*.md")), *sorted(DOCS.rglob("*.ipynb"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
# Pages that show another file: headings are that file's.
INCLUDE = re.compile(r"^```\{include\} (\S+)$", flags=re.M)


def text_of(path: Path) -> str:
    """A page as Markdown; of a notebook the cells of text."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return text


def prose(text: str) -> str:
    """Without fenced code and without code in a line, whose brackets are no links."""
    text = re.sub(r"(?ms)^( *)(```+|~~~+).*?^\1\2 *$", "", text)
    return re.sub(r"(?<!\])\(`[^`\n]*`|(?<!\[)`[^`\n]+`", "", text)


def anchors(path: Path) -> set[str]:
    """The names of a page's headings, as code hosts and the site make them."""
    text = text_of(path)
    for included in INCLUDE.findall(text):
        text += "\n" + text_of((path.parent / included).resolve())
    found: set[str] = set()
    plain = re.sub(r"(?ms)^( *)(```+).*?^\1\2 *$", "", text)
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", plain, flags=re.M):
        name = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", name).replace(" ", "-")
        number = 0
        while (name if not number else f"{name}-{number}") in found:
            number += 1
        found.add(name if not number else f"{name}-{number}")
    return found


def faults(path: Path, text: str) -> list[str]:
    """Links of a page that lead nowhere, each with the reason."""
    found = []
    for link in LINK.findall(prose(text)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists():
            found.append(f"{link}: no such file")
        elif anchor and anchor not in anchors(target):
            found.append(f"{link}: no such heading")
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path):
    assert faults(path, text_of(path)) == []


def test_a_wrong_link_is_found():
    page = DOCS / "index.md"
    wrong = "[a](no.md) [b](model.md#no-heading) [c](model.md#the-e-step-derived) `[d](no.md)`"
    assert faults(page, wrong) == [
        "no.md: no such file",
        "model.md#no-heading: no such heading",
    ]
    assert sum(len(LINK.findall(prose(text_of(path)))) for path in PAGES) > 100


def test_every_page_is_in_the_table_of_contents():
    listed = set()
    for index in DOCS.rglob("index.md"):
        folder = index.parent.relative_to(DOCS).as_posix()
        listed.add((f"{folder}/" if folder != "." else "") + "index")
        for tree in re.findall(r"(?ms)^```\{toctree\}$(.*?)^```$", text_of(index)):
            names = [line for line in tree.split("\n") if line and not line.startswith(":")]
            listed |= {f"{folder}/{name}" if folder != "." else name for name in names}
    pages = {
        path.relative_to(DOCS).with_suffix("").as_posix() for path in PAGES if DOCS in path.parents
    }
    assert listed == pages


def test_every_command_and_page_has_its_place():
    parser = build_parser()
    (commands,) = [a.choices for a in parser._actions if isinstance(a, _SubParsersAction)]
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    named = set(" ".join(re.findall(r"^## (.+)$", text, flags=re.M)).split())
    listed = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.+?) \|", text, flags=re.M))))
    assert len(commands) > 10
    assert set(commands) - named == set() and set(commands) - listed == set()
    dashboard = (DOCS / "dashboard.md").read_text(encoding="utf-8")
    addresses = set(re.findall(r"^\| \w+ \| `/(\w*)` \|", dashboard, flags=re.M))
    assert addresses == {path.stem for path in (ROOT / "pages").glob("*.py")} - {"home"} | {""}


def test_nothing_is_fetched_from_elsewhere():
    """Neither pages nor the site's settings name scripts, styles or pictures of other hosts."""
    for path in (*PAGES, DOCS / "conf.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?:src|srcset)=\\?[\"']https?:|!\[[^]]*\]\(https?:|@import", text), (
            path
        )

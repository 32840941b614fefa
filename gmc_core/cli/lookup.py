"""Finding an item by a title as a person writes it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from gmc_core.errors import UnknownIdError

_ARTICLES = "the|a|an|le|la|les|l'|un|une|el|los|las|il|lo|gli|i|der|die|das|ein|eine|de|het|den"
_TRAILING = re.compile(rf"^(.*), ({_ARTICLES})$")
_LEADING = re.compile(rf"^({_ARTICLES}) (.+)$")
_YEAR = re.compile(r"^(.*?)\s*\((\d{4})(?:\s*[-–]\s*\d{0,4})?\)$")
_CHOICES = 10


def find_title(query: str, titles: Sequence[str | None], ids: Sequence[object]) -> int:
    """The position of the one item that ``query`` can mean.

    Case, accents and the place of an article ("Matrix, The") do not matter. A
    whole title wins over a part of one; a year in brackets decides between equal
    titles.

    Raises
    ------
    UnknownIdError
        If no title fits, or several do; the message lists them.
    """
    wanted, year = _split(query)
    if not wanted:
        raise UnknownIdError("The title is empty; write title:NAME=RATING.")
    known = [
        (position, *_split(title)) for position, title in enumerate(titles) if title is not None
    ]
    if year is not None:
        known = [entry for entry in known if entry[2] == year]
    found = [position for position, name, _ in known if wanted in _names(name)]
    if not found:
        found = [position for position, name, _ in known if wanted in name]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UnknownIdError(
            f"No title contains {query!r}; check the spelling, or give the item's id as id:… ."
        )
    lines = [f"  {titles[position]}  (id:{ids[position]})" for position in found[:_CHOICES]]
    if len(found) > _CHOICES:
        lines.append(f"  … and {len(found) - _CHOICES:,} more")
    raise UnknownIdError(
        f"{len(found):,} titles fit {query!r}; write more of it, its year in brackets, or its id:\n"
        + "\n".join(lines)
    )


def _split(title: str) -> tuple[str, str | None]:
    """The plain text of a title without its year, and the year."""
    text = _plain(title)
    match = _YEAR.match(text)
    name, year = (match[1], match[2]) if match else (text, None)
    return _article_first(name), year


def _plain(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(sign for sign in decomposed if not unicodedata.combining(sign))
    return " ".join(kept.replace("’", "'").split())


def _article_first(name: str) -> str:
    """ "matrix, the" → "the matrix"; "city, the (cite, la)" → "the city (cite, la)"."""
    main, bracket, rest = name.partition(" (")
    match = _TRAILING.match(main)
    if match:
        space = "" if match[2].endswith("'") else " "
        main = f"{match[2]}{space}{match[1]}"
    return main + bracket + rest


def _names(name: str) -> set[str]:
    """What counts as the whole title: with and without article, and names in brackets."""
    main, _, rest = name.partition(" (")
    names = {name, main}
    names |= {_article_first(part.rstrip(")").removeprefix("a.k.a. ")) for part in rest.split(" (")}
    return names | {match[2] for other in names if (match := _LEADING.match(other))}

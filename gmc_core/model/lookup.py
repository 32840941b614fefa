"""Finding an item by a title as a person writes it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from gmc_core.base.errors import UnknownIdError

_ARTICLES = "the|a|an|le|la|les|l'|un|une|el|los|las|il|lo|gli|i|der|die|das|ein|eine|de|het|den"
_TRAILING = re.compile(rf"^(.*), ({_ARTICLES})$")
_LEADING = re.compile(rf"^({_ARTICLES}) (.+)$")
_YEAR = re.compile(r"^(.*?)\s*\((\d{4})(?:\s*[-–]\s*\d{0,4})?\)$")
_CHOICES = 10


def names_of(titles: Sequence[str | None], ids: Sequence[object]) -> Sequence[str | None]:
    """What items are found by: their titles, or, where none has one, ids that are names.

    Numbers are none: a film is called "300", and so may be another one's id.
    """
    if any(titles):
        return titles
    shown = [str(each) for each in ids]
    return [None] * len(shown) if all(each.isdigit() for each in shown) else shown


def find_title(query: str, titles: Sequence[str | None], ids: Sequence[object]) -> int:
    """The position of the one item that ``query`` can mean.

    Case, accents and the place of an article ("Matrix, The") do not matter. A
    whole title wins over a part of one; a year in brackets decides between equal
    titles. Ids that stand for titles (:func:`names_of`) are matched whole only:
    a part of a code is no name.

    Raises
    ------
    UnknownIdError
        If no title fits, or several do; the message lists them.
    """
    wanted, year = _split(query)
    if not wanted:
        raise UnknownIdError("The title is empty; write title:NAME=RATING.")
    names = names_of(titles, ids)
    known = [
        (position, *_split(title)) for position, title in enumerate(names) if title is not None
    ]
    if year is not None:
        known = [entry for entry in known if entry[2] == year]
    found = [position for position, name, _ in known if wanted in _names(name)]
    if not found and names is titles:
        found = [position for position, name, _ in known if wanted in name]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UnknownIdError(
            f"No title contains {query!r}; check the spelling, or give the item's id as id:… ."
        )
    lines = [f"  {names[position]}  (id:{ids[position]})" for position in found[:_CHOICES]]
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


_PUNCTUATION = re.compile(r"[^\w\s]+")


class TitleIndex:
    """Titles by their whole names, for lists of many titles.

    Unlike :func:`find_title`, a part of a title is no match: nobody looks at each of a
    hundred answers.

    Parameters
    ----------
    titles : of the items; None where there is none.
    years : (N,) of the items, NaN where unknown; a year in a title's brackets comes first.
    """

    def __init__(self, titles: Sequence[str | None], years: Sequence[float] = ()) -> None:
        self._years: list[int | None] = []
        self._names: dict[str, list[int]] = {}
        self._loose: dict[str, list[int]] = {}
        for position, title in enumerate(titles):
            name, year = _split(title or "")
            known = years[position] if position < len(years) else float("nan")
            own = int(year) if year else (None if known != known else int(known))
            self._years.append(own)
            for key in _names(name) - {""}:
                self._names.setdefault(key, []).append(position)
            for key in {_loose(key) for key in _names(name)} - {""}:
                self._loose.setdefault(key, []).append(position)

    def find(self, title: str, year: int | None = None) -> tuple[int | None, str]:
        """The item that a title means, or None and why.

        Case, accents, punctuation and the article's place do not matter. A year, given or in
        the title's brackets, may be one off, as catalogues differ by that.
        """
        wanted, own = _split(title)
        year = int(own) if own else year
        found = self._names.get(wanted) or self._loose.get(_loose(wanted)) or []
        if not found:
            return None, "no such title"
        if year is not None:
            for distance in (0, 1):
                near = [p for p in found if self._distance(p, year) == distance]
                if near:
                    found = near
                    break
            else:
                found = [p for p in found if self._years[p] is None]
                if not found:
                    return None, "only of another year"
        return (found[0], "") if len(found) == 1 else (None, f"{len(found)} titles fit")

    def _distance(self, position: int, year: int) -> int | None:
        own = self._years[position]
        return None if own is None else abs(own - year)


def _loose(name: str) -> str:
    """Without punctuation, and "&" written out."""
    return " ".join(_PUNCTUATION.sub(" ", name.replace("&", " and ")).split())

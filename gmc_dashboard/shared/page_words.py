"""What the core tells in words of the command line, told in those of the pages.

The remedies of the core's errors name options: "keep the most rated items only (--max-items)". On a
page the same thing is a control, so ``--max-items`` becomes “Items, at most” on the Data page. The
names of settings come from their declarations; those of the Data page's controls stand here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from gmc_core.base.setting import Setting
from gmc_core.gaussian.models import MODELS
from gmc_core.gaussian.settings import settings_of_a_fit
from gmc_dashboard.shared.places import uploads_folder

_DATA = "on the Data page"
# Options of reading, filtering and splitting → the controls that do the same.
CONTROLS = {
    "max-items": f"“Items, at most” {_DATA}",
    "min-user-ratings": f"“Ratings per user, at least” {_DATA}",
    "min-item-ratings": f"“Ratings per item, at least” {_DATA}",
    "protocol": f"“How to test the model” {_DATA}",
    "seed": f"“Seed of the split” {_DATA}",
    "data": f"the choice {_DATA}",
    "columns": f"the columns {_DATA}",
    "scale": f"“Lowest rating” and “Highest rating” {_DATA}",
    "not-rated": f"“Values that mean ‘not rated’” {_DATA}",
    "separator": f"“Separator” {_DATA}",
    "decimal": f"“Decimal sign” {_DATA}",
    "encoding": f"“Encoding” {_DATA}",
    "header": f"“First line” {_DATA}",
    "duplicates": f"“If a user rated an item more than once, count” {_DATA}",
}
# The same in Python, as the report of a filter names them.
_FIELD = r"\b(?P<field>min_user_ratings|min_item_ratings|max_items)\b(?!=)"
# A whole command is one to type, and stays as it is.
_COMMAND = r"\bgmc [a-z]+(?: [\w./=:-]+)*"
_OPTION = (
    r"--(?P<no>no-)?(?P<name>[a-z]+(?:-[a-z]+)*)(?:[ =](?P<value>'[^']*'|[\w.=,-]*\w|,(?=\))))?"
)


def in_page_words(text: str) -> str:
    """The text with every option that a page has as a control called by that control's name, and
    an uploaded file by the name that it was given, without the folder in which it is kept."""

    def told(found: re.Match[str]) -> str:
        if found["field"] is not None:
            return CONTROLS[found["field"].replace("_", "-")]
        if found["name"] is None:
            return found[0]
        return _control(found)

    kept_in = rf"{re.escape(str(uploads_folder()))}[\\/][0-9a-f]{{16}}[\\/]"
    return re.sub(f"{_COMMAND}|{_OPTION}|{_FIELD}", told, re.sub(kept_in, "", text))


def _control(found: re.Match[str]) -> str:
    name, value = found["name"], found["value"]
    if name == "model" and value in MODELS:
        return f"“{MODELS[value].label}” as the model"
    one = _settings().get(name)
    if one is not None and one.control is not None:
        # Without how it is drawn: "Regularization ε (log scale)".
        shown = f"“{one.control.label.partition(' (')[0]}”"
        if found["no"]:
            return f"{shown}: off{_rest(value)}"
        if value is None:
            return shown
        if _takes(one, value):
            return f"{shown}: {one.control.names.get(value, value)}"
        return f"{shown}{_rest(value)}"
    control = CONTROLS.get(name)
    if control is None:
        return found[0]
    if value is not None and value.replace(",", "").isupper():  # LOW,HIGH: what stands there
        return control
    # The value says what is to be set where it cannot be the next word of the sentence.
    of_value = value is not None and not value.isalpha()
    return f"{control}: {value}" if of_value else f"{control}{_rest(value)}"


def _rest(word: str | None) -> str:
    return "" if word is None else f" {word}"


def _takes(one: Setting, value: str) -> bool:
    try:
        return one.kind.holds(one.kind.parse(value))
    except ValueError:
        return False


@cache
def _settings() -> Mapping[str, Setting]:
    """Option without its dashes → setting of a fit."""
    return {one.flag.removeprefix("--"): one for one in settings_of_a_fit().values()}

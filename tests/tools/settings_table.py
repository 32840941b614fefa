"""The tables of settings in the docs, made from their declarations.

``python -m tests.tools.settings_table`` writes them anew after a declaration has changed.
"""

from __future__ import annotations

from pathlib import Path

from gmc_core.base.kinds import OneOf, YesNo
from gmc_core.base.setting import Setting
from gmc_core.gaussian.settings import settings_of_a_fit

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
BEGIN = "<!-- settings of a fit: python -m tests.tools.settings_table -->\n"
END = "<!-- end of the settings of a fit -->\n"


def table() -> str:
    """The settings of a fit as a Markdown table."""
    lines = ["| option | models | default | values | meaning |", "|---|---|---|---|---|"]
    for setting in settings_of_a_fit().values():
        cells = (
            f"`{_usage(setting)}`",
            setting.scope or "all",
            setting.default_words,
            "" if isinstance(setting.kind, YesNo | OneOf) else setting.kind.range,
            setting.about,
        )
        lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def with_table(page: str) -> str:
    """The page with the table between its two marks as the declarations say."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


def _usage(setting: Setting) -> str:
    if isinstance(setting.kind, OneOf):
        return f"{setting.flag} {'|'.join(setting.kind.choices)}"
    if not isinstance(setting.kind, YesNo):
        return f"{setting.flag} {setting.kind.metavar}"
    return setting.words(not setting.default)[0]


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

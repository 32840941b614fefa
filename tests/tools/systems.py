"""What the docs show of the tables' systems: two pictures and three tables, from one file.

``python -m tests.tools.systems`` draws ``docs/images/systems-*.svg`` and writes the tables of
``docs/systems.md`` and ``docs/results.md`` anew, from ``docs/systems.json`` and from what
``gmc_core/paper/systems_map.py`` says of each. With ``--measured`` that file is first made of what
the store (``GMC_HOME``) has measured on MovieLens 1M.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from gmc_core.paper.measured import measured_systems, of_table
from gmc_core.paper.published import MOVIELENS_1M
from gmc_core.paper.systems import OWN, system_rows
from gmc_core.paper.systems_map import PLACES
from gmc_core.runs.store import Store
from gmc_dashboard.results.systems_figure import cost_svg, map_svg

DOCS = Path(__file__).resolve().parents[2] / "docs"
MEASURED = DOCS / "systems.json"
MARK = "<!-- {} of the systems: python -m tests.tools.systems -->\n"
END = "<!-- end of the table -->\n"
# Links that open in the repository's folder as on the site.
PICTURES = ("images/systems-map.svg", "images/systems-cost.svg")


def measure() -> dict[str, list[dict[str, Any]]]:
    """The lines of table 2 under both protocols, as the store has them."""
    found: dict[str, list[dict[str, Any]]] = {}
    with Store() as store:
        for protocol in ("weak", "strong"):
            own = measured_systems(store, store.runs(), protocol, of_table(MOVIELENS_1M))
            if own is None:
                raise SystemExit(f"The store has nothing of the {protocol} systems.")
            rows = system_rows(MOVIELENS_1M, protocol, own.comparison, OWN, comparable=True)
            found[protocol] = [_line(row) for row in rows]
    return found


def _line(row: Any) -> dict[str, Any]:
    own, line = row.measured, {"method": row.published.method, "printed": row.printed}
    if own is None or own.scores is None:
        return line
    gap = row.difference.ratings if row.difference else None
    return {
        **line,
        "nmae": round(own.scores.nmae, 5),
        "se": round(own.scores.nmae_se, 5),
        "verdict": row.verdict,
        "splits": own.splits,
        "minus_gm": gap and [round(value, 5) for value in (gap.mean, gap.low, gap.high)],
        "seconds": round(own.seconds, 1),
        "cpu_seconds": round(own.cpu_seconds, 1),
        "megabytes": round(own.peak_bytes / 1e6),  # known wherever the docs are made
    }


def pictures(measured: dict[str, list[dict[str, Any]]]) -> dict[str, str]:
    """The SVG files by their paths in ``docs``."""
    weak = {line["method"]: line for line in measured["weak"] if "nmae" in line}
    points = {
        name: (line["cpu_seconds"], line["nmae"], line["se"], line["printed"])
        for name, line in weak.items()
    }
    drawn = (map_svg({name: point[0] for name, point in points.items()}), cost_svg(points))
    return dict(zip(PICTURES, (f"{one}\n" for one in drawn), strict=True))


def words_table(measured: dict[str, list[dict[str, Any]]]) -> str:
    """What is Gaussian in each, what a rating is, what is chosen, what it costs."""
    weak = {line["method"]: line for line in measured["weak"]}
    lines = [
        "| method | what is Gaussian | what a rating is | what is chosen | what a fit does "
        "| CPU s |",
        "|---|---|---|---|---|---|",
    ]
    for place in PLACES:
        cost = weak[place.method].get("cpu_seconds")
        cells = (
            f"**{place.method}**", place.gaussian, place.rating, place.chosen, place.work,
            "" if cost is None else f"{cost:,.0f}",
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def figures_table(lines: list[dict[str, Any]]) -> str:
    """Printed and measured figures under one protocol."""
    rows = [
        "| method | printed | measured | splits | verdict | printed − GM | measured − GM, 95 % "
        "| s | CPU s | memory |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    own = next(line["printed"] for line in lines if line["method"] == OWN)
    for line in lines:
        printed = "n/a" if line["printed"] is None else _short(line["printed"])
        if "nmae" not in line:
            rows.append(f"| {line['method']} | {printed} | not measured | | | | | | | |")
            continue
        gap = line["minus_gm"]
        cells = (
            line["method"], printed, f"{_short(line['nmae'])} ± {_short(line['se'])}",
            f"{line['splits']}", line["verdict"],
            "" if gap is None or line["printed"] is None else _sign(line["printed"] - own),
            "" if gap is None else f"{_sign(gap[0])} [{_sign(gap[1])}, {_sign(gap[2])}]",
            f"{line['seconds']:,.0f}", f"{line['cpu_seconds']:,.0f}", f"{line['megabytes']:,} MB",
        )  # fmt: skip
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _short(value: float) -> str:
    return f"{value:.4f}".removeprefix("0")


def _sign(value: float) -> str:
    return f"{value:+.4f}".replace("0.", ".").replace("-", "−")


def with_tables(page: str, measured: dict[str, list[dict[str, Any]]]) -> str:
    """The page with each table between its marks as the file says."""
    tables = {
        "words": words_table(measured),
        "weak": figures_table(measured["weak"]),
        "strong": figures_table(measured["strong"]),
    }
    for name, table in tables.items():
        begin = MARK.format(name)
        if begin in page:
            before, _, rest = page.partition(begin)
            _, _, after = rest.partition(END)
            page = f"{before}{begin}{table}{END}{after}"
    return page


def main() -> None:
    """Write everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measured", action="store_true", help="read the store first")
    if parser.parse_args().measured:
        MEASURED.write_text(f"{json.dumps(measure(), indent=1, ensure_ascii=False)}\n", "utf-8")
    measured = json.loads(MEASURED.read_text("utf-8"))
    for path, svg in pictures(measured).items():
        (DOCS / path).write_text(svg, "utf-8")
    for name in ("systems.md", "results.md"):
        page = DOCS / name
        page.write_text(with_tables(page.read_text("utf-8"), measured), "utf-8")


if __name__ == "__main__":
    main()

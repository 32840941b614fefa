"""``gmc doctor``: whether this machine has what the product needs."""

from __future__ import annotations

import argparse
from typing import Any

from gmc_core.cli.output import check_output, write_json
from gmc_core.cli.parser import add_command

EXAMPLES = """\
  gmc doctor                  every check, and what to do about those that are not ok
  gmc doctor --json -         the same for a program, or for a report of a defect
"""


def add_parser(commands: Any) -> None:
    """Add the command ``doctor``."""
    parser = add_command(
        commands,
        "doctor",
        help="check this machine: versions, folders, memory, workers",
        description="Check what the product needs of this machine, and say what to do about what "
        "is missing. Nothing is changed. The exit code is 1 if a check fails, else 0.",
        examples=EXAMPLES,
    )
    parser.add_argument("--json", metavar="FILE", help="write it as JSON ('-' for stdout)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print every check; 1 if one has failed."""
    from gmc_core.base.version import package_version
    from gmc_core.doctor import examine, worst

    check_output(args.json, "--json")
    checks = examine()
    status = worst(checks)
    if args.json != "-":
        width = max(len(check.name) for check in checks)
        for check in checks:
            print(f"{check.status:4}  {check.name:{width}}  {check.found}")
            if check.remedy:
                print(f"{'':4}  {'':{width}}  → {check.remedy}")
        counts = {kind: sum(check.status == kind for check in checks) for kind in ("warn", "fail")}
        print(f"\n{len(checks)} checks: {counts['fail']} failed, {counts['warn']} with a warning")
    if args.json is not None:
        content = [check.as_dict() for check in checks]
        write_json(args.json, {"version": package_version(), "status": status, "checks": content})
    return int(status == "fail")

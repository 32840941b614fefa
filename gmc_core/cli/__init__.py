"""The command line: ``python -m gmc_core COMMAND`` or ``gmc COMMAND``.

One module per group of commands. Each has ``add_parser(subparsers)``, which adds
its commands and says with ``set_defaults(run=...)`` which function runs them; that
function takes the parsed arguments and returns the exit code (None for 0). While it
prints nothing, what it is at is shown (:mod:`gmc_core.cli.activity`), unless
``tells_itself`` is set. To add a group, write such a module and name it in ``MODULES``.

Modules import what is slow (NumPy and all that needs it) inside their functions:
help must come at once.

Exit codes: 0 done, 1 a defect of this program, 2 something the person can mend
(one line on stderr says what), 130 stopped with Ctrl-C.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from gmc_core.base.errors import GmcError
from gmc_core.cli.parser import Parser

MODULES = (
    "gmc_core.cli.app",
    "gmc_core.cli.fit",
    "gmc_core.cli.data",
    "gmc_core.cli.predict",
    "gmc_core.cli.complete",
    "gmc_core.cli.recommend",
    "gmc_core.cli.calibrate",
    "gmc_core.cli.reproduce",
    "gmc_core.cli.auto",
    "gmc_core.cli.sweep",
    "gmc_core.cli.compare",
    "gmc_core.cli.claims",
    "gmc_core.cli.runs",
    "gmc_core.cli.worker",
    "gmc_core.cli.doctor",
)  # fmt: skip

DESCRIPTION = """\
Complete a table of ratings with one Gaussian (MAP-EM; Leger, Yu and Sapiro,
"Efficient Matrix Completion with Gaussian Models").
"""
EXAMPLES = """\
a first run, on the ratings that come with this program (about 15 seconds):
  gmc fit --data sample
MovieLens 1M with the paper's settings, keeping the model:
  gmc fit --data ml-1m --protocol none --model-out ml-1m.npz
then recommend to a new user:
  gmc recommend --model ml-1m.npz --rate "title:Toy Story=5" --rate "title:Heat=2"

"gmc COMMAND --help" explains a command. Results go to stdout, progress to stderr.
"""


def build_parser() -> Parser:
    """The parser with all commands of ``MODULES``."""
    parser = Parser(
        prog="gmc",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"gmc {_version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name in MODULES:
        importlib.import_module(name).add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; never raises for bad input."""
    _tolerate_narrow_terminals()
    try:
        return _run(argv)
    except BrokenPipeError:
        # The program that reads this output (head, less) has ended; there is no one to report to.
        # Python would complain once more when it flushes stdout at exit.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        return 0
    except KeyboardInterrupt:
        _complain("stopped")
        return 130
    except GmcError as error:
        _complain(f"error: {error}")
        return 2
    except MemoryError:
        _complain(
            "error: The memory of this machine does not suffice. Keep fewer items (--max-items), "
            "or compute with --dtype float32."
        )
        return 2
    except OSError as error:
        if error.errno is None:
            raise
        where = f"{error.filename}: " if error.filename else ""
        _complain(f"error: {where}{error.strerror}. Check the path, its rights and the disk.")
        return 2


def _run(argv: Sequence[str] | None) -> int:
    parser = build_parser()
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as end:  # --help and --version
        return int(end.code or 0)
    if not hasattr(arguments, "run"):
        parser.print_help()
        return 0
    from gmc_core.cli.activity import ActivityIndicator
    from gmc_core.cli.output import results_on_a_terminal

    if getattr(arguments, "tells_itself", False):
        code = arguments.run(arguments)
    else:
        with results_on_a_terminal(), ActivityIndicator("working"):
            code = arguments.run(arguments)
    sys.stdout.flush()
    return int(code or 0)


def _complain(message: str) -> None:
    with suppress(OSError):
        sys.stdout.flush()
    lines = str(message).splitlines() or [""]
    print(f"gmc: {lines[0]}", *lines[1:], sep="\n", file=sys.stderr, flush=True)


def _tolerate_narrow_terminals() -> None:
    """Print "?" instead of failing where a terminal has no ε or é."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _version() -> str:
    from gmc_core.base.version import package_version

    return package_version()

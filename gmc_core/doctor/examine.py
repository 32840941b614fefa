"""All checks, one after another; a check that breaks is itself a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gmc_core.base.errors import GmcError, brief
from gmc_core.doctor.check import Check

Outcome = Check | list[Check]


def examine(checks: Sequence[tuple[str, Callable[[], Outcome]]] | None = None) -> list[Check]:
    """The results of all checks.

    checks : (name, function) of each; default :func:`all_checks`.
    """
    results: list[Check] = []
    for name, function in all_checks() if checks is None else checks:
        try:
            outcome = function()
        except GmcError as error:  # a setting without a meaning, GMC_THREADS say
            outcome = Check(name, "fail", str(error), "Correct or unset what the message names.")
        except Exception as error:
            outcome = Check(
                name,
                "fail",
                f"{type(error).__name__}: {brief(error)}",
                "Install the program again into a new environment; if that does not help, report "
                "this line.",
            )
        results += outcome if isinstance(outcome, list) else [outcome]
    return results


def all_checks() -> list[tuple[str, Callable[[], Outcome]]]:
    """(name, function) of every check.

    Each imports what it looks at only when it is called, so that one broken package does not
    hide what the other checks find.
    """
    from gmc_core.doctor import installed

    def of(module: str, function: str) -> Callable[[], Outcome]:
        def check() -> Outcome:
            from importlib import import_module

            outcome: Outcome = getattr(import_module(f"gmc_core.doctor.{module}"), function)()
            return outcome

        return check

    return [
        ("gmc", installed.program),
        ("python", installed.python),
        ("packages", installed.packages),
        ("blas", of("machine", "cores_and_blas")),
        ("free memory", of("machine", "memory")),
        ("compiled code", of("folders", "compiled_folder")),
        ("runs folder", of("folders", "runs_folder")),
        ("downloads folder", of("folders", "downloads_folder")),
        ("copies of ratings", of("folders", "ratings_copies")),
        ("runs", of("workers", "workers")),
        ("port", of("machine", "port")),
        ("browser", of("machine", "browser")),
    ]

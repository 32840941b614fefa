"""Packages that only a part of the product needs, by the extra that installs them.

The core and the command line work without any of them. ``pyproject.toml`` lists the same
extras with their versions; a test compares the two.
"""

from __future__ import annotations

from importlib.util import find_spec

from gmc_core.base.errors import MissingPackageError

DISTRIBUTION = "gaussian-matrix-completion"

# Extra → the distributions that it brings, with the names under which Python imports them.
EXTRAS: dict[str, dict[str, str]] = {
    "app": {"streamlit": "streamlit", "plotly": "plotly"},
    "figures": {"matplotlib": "matplotlib"},
    "download": {"pooch": "pooch", "requests": "requests"},
    "sklearn": {"scikit-learn": "sklearn"},
    "dask": {"dask": "dask", "distributed": "distributed"},
}


def missing(extra: str) -> list[str]:
    """The distributions of an extra that are not installed."""
    return [name for name, module in EXTRAS[extra].items() if not is_there(module)]


def is_there(module: str) -> bool:
    """Whether a module of the top level can be imported; it is not imported for that."""
    try:
        return find_spec(module) is not None
    except ValueError:  # loaded by other means than the import system
        return True


def remedy(extra: str) -> str:
    """The sentence that says how to install an extra."""
    return f"Install with: pip install '{DISTRIBUTION}[{extra}]'"


def require(extra: str, what: str) -> None:
    """Refuse what needs an extra that is not installed.

    Parameters
    ----------
    extra : one of :data:`EXTRAS`. what : what needs it, to begin the message with.

    Raises
    ------
    MissingPackageError
        If one of its packages is missing; the message names them and the remedy.
    """
    absent = missing(extra)
    if absent:
        raise MissingPackageError(
            f"{what} needs {' and '.join(absent)}, which {'is' if len(absent) == 1 else 'are'} not "
            f"installed. {remedy(extra)}"
        )

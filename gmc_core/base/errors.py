"""The errors that a person can act on.

Every one is a :class:`GmcError`; its text is one sentence of cause and one of
remedy, so that the command line and the dashboard can show it as it is. Any
other exception is a defect of this package.

The text is for people and may change. What a program decides by is the class, or, where the
error has been stored with a run, its ``kind``.
"""

from __future__ import annotations

from typing import ClassVar, Self

# Kinds of what ends a run and is no GmcError.
MEMORY, SYSTEM, DEFECT = "memory", "system", "defect"


class GmcError(Exception):
    """Base of all errors whose message is meant for the person at the screen.

    ``kind`` is a short name that is stored and exported with a run that failed. It never
    changes: one that was released is read for ever.
    """

    kind: ClassVar[str] = "error"


def brief(error: BaseException) -> str:
    """A library's error message on one line, shortened, to be quoted in brackets."""
    return " ".join(str(error).split())[:200] or type(error).__name__


class DataError(GmcError):
    """Ratings that cannot be read or used.

    Parameters
    ----------
    problem : what is wrong, and what to do about it.
    path : the file, if there is one.
    line : 1-based line in that file, if there is one.
    value : the offending text, if there is one.
    """

    kind = "data"

    def __init__(
        self,
        problem: str,
        *,
        path: object = None,
        line: int | None = None,
        value: object = None,
    ) -> None:
        self.problem = problem
        self.path = None if path is None else str(path)
        self.line = line
        self.value = value
        where = self.path or ""
        if line is not None:
            where = f"{where}, line {line}" if where else f"line {line}"
        message = f"{where}: {problem}" if where else problem
        if value is not None:
            message += f" (found {str(value)[:80]!r})"
        super().__init__(message)


class ConfigError(GmcError):
    """Invalid settings: a value out of its range, or values that contradict each other."""

    kind = "settings"


class NumericalError(GmcError):
    """The computation broke down.

    ``iteration`` is the iteration that broke, counted from 1; the records before
    it are valid.
    """

    kind = "numerical"

    def __init__(self, message: str, *, iteration: int | None = None) -> None:
        self.iteration = iteration
        super().__init__(message)

    def during(self, what: str, iteration: int) -> Self:
        """The same error, of the same class, as that of an iteration of a fit."""
        return type(self)(f"{what}: {self}", iteration=iteration)


class NotPositiveDefiniteError(NumericalError):
    """A covariance is singular, or lost its positive definiteness by rounding."""

    kind = "not-positive-definite"


class NotFiniteError(NumericalError):
    """Numbers left the range of floating point."""

    kind = "not-finite"


class ResourceError(GmcError):
    """The work would need more memory or disk than allowed."""

    kind = MEMORY


class FetchError(GmcError):
    """A named data set could not be downloaded."""

    kind = "download"


class ModelFileError(GmcError):
    """A saved model that is damaged, foreign, or from a newer version."""

    kind = "model-file"


class UnknownIdError(GmcError):
    """A user or item that the data do not contain."""

    kind = "unknown-id"


class ClusterError(GmcError):
    """A cluster that computed something is no longer there, or its workers are not."""

    kind = "cluster"


class MissingPackageError(GmcError, ImportError):
    """An optional package that is not installed; the message names the extra that brings it."""


# The same settings on the same data raise these again: such an end is a result of the run.
BREAKDOWNS = frozenset(
    error.kind for error in (NumericalError, NotPositiveDefiniteError, NotFiniteError)
)

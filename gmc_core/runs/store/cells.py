"""The fits of a comparison as its run records them: one cell for each method and split."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

CellState = Literal["running", "done", "failed"]


@dataclass(frozen=True)
class Cell:
    """One method on one split.

    split : index of the split, from 0. method : name.
    state : "running" (also of a run that was killed meanwhile), "done" or "failed".
    began : seconds since 1970.
    split_key, method_key : by which the files are found, see
        :mod:`gmc_core.comparison.comparison_files`; "" where the data have not been read.
    nmae, seconds, cpu_seconds, peak_bytes : of one that is done.
    reused : whether the predictions were there already.
    failure : why one has failed.
    """

    split: int
    method: str
    state: CellState
    began: float = 0.0
    split_key: str = ""
    method_key: str = ""
    nmae: float | None = None
    seconds: float | None = None
    cpu_seconds: float | None = None
    peak_bytes: float | None = None
    reused: bool = False
    failure: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON; :meth:`from_dict` is the way back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Cell:
        """Read what :meth:`as_dict` wrote.

        Raises
        ------
        ValueError, TypeError, KeyError
            If it is anything else; an imported file may hold any JSON.
        """
        cell = cls(**values)
        if cell.state not in get_args(CellState):
            raise ValueError(f"{str(cell.state)[:40]!r} is no state of a fit")
        for field in fields(cls):
            value, kind = getattr(cell, field.name), str(field.type)
            if kind == "str" and not isinstance(value, str):
                raise TypeError(f"{field.name} is no text")
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            missing = value is None and kind.endswith("None")
            if kind.startswith("float") and not (number or missing):
                raise TypeError(f"{field.name} is no number")
        whole = isinstance(cell.split, int) and not isinstance(cell.split, bool)
        if not whole or cell.split < 0 or not isinstance(cell.reused, bool):
            raise TypeError("a fit of no split")
        if not math.isfinite(cell.began):
            raise ValueError("a fit without a time")
        return cell

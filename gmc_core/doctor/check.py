"""What a check says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail"]
_ORDER: tuple[Status, ...] = ("ok", "warn", "fail")


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Attributes
    ----------
    name : what was looked at, such as "free memory".
    status : "ok"; "warn" if something works less well; "fail" if something cannot work.
    found : what there is, in words for a person.
    remedy : what to do about it, a sentence; empty where nothing needs to be done.
    """

    name: str
    status: Status
    found: str
    remedy: str = ""

    def as_dict(self) -> dict[str, str]:
        """The same for JSON."""
        return asdict(self)


def worst(checks: Iterable[Check]) -> Status:
    """The worst status of several checks; "ok" of none."""
    return max((check.status for check in checks), key=_ORDER.index, default="ok")

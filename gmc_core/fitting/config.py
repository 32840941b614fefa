"""The configuration of an experiment: everything that decides its figures, and its key."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from gmc_core.base.errors import ConfigError
from gmc_core.base.kinds import OneOf, Whole, Words
from gmc_core.base.setting import Setting, check, setting
from gmc_core.data.hashes import check_expected, file_sha256
from gmc_core.gaussian.settings import FitSettings, ModelKind
from gmc_core.protocol.filter_options import Filter

# Of each model; raised whenever the same configuration would give other figures. One that
# gives the same keeps its number, and with it the runs that are stored.
MODEL_VERSIONS: dict[ModelKind, int] = {
    "paper": 5, "exact": 5, "ordinal": 6, "two-sided": 1, "mixture": 5
}  # fmt: skip

Protocol = Literal["weak", "strong", "none", "pair"]
PROTOCOLS: tuple[Protocol, ...] = ("weak", "strong", "none", "pair")
_ANY = -(2**63)


@dataclass(frozen=True)
class ExperimentConfig:
    """Everything that decides an experiment's figures, besides the data's content.

    data : a name of the registry or a path; "" with ``train_file``.
    reading : options of the delimited reader, by field name.
    protocol : "weak", "strong", "none", or "pair" for ``train_file``/``test_file``,
        which are taken as they are, without a filter.
    weak_users, strong_users : None for the paper's numbers, scaled to the data.
    seed, repetitions : repetition r draws its split with seed + r.
    expected : role → SHA-256 of the files and ratings that are to be used again, or a beginning
        of it, see :mod:`gmc_core.fitting.provenance`; decides no figure.
    """

    data: str = setting(
        "sample",
        Setting(
            kind=Words("NAME|PATH"),
            noun="The data",
            flag="--data",
            about="a named data set (gmc data list), or a file, zip or folder",
        ),
    )
    reading: dict[str, Any] = field(default_factory=dict)
    protocol: Protocol = setting(
        "weak",
        Setting(
            kind=OneOf(PROTOCOLS),
            noun="The protocol",
            flag="--protocol",
            about="weak: predict a held-out rating of each training user; strong: of users absent "
            "from training; none: train on everything, measure nothing",
        ),
    )
    train_file: str | None = setting(
        None,
        Setting(
            kind=Words("FILE"),
            noun="The training file",
            flag="--train",
            about="CSV user,item,rating to learn from, as it is",
        ),
    )
    test_file: str | None = setting(
        None,
        Setting(
            kind=Words("FILE"),
            noun="The test file",
            flag="--test",
            about="CSV user,item,rating to predict, with --train",
        ),
    )
    filter: Filter = field(default_factory=Filter)
    # How many there can be is known when the data are; the split refuses what it cannot draw.
    weak_users: int | None = setting(
        None,
        Setting(
            kind=Whole(_ANY),
            noun="The number of training users",
            flag="--weak-users",
            about="training users",
            usual_words="the paper's number, scaled to the data",
        ),
    )
    strong_users: int | None = setting(
        None,
        Setting(
            kind=Whole(_ANY),
            noun="The number of novel users",
            flag="--strong-users",
            about="novel users, strong only",
            usual_words="the paper's number, scaled to the data",
        ),
    )
    seed: int = setting(
        0,
        Setting(kind=Whole(0), noun="The seed", flag="--seed", about="of the splits"),
    )
    repetitions: int = setting(
        1,
        Setting(
            kind=Whole(1, 1000),
            noun="The number of repetitions",
            flag="--repetitions",
            about="average over N splits with seeds SEED, SEED+1, …",
            usual_words="1; the paper: 3",
        ),
    )
    fit: FitSettings = field(default_factory=FitSettings)
    expected: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check(self)
        check_expected(self.expected)
        for file in (self.train_file, self.test_file):
            if (self.protocol == "pair") != (file is not None):
                raise ConfigError(
                    "A training file, a test file and the protocol pair belong together; give all "
                    "three or none."
                )
        if self.protocol != "strong" and self.strong_users is not None:
            raise ConfigError("The number of novel users belongs to the strong protocol.")

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seed of each repetition."""
        if self.protocol in ("none", "pair"):
            return (self.seed,)
        return tuple(self.seed + r for r in range(self.repetitions))

    def as_dict(self) -> dict[str, Any]:
        """For JSON; :meth:`from_dict` is the way back."""
        values = {**asdict(self), "fit": self.fit.as_dict()}
        if not self.expected:
            del values["expected"]  # as it was written before there was such a thing
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ExperimentConfig:
        """Read what :meth:`as_dict` wrote; unknown names are an error."""
        unknown = set(values) - set(cls.__dataclass_fields__)
        if unknown:
            raise ConfigError(f"Unknown settings: {', '.join(sorted(unknown))}.")
        values = dict(values)
        if "fit" in values:
            values["fit"] = FitSettings.from_dict(values["fit"])
        if "filter" in values:
            values["filter"] = Filter(**values["filter"])
        return cls(**values)

    def key(
        self,
        data_sha256: str,
        side_sha256: str = "",
        *,
        version: int | None = None,
        noise_sha256: str | None = None,
    ) -> str:
        """Hash of all that decides the figures: settings, data and model version.

        The name or path of the data does not count, its content does. side_sha256 : of
        what the data hold besides ratings, which counts where the model can read it.
        version : of the model, the present one by default. noise_sha256 : of a file of noise
        variances, by default of what is there now.
        """
        content = self.as_dict()
        for name in ("data", "reading", "train_file", "test_file"):
            del content[name]
        content.pop("expected", None)
        content["data_sha256"] = data_sha256
        content["noise_sha256"] = noise_sha256 or _file_hash(self.fit.noise)
        content["model_version"] = version or MODEL_VERSIONS[self.fit.model]
        if side_sha256 and self.fit.model != "paper":
            content["side_sha256"] = side_sha256
        text = json.dumps(content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def _file_hash(noise: float | str | None) -> str | None:
    if not isinstance(noise, str):
        return None
    path = Path(noise)
    return file_sha256(path) if path.is_file() else None

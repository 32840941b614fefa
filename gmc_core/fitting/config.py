"""The configuration of an experiment: everything that decides its figures, and its key."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from gmc_core.base.errors import ConfigError
from gmc_core.base.kinds import Number, OneOf, Whole, WholeOrWord, Words
from gmc_core.base.setting import Setting, check, declared, setting
from gmc_core.data.hashes import check_expected, file_sha256
from gmc_core.gaussian.settings import FitSettings, ModelKind
from gmc_core.protocol.filter_options import Filter
from gmc_core.protocol.held_out_options import PUBLISHED, USUAL_LAST, USUAL_SHARE

# Of each model; raised whenever the same configuration would give other figures. One that
# gives the same keeps its number, and with it the runs that are stored.
MODEL_VERSIONS: dict[ModelKind, int] = {
    "paper": 5, "exact": 5, "ordinal": 6, "factor": 1, "two-sided": 1, "mixture": 5
}  # fmt: skip

Protocol = Literal["weak", "strong", "none", "pair", "random", "latest"]
PROTOCOLS: tuple[Protocol, ...] = ("weak", "strong", "random", "latest", "none", "pair")
DRAWN: tuple[Protocol, ...] = ("weak", "strong", "random", "latest")  # with a seed
EVERYONE: tuple[Protocol, ...] = ("random", "latest")  # in which all users take part
# Fields that came with the protocols random and latest. What is None of them is not written, so
# that the configurations of before keep their keys.
OF_HELD_OUT = ("held_out", "folds", "last")
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
    held_out : random: the share of all ratings that is held out; latest: of each user's.
    folds : random: a number k, or "published"; the seeds are the folds, see
        :func:`gmc_core.protocol.random_splits.random_split`.
    last : latest: how many ratings of each user are held out.
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
            "from training; random: a share of all ratings, or folds; latest: each user's last "
            "ratings by time; none: train on everything, measure nothing",
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
    held_out: float | None = setting(
        None,
        Setting(
            kind=Number(0, 1, above=True, metavar="SHARE"),
            noun="The share held out",
            flag="--held-out",
            about="random: share of all ratings to hold out; latest: share of each user's",
            usual_words=f"random: {USUAL_SHARE:g}",
        ),
    )
    folds: int | str | None = setting(
        None,
        Setting(
            kind=WholeOrWord(2, PUBLISHED, metavar="K|published"),
            noun="The number of folds",
            flag="--folds",
            about="random: hold out one of K folds instead of a share, with seed 0 the first; "
            "published: MovieLens 100K's u1 … u5. All of them: --repetitions K",
        ),
    )
    last: int | None = setting(
        None,
        Setting(
            kind=Whole(1),
            noun="The number of last ratings",
            flag="--last",
            about="latest: how many ratings of each user to hold out",
            usual_words=str(USUAL_LAST),
        ),
    )

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
        self._check_held_out()

    def _check_held_out(self) -> None:
        """Refuse what has no meaning with the protocol."""
        if self.protocol in EVERYONE and self.weak_users is not None:
            raise ConfigError(
                f"With the protocol {self.protocol} all users take part; leave out the number of "
                "training users."
            )
        for name, protocols in (
            ("held_out", EVERYONE), ("folds", ("random",)), ("last", ("latest",)),
        ):  # fmt: skip
            if getattr(self, name) is not None and self.protocol not in protocols:
                noun = declared(ExperimentConfig)[name].noun
                raise ConfigError(f"{noun} belongs to the protocol {' or '.join(protocols)}.")
        if self.held_out is not None and self.held_out >= 1:
            raise ConfigError(
                f"The share held out must lie between 0 and 1, not {self.held_out:g}: 0.1 is 10 %."
            )
        for name in ("folds", "last"):
            if self.held_out is not None and getattr(self, name) is not None:
                noun = declared(ExperimentConfig)[name].noun
                raise ConfigError(
                    f"The share held out and {noun[0].lower()}{noun[1:]} exclude "
                    "each other; give one of them."
                )

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seed of each repetition."""
        if self.protocol in ("none", "pair"):
            return (self.seed,)
        return tuple(self.seed + r for r in range(self.repetitions))

    def split_words(self, seed: int) -> str:
        """What tells the split of a seed from the others: "seed 0", or "fold 1 of 5"."""
        if self.folds is None:
            return f"seed {seed}"
        if self.folds == PUBLISHED:
            return f"published fold {seed + 1}"
        partition, fold = divmod(seed, int(self.folds))
        words = f"fold {fold + 1} of {self.folds}"
        return f"{words}, partition {partition + 1}" if partition else words

    @property
    def redraws(self) -> bool:
        """Whether more repetitions hold out other ratings, as many as one likes."""
        if self.protocol == "random":
            return self.folds is None
        return self.protocol in ("weak", "strong")

    @property
    def drawn_by(self) -> str:
        """What of the data decides the split besides the ratings: "times", "folds" or ""."""
        if self.protocol == "latest":
            return "times"
        return "folds" if self.folds == PUBLISHED else ""

    @property
    def usual_held_out(self) -> dict[str, Any]:
        """What is held out, by the field that says it, where the configuration says nothing."""
        if self.held_out is None and self.protocol == "random" and self.folds is None:
            return {"held_out": USUAL_SHARE}
        if self.held_out is None and self.protocol == "latest" and self.last is None:
            return {"last": USUAL_LAST}
        return {}

    def as_dict(self) -> dict[str, Any]:
        """For JSON; :meth:`from_dict` is the way back."""
        values = {**asdict(self), "fit": self.fit.as_dict()}
        if not self.expected:
            del values["expected"]  # runs of versions without this field keep their keys
        for name in OF_HELD_OUT:
            if values[name] is None:
                del values[name]
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
        times_sha256: str = "",
        *,
        version: int | None = None,
        noise_sha256: str | None = None,
    ) -> str:
        """Hash of all that decides the figures: settings, data and model version.

        The name or path of the data does not count, its content does. side_sha256 : of
        what the data hold besides ratings, which counts where the model can read it; times_sha256
        alike of when they were given.
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
        if self.fit.reads_times:
            content["times_sha256"] = times_sha256
        text = json.dumps(content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def _file_hash(noise: float | str | None) -> str | None:
    if not isinstance(noise, str):
        return None
    path = Path(noise)
    return file_sha256(path) if path.is_file() else None

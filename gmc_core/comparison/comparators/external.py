"""Other packages as methods: each fit in a process of its own, with its own Python.

They need not live in this package's environment, and mostly cannot: their
requirements contradict each other. :mod:`gmc_core.comparison.comparators.external_process` is the
script that runs there.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from gmc_core import former
from gmc_core.base.errors import ConfigError, GmcError
from gmc_core.comparison.comparators.measure import Outcome
from gmc_core.gaussian.attributes import UserGroups
from gmc_core.gaussian.linalg.threads import ThreadPool
from gmc_core.protocol.splits import Split

SCRIPT = Path(__file__).with_name("external_process.py")
VERSION = 1
POLL_SECONDS = 0.1
LIST_SECONDS = 60
ENVIRONMENT = "GMC_PEER_PYTHON"

EXTERNAL_LABELS = {
    "surprise-svd": "Surprise SVD, tuned",
    "surprise-svdpp": "Surprise SVD++",
    "lenskit-itemknn": "LensKit ItemKNN",
    "cornac-pmf": "cornac PMF",
    "myfm-mf": "myFM MF",
    "myfm-svdpp": "myFM SVD++ both ways",
    "myfm-probit": "myFM ordered probit, median",
    "myfm-svdpp-attributes": "myFM SVD++ both ways, users' attributes",
    "myfm-probit-attributes": "myFM ordered probit, median, users' attributes",
}


class ExternalBaselineError(GmcError):
    """Another package failed, or its Python does not run."""

    kind = "package"


@dataclass(frozen=True)
class ExternalBaseline:
    """A method of another package, by its name in ``EXTERNAL_LABELS``.

    python : the interpreter that has it.

    These packages cannot fold new users in. Under strong generalization they learn
    from the query set as well, which the other methods use only after the fit.
    """

    name: str
    python: str

    def __post_init__(self) -> None:
        if self.name not in EXTERNAL_LABELS:
            raise ConfigError(
                f"There is no package method {self.name!r}; there are {', '.join(EXTERNAL_LABELS)}."
            )

    @property
    def label(self) -> str:
        """Package and method."""
        return EXTERNAL_LABELS[self.name]

    @property
    def identity(self) -> str:
        """Name, the script's version and the package's; the settings are fixed in the script."""
        return f"{self.name} {VERSION} {_listed(self.python).get(self.name, 'unknown')}"

    def predict(self, split: Split, team: ThreadPool) -> npt.NDArray[np.float64]:
        """(n_test,) raw predictions; see :meth:`run`."""
        return self.run(split, team).predictions

    def run(self, split: Split, team: ThreadPool) -> Outcome:
        """Predictions, and what the child process took for them.

        Raises
        ------
        ExternalBaselineError
            If the interpreter does not run or the package fails; its last words are told.
        Cancelled
            If the pool's owner wants to stop; the child is ended.
        """
        with tempfile.TemporaryDirectory(prefix="gmc-external-") as folder:
            source, target = Path(folder) / "split.npz", Path(folder) / "out.npz"
            np.savez(source, **plain_arrays(split))  # type: ignore[arg-type]
            with (Path(folder) / "messages").open("w+b") as messages:
                command = [self.python, str(SCRIPT), self.name, str(source), str(target)]
                code = _wait(command, messages, team)
                if code != 0 or not target.exists():
                    raise ExternalBaselineError(
                        f"{self.label} failed: {_last_words(messages, code)}"
                    )
            with np.load(target) as stored:
                return Outcome(
                    np.asarray(stored["predictions"], dtype=np.float64),
                    float(stored["seconds"]),
                    float(stored["cpu_seconds"]),
                    float(stored["peak_bytes"]),
                )


def plain_arrays(split: Split) -> dict[str, npt.NDArray]:
    """The split as arrays of positions that any package can take.

    The novel users of a strong split come after the training users.
    """
    train, query = split.train, split.query
    groups = UserGroups.of(train.user_info)
    members = [
        np.nan_to_num(groups.members(part.user_info, part.n_users))
        for part in (train, query)
        if part is not None
    ]
    arrays: dict[str, npt.NDArray] = {
        "train_users": train.rows,
        "train_items": train.indices,
        "train_values": train.values,
        "test_users": split.test_users,
        "test_items": split.test_items,
        "low": np.asarray(train.scale.low),
        "high": np.asarray(train.scale.high),
        "user_groups": members[0],
    }
    if query is not None:
        arrays["train_users"] = np.concatenate([train.rows, query.rows + train.n_users])
        arrays["train_items"] = np.concatenate([train.indices, query.indices])
        arrays["train_values"] = np.concatenate([train.values, query.values])
        arrays["test_users"] = split.test_users + train.n_users
        arrays["user_groups"] = np.vstack(members)
    return arrays


def installed_baselines(pythons: Sequence[str] | None = None) -> dict[str, str]:
    """Names of the package methods that can run → the interpreter that has each.

    pythons : interpreters to ask, the first one that has a package wins; by default
        those of ``GMC_PEER_PYTHON``, separated as in ``PATH``.

    Raises
    ------
    ExternalBaselineError
        If an interpreter does not run, or has no NumPy.
    """
    if pythons is None:
        pythons = [part for part in os.environ.get(ENVIRONMENT, "").split(os.pathsep) if part]
    found: dict[str, str] = {}
    for python in pythons:
        for name in _listed(python):
            found.setdefault(name, python)
    return found


@lru_cache(maxsize=16)
def _listed(python: str) -> dict[str, str]:
    """The methods that an interpreter has → the version of the package of each."""
    try:
        done = subprocess.run(
            [python, str(SCRIPT), "--list"],
            capture_output=True, text=True, check=False, timeout=LIST_SECONDS, env=_environment(1),
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ExternalBaselineError(
            f"{python} does not run ({getattr(error, 'strerror', None) or 'no answer'}). Give the "
            "path of the Python that has the packages, such as external/bin/python."
        ) from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ExternalBaselineError(
            f"{python} cannot run the packages' script: {last[:160]}. Give a Python 3.9 or newer "
            "with NumPy and the packages."
        )
    pairs = (line.split(maxsplit=1) for line in done.stdout.splitlines())
    return {pair[0]: pair[-1] for pair in pairs if pair and pair[0] in EXTERNAL_LABELS}


def _environment(threads: int) -> dict[str, str]:
    """This process's, without what would make the child import this package's modules."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return {**kept, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}


def _wait(command: list[str], messages: IO[bytes], team: ThreadPool) -> int:
    team.check()
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=messages,
            env=_environment(team.size),
        )  # fmt: skip
    except OSError as error:
        raise ExternalBaselineError(
            f"{command[0]} does not run ({error.strerror or error}). Give the path of the Python "
            "that has the packages."
        ) from error
    try:
        while (code := child.poll()) is None:
            time.sleep(POLL_SECONDS)
            team.check()
        return code
    except BaseException:
        child.kill()
        child.wait()
        raise


def _last_words(messages: IO[bytes], code: int) -> str:
    messages.seek(0)
    lines = messages.read().decode("utf-8", "replace").strip().splitlines()
    if lines:
        return lines[-1].strip()[:300]
    return f"its process was ended by signal {-code}" if code < 0 else f"exit code {code}"


__getattr__ = former.renamed(
    __name__,
    PEER_LABELS="EXTERNAL_LABELS",
    PeerError="ExternalBaselineError",
    PeerMethod="ExternalBaseline",
    installed_peers="installed_baselines",
)

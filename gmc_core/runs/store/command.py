"""The shell command that repeats a run, on another machine and with later defaults too.

Every setting is written out, also where it equals today's default. Files are named with
their hashes, and a file of one's own with the way in which it was read.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from gmc_core.base.errors import GmcError
from gmc_core.base.kinds import shortest_text
from gmc_core.base.setting import declared
from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.data.datasets import DATASETS
from gmc_core.data.hashes import ROLES, given_name, is_hash, option
from gmc_core.data.ratings import RatingScale
from gmc_core.data.reading_options import OPTIONS, options_of, sensible
from gmc_core.fitting.config import DRAWN, OF_HELD_OUT, ExperimentConfig
from gmc_core.fitting.provenance import paths
from gmc_core.gaussian.settings import FitSettings, settings_of_a_fit
from gmc_core.protocol.filter_options import Filter
from gmc_core.protocol.splits import default_counts
from gmc_core.runs.store.run import Run

PROGRAM = "gmc"
RATINGS_DIGITS = 16  # of 64; a file's hash is written in full, to be compared with other tools'


def command(run: Run, data: Mapping[str, Any] | None = None) -> str:
    """The command, with every argument that decides a figure.

    Of a run whose settings auto has chosen that of a fit with these; before, that which chooses.

    data : what is known of the data; by default the run's own. A sweep has none of its
        own: its children have.
    """
    known = run.data if data is None else data
    if run.comparison is not None:
        arguments = repeating(
            run.config, known, sweep=True, fit=False, times=_reads_times(run.comparison, known)
        )
        arguments += _comparing(run.config, run.comparison)
        return f"{PROGRAM} compare {shlex.join(arguments)}"
    if run.choosing:
        assert run.selection is not None
        arguments = run.selection.arguments + _words(run.config.fit, ["dtype"])
        arguments += repeating(run.config, known, fit=False)
        return f"{PROGRAM} auto {shlex.join(arguments)}"
    arguments = repeating(run.config, known, sweep=run.sweep is not None)
    if run.sweep is None:
        return f"{PROGRAM} fit {shlex.join(arguments)}"
    lists = [
        f"--epsilon={_joined(run.sweep['epsilons'])}",
        f"--iterations={_joined(run.sweep['iterations'])}",
        f"--seeds={_joined(run.sweep['seeds'])}",
    ]
    if run.keeps_model:
        arguments.append("--keep-models")
    return f"{PROGRAM} sweep {shlex.join(lists + arguments)}"


def _reads_times(plan: ComparisonPlan, data: Mapping[str, Any] | None) -> bool:
    """Whether a method of the comparison reads times; not where one is not known any more."""
    try:
        return data is not None and plan.reads_times(RatingScale(*data["scale"]))
    except GmcError:
        return False


def _comparing(config: ExperimentConfig, plan: ComparisonPlan) -> list[str]:
    """The arguments of ``gmc compare`` beside those of the data."""
    return [
        *(() if config.protocol == "pair" else (f"--seeds={_joined(list(plan.seeds))}",)),
        f"--methods={','.join(plan.methods)}",
        f"--reference={plan.reference}",
        *(f"--peer-python={python}" for python in plan.pythons),
    ]


def repeating(
    config: ExperimentConfig,
    data: Mapping[str, Any] | None,
    *,
    sweep: bool = False,
    fit: bool = True,
    times: bool = False,
) -> list[str]:
    """The arguments that repeat an experiment on these data and refuse other ones.

    An uploaded file has the name that the person gave it. sweep, fit : see
    :func:`arguments_of`. times : see :func:`written_out`.
    """
    config = written_out(config, data, times=times)
    name = given_name(config.data)
    if name != config.data and name in DATASETS:
        name = f"./{name}"
    return arguments_of(replace(config, data=name), sweep=sweep, fit=fit)


def written_out(
    config: ExperimentConfig, data: Mapping[str, Any] | None, *, times: bool = False
) -> ExperimentConfig:
    """The same with nothing left to defaults or to what would be found in the data.

    times : whether the figures depend on when ratings were given, even if the settings of the fit
        say nothing of it.
    data : :func:`gmc_core.fitting.preparing.describe`; None before they have been seen, and then
        the configuration stays as it is. Of data that an older version has seen, less is
        known, and less is written out.
    """
    if data is None:
        return config
    scale = RatingScale(*data["scale"])
    fit = config.fit.resolved(scale, data.get("items"))
    expected = dict(config.expected) | _hashes(config, data)
    if (times or config.fit.reads_times) and is_hash(data.get("times_sha256")):
        expected["times"] = data["times_sha256"][:RATINGS_DIGITS]
    counts: dict[str, int] = {}
    drawn = data.get("users_to_draw")
    if isinstance(drawn, int) and config.protocol in ("weak", "strong"):
        weak, strong = default_counts(drawn)
        counts["weak_users"] = config.weak_users if config.weak_users is not None else weak
        if config.protocol == "strong":
            counts["strong_users"] = (
                config.strong_users if config.strong_users is not None else strong
            )
    reading = config.reading if config.data in DATASETS else _found_reading(config, data)
    found = {"fit": fit, "expected": expected, "reading": reading}
    return replace(config, **found, **counts, **config.usual_held_out)  # type: ignore[arg-type]


def _hashes(config: ExperimentConfig, data: Mapping[str, Any]) -> dict[str, str]:
    files = data.get("files")
    found = {
        role: files[role]
        for role in paths(config)  # an older version has put one run's noise on another's data
        if isinstance(files, Mapping) and is_hash(files.get(role))
    }
    if is_hash(data.get("sha256")):
        found["ratings"] = data["sha256"][:RATINGS_DIGITS]
    return found


def _found_reading(config: ExperimentConfig, data: Mapping[str, Any]) -> dict[str, Any]:
    """How the data were read; the words of an imported run are taken only if they have sense."""
    found = data.get("reading")
    if not isinstance(found, Mapping):
        return config.reading
    return {**config.reading, **sensible(found)}


def arguments_of(config: ExperimentConfig, *, sweep: bool = False, fit: bool = True) -> list[str]:
    """The arguments from which the command line makes this configuration.

    What is None is left out; :func:`written_out` leaves nothing None that could be known.

    sweep : without those that a sweep varies. fit : with the settings of the fit.
    """
    names = ["train_file", "test_file"]
    if config.protocol != "pair":
        names = ["data", "protocol", "weak_users", "strong_users", *OF_HELD_OUT]
    if not sweep:
        names += ["seed", "repetitions"] if config.protocol in DRAWN else ["seed"]
    given = _words(config, names)
    if config.protocol != "pair":
        given += _words(config.filter, declared(Filter))
    given += [
        f"{option(role)}={config.expected[role]}" for role in ROLES if role in config.expected
    ]
    if fit:
        given += _fit(config.fit, sweep=sweep)
    for name, value in options_of(config.reading).items():
        given += OPTIONS[name].words(value)
    return given


def _words(owner: Any, names: Iterable[str]) -> list[str]:
    """The words of declared settings that are not None."""
    known = declared(type(owner))
    given: list[str] = []
    for name in names:
        value = getattr(owner, name)
        if value is not None:
            given += known[name].words(value)
    return given


def _fit(fit: FitSettings, *, sweep: bool) -> list[str]:
    """The arguments of the settings of a fit: the model, then all that have a meaning with it."""
    left_out = {"model", *(("epsilon", "iterations") if sweep else ())}
    settings = settings_of_a_fit().values()
    names = [one.name for one in settings if one.name not in left_out and one.applies(fit)]
    return _words(fit, ["model", *names])


def _joined(values: list[Any]) -> str:
    return ",".join(shortest_text(value) for value in values)

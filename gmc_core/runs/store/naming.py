"""What runs are called: data, model, protocol, the settings that matter, L and seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Protocol

from gmc_core.base.times import moment
from gmc_core.comparison.plan import ComparisonPlan
from gmc_core.data.hashes import given_name
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.config import DRAWN, EVERYONE, OF_HELD_OUT, ExperimentConfig
from gmc_core.gaussian.models import settings_for
from gmc_core.gaussian.settings import FitSettings, settings_of_a_fit
from gmc_core.protocol.filters import Filter
from gmc_core.protocol.held_out_options import PUBLISHED
from gmc_core.runs.store.selection import Selection

PROTOCOL_WORDS = {"none": "all ratings", "pair": "own split"}


class Named(Protocol):
    """What a name is made from; see :class:`gmc_core.runs.store.run.Run`."""

    @property
    def id(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def config(self) -> ExperimentConfig: ...
    @property
    def sweep(self) -> dict[str, Any] | None: ...
    @property
    def comparison(self) -> ComparisonPlan | None: ...
    @property
    def selection(self) -> Selection | None: ...
    @property
    def choosing(self) -> bool: ...
    @property
    def data(self) -> dict[str, Any] | None: ...
    @property
    def data_sha256(self) -> str | None: ...
    @property
    def seeds(self) -> tuple[int, ...]: ...
    @property
    def iterations(self) -> int: ...
    @property
    def created(self) -> float: ...
    @property
    def ended(self) -> float | None: ...


def run_name(run: Named) -> str:
    """A person's name for a run, or one made from its settings.

    "sample, ordered ratings, seed 0, weak, L = 10": what tells runs apart most often stands
    first, for places that cut long names. A setting is named where it matters to the model
    and differs from the model's default; ε wherever the model has one.
    """
    if run.label:
        return run.label
    config = run.config
    if run.sweep is not None:
        return _sweep_name(run)
    if run.comparison is not None:
        count = len(run.comparison.methods)
        words = [f"Comparison of {count} method{'s' if count > 1 else ''} on {data_name(run)}"]
        return ", ".join([*words, *seed_words(run), _protocol(config), *population_words(config)])
    parts = [data_name(run), fit_words(run), *seed_words(run), _protocol(config)]
    if run.choosing:
        return ", ".join([*parts, *population_words(config)])
    parts += setting_words(config, run.data)
    return ", ".join([*parts, f"L = {config.fit.iterations}"])


def _sweep_name(run: Named) -> str:
    assert run.sweep is not None
    config, epsilons = run.config, run.sweep["epsilons"]
    span = f"{min(epsilons):.3g}–{max(epsilons):.3g}" if len(epsilons) > 1 else f"{epsilons[0]:.3g}"
    lengths = ", ".join(map(str, run.sweep["iterations"]))
    parts = [
        f"Sweep of {len(epsilons)} ε on {data_name(run)}", model_words(config.fit),
        *seed_words(run), _protocol(config), f"ε = {span}",
    ]  # fmt: skip
    parts += setting_words(config, run.data, epsilon=False)
    return ", ".join([*parts, f"L = {lengths}"])


def data_name(run: Named) -> str:
    """What the data are called; before they have been seen, the end of their path."""
    known = (run.data or {}).get("name")
    path = run.config.data or run.config.train_file or ""
    return str(known or PurePath(given_name(path)).name or path)


def fit_words(run: Named) -> str:
    """The model of a run's fit, and that auto chooses it, or has."""
    if run.choosing:
        return "auto: settings not chosen yet"
    words = model_words(run.config.fit)
    return words if run.selection is None else f"auto: {words}"


def model_words(fit: FitSettings) -> str:
    """The model as the pages call it."""
    if fit.model == "mixture":
        return f"mixture of {fit.components or settings_for('mixture').components or 2}"
    return {
        "paper": "the paper’s MAP-EM", "exact": "exact EM", "ordinal": "ordered ratings",
        "factor": "ordered ratings of low rank" if fit.is_ordered else "low rank",
        "two-sided": "two-sided",
    }[fit.model]  # fmt: skip


def _protocol(config: ExperimentConfig) -> str:
    """ "weak", "random 10 %", "random, 5 folds", "latest 1"."""
    words = PROTOCOL_WORDS.get(config.protocol, config.protocol)
    held = {name: getattr(config, name) for name in OF_HELD_OUT} | config.usual_held_out
    if held["held_out"] is not None:
        return f"{words} {100 * held['held_out']:.4g} %"
    if held["folds"] is not None:
        return f"{words}, {held['folds']} folds"
    return words if held["last"] is None else f"{words} {held['last']:,}"


def seed_words(run: Named) -> list[str]:
    """ "seed 0", "seeds 0–2" or "fold 1"; nothing where nothing is drawn."""
    if run.config.protocol not in DRAWN:
        return []
    seeds, folds = sorted(run.seeds), run.config.folds
    if folds is not None and (folds == PUBLISHED or seeds[-1] < int(folds)):
        return _numbers("fold", [seed + 1 for seed in seeds])
    return _numbers("seed", seeds)


def _numbers(word: str, seeds: list[int]) -> list[str]:
    if len(seeds) == 1:
        return [f"{word} {seeds[0]}"]
    whole = seeds == list(range(seeds[0], seeds[-1] + 1))
    return [f"{word}s {seeds[0]}–{seeds[-1]}" if whole else f"{word}s {', '.join(map(str, seeds))}"]


def setting_words(
    config: ExperimentConfig, data: Mapping[str, Any] | None, *, epsilon: bool = True
) -> list[str]:
    """The settings that matter for the model; all but ε only where they are not the default.

    data : of the run, which tell the scale's defaults; None before they have been seen.
    """
    fit, usual = config.fit, settings_for(config.fit.model)
    if data is not None:
        scale, items = RatingScale(*data["scale"]), data.get("items")
        fit, usual = fit.resolved(scale, items), usual.resolved(scale, items)
    words = []
    if epsilon and (not fit.is_exact or (fit.epsilon or 0) > 0):
        words.append(f"ε = {'default' if fit.epsilon is None else f'{fit.epsilon:.4g}'}")
    words += _noise_words(fit, usual)
    for name, setting in settings_of_a_fit().items():
        value = getattr(fit, name)
        if setting.named and value is not None and value != getattr(usual, name):
            words.append(setting.named.format(value))
    if fit.prior_target is not None and fit.prior_target != usual.prior_target:
        words.append(f"target {'/'.join(f'{part:.3g}' for part in fit.prior_target)}")
    if fit.is_exact and not fit.attributes:
        words.append("without attributes")
    if fit.ordered is False and usual.ordered is not False:
        words.append("ratings as numbers")
    if fit.user_target is not None and fit.user_target != usual.user_target:
        words.append(f"user target {'/'.join(f'{part:.3g}' for part in fit.user_target)}")
    if fit.signals != "rows":
        block = f" of {fit.block[0]} × {fit.block[1]}" if fit.signals == "blocks" else ""
        words.append(f"{fit.signals} as signals{block}")
    if fit.dtype != "float64":
        words.append(fit.dtype)
    return words + population_words(config)


def population_words(config: ExperimentConfig) -> list[str]:
    """Which users and items, where that differs from the default."""
    return _user_words(config) + _filter_words(config)


def _noise_words(fit: FitSettings, usual: FitSettings) -> list[str]:
    if isinstance(fit.noise, str):
        return [f"noise of {PurePath(fit.noise).name}"]
    if fit.learn_noise:
        return ["σ² learned"]
    return [] if fit.noise is None or fit.noise == usual.noise else [f"σ² = {fit.noise:.4g}"]


def _user_words(config: ExperimentConfig) -> list[str]:
    words = []
    if config.weak_users is not None:
        words.append(f"{config.weak_users:,} training users")
    if config.strong_users is not None:
        words.append(f"{config.strong_users:,} new users")
    return words


def _filter_words(config: ExperimentConfig) -> list[str]:
    if config.protocol == "pair":
        return []
    found, usual, words = config.filter, Filter(), []
    if found.min_user_ratings != usual.min_user_ratings:
        words.append(f"users from {found.min_user_ratings} ratings")
    if found.min_item_ratings != usual.min_item_ratings:
        words.append(f"items from {found.min_item_ratings} ratings")
    if found.max_items is not None:
        words.append(f"at most {found.max_items:,} items")
    if config.protocol in EVERYONE and found == Filter(0, 0):
        return ["no filter"]
    if config.protocol in EVERYONE and not words:
        return ["filtered"]
    return words


def found_words(run: Named) -> str:
    """State of an identical run that a start has found, and since when."""
    if run.state == "finished":
        ended = "" if run.ended is None else f" on {moment(run.ended)}"
        return f"was computed{ended}"
    words = "is being computed" if run.state == "running" else "is waiting to be computed"
    return f"{words}, since {moment(run.created)}"


def distinct_names(runs: Sequence[Named]) -> dict[str, str]:
    """id → name; names that would be equal get what tells the runs apart.

    First the settings that the names leave out, then the data's hash, then the time of
    submission, and where that is the same too, the id.
    """
    names = {run.id: run_name(run) for run in runs}
    for tell in (differing_words, _data_hash, _submitted, _identity):
        counts = Counter(names.values())
        equal = [run for run in runs if counts[names[run.id]] > 1]
        groups: dict[str, list[Named]] = {}
        for run in equal:
            groups.setdefault(names[run.id], []).append(run)
        for name, group in groups.items():
            told = tell(group)
            if len(set(told)) > 1:
                for run, words in zip(group, told, strict=True):
                    names[run.id] = f"{name}, {words}" if words else name
    return names


def differing_words(runs: Sequence[Named]) -> list[str]:
    """Of each run the settings in which it differs from the others; "" where in none."""
    every = [_all_words(run) for run in runs]
    shared = set.intersection(*map(set, every)) if every else set()
    return [", ".join(word for word in words if word not in shared) for words in every]


def _all_words(run: Named) -> list[str]:
    """Every setting of a run in words; of a comparison its methods."""
    if run.comparison is not None:
        return [*run.comparison.methods, *seed_words(run), _protocol(run.config)]
    if run.choosing:
        return [
            fit_words(run),
            _protocol(run.config),
            *population_words(run.config),
            *seed_words(run),
        ]
    return [
        fit_words(run),
        _protocol(run.config),
        *setting_words(run.config, run.data),
        f"L = {run.iterations}",
        *seed_words(run),
        *(["with objective"] if run.config.fit.objective else []),
    ]


def _data_hash(runs: Sequence[Named]) -> list[str]:
    return [f"data {run.data_sha256[:6]}" if run.data_sha256 else "" for run in runs]


def _submitted(runs: Sequence[Named]) -> list[str]:
    return [moment(run.created) for run in runs]


def _identity(runs: Sequence[Named]) -> list[str]:
    return [run.id for run in runs]

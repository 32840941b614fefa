"""All methods by name, as the command line and the dashboard offer them.

A name of :data:`gmc_core.gaussian.models.MODELS` or ``PRESETS`` may be followed by settings that
differ from its own, such as ``paper:epsilon=1:iterations=5``; ``auto:seconds=120`` gives it more
time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gmc_core.base.errors import ConfigError
from gmc_core.comparison.comparators.chosen import AutoModel, TunedMapEm
from gmc_core.comparison.comparators.external import ENVIRONMENT, EXTERNAL_LABELS, ExternalBaseline
from gmc_core.comparison.comparators.factorisation import MatrixFactorisation
from gmc_core.comparison.comparators.gaussian import GaussianMethod
from gmc_core.comparison.comparators.item_knn import ItemKnn
from gmc_core.comparison.comparators.method import BASELINES, Method
from gmc_core.comparison.systems import SYSTEMS
from gmc_core.data.ratings import RatingScale
from gmc_core.gaussian.models import MODELS, PRESET_LABELS, PRESETS
from gmc_core.gaussian.settings import FitSettings

_OTHERS: tuple[Method, ...] = (
    ItemKnn(), MatrixFactorisation(), TunedMapEm(), AutoModel(), *SYSTEMS,
)  # fmt: skip
_SETTINGS = {**{name: model.settings for name, model in MODELS.items()}, **PRESETS}
COMPARATORS: dict[str, Method] = {**BASELINES, **{method.name: method for method in _OTHERS}}


def available(external: Mapping[str, str] | None = None) -> dict[str, str]:
    """Names of all methods that can run → their labels, models first, packages last.

    external : of :func:`gmc_core.comparison.comparators.external.installed_baselines`.
    """
    return {
        **{name: _label(name) for name in _SETTINGS},
        **{name: method.label for name, method in COMPARATORS.items()},
        **{name: EXTERNAL_LABELS[name] for name in external or {}},
    }


def method_named(
    name: str, scale: RatingScale, external: Mapping[str, str] | None = None
) -> Method:
    """A method by its name.

    Parameters
    ----------
    name : of :func:`available`; a model's or preset's with settings after colons.
    scale : of the ratings; some settings depend on it.
    external : name → interpreter, of
        :func:`gmc_core.comparison.comparators.external.installed_baselines`.

    Raises
    ------
    ConfigError
        If there is no such method or setting, or it is a package's that is not installed.
    """
    if name in COMPARATORS:
        return COMPARATORS[name]
    if name.startswith("auto:"):
        return _auto(name)
    if name.partition(":")[0] in _SETTINGS:
        return _model(name, scale)
    if name in (external or {}):
        assert external is not None
        return ExternalBaseline(name, external[name])
    if name in EXTERNAL_LABELS:
        raise ConfigError(
            f"{EXTERNAL_LABELS[name]} is not installed in any Python that was named. Give one that "
            f"has it with --peer-python, or in {ENVIRONMENT}."
        )
    raise ConfigError(
        f"There is no method {name!r}; there are {', '.join(available())}, and with other "
        f"packages {', '.join(EXTERNAL_LABELS)}."
    )


def _label(name: str) -> str:
    """A model's or preset's label, told from the comparators'."""
    label = MODELS[name].label if name in MODELS else PRESET_LABELS[name]
    return f"Gaussian: {label[0].lower()}{label[1:]}"


def _auto(name: str) -> AutoModel:
    """Auto with the time that its name tells."""
    field, _, text = name.removeprefix("auto:").partition("=")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if field != "seconds" or not 0 < seconds < 1e6:
        raise ConfigError(f"The method {name!r} means nothing; write auto:seconds=120, say.")
    return AutoModel(seconds, name=name, label=f"{AutoModel.label} in {seconds:g} s")


def _model(name: str, scale: RatingScale) -> GaussianMethod:
    """A model with the settings that its name tells, resolved for the scale."""
    base, *parts = name.split(":")
    changes: dict[str, Any] = {}
    for part in parts:
        field, equals, text = part.partition("=")
        if not equals or field not in FitSettings.__dataclass_fields__ or field == "model":
            known = ", ".join(key for key in FitSettings.__dataclass_fields__ if key != "model")
            raise ConfigError(
                f"{part!r} in the method {name!r} is no SETTING=VALUE; settings are {known}."
            )
        try:
            changes[field] = json.loads(text)
        except ValueError:
            changes[field] = text
    try:
        given = replace(_SETTINGS[base], **changes)
        given.check_needed(changes)
        settings = given.resolved(scale)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"A setting in the method {name!r} has a value of the wrong kind ({error})."
        ) from error
    told = f" ({', '.join(parts)})" if parts else ""
    return GaussianMethod(name, settings, _label(base) + told)

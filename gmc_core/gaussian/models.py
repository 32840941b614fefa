"""Models by name: the paper's MAP-EM, and what goes beyond it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gmc_core.base.errors import ConfigError
from gmc_core.gaussian.averaged_settings import BEST_RANK
from gmc_core.gaussian.settings import EXACT_ITERATIONS, PAPER_ITERATIONS, FitSettings, ModelKind


@dataclass(frozen=True)
class NamedModel:
    """A model that can be chosen by name.

    label : for people. about : one sentence. settings : its defaults; what is None
        in them is filled in for the rating scale by :meth:`FitSettings.resolved`.
    """

    label: str
    about: str
    settings: FitSettings


def _defaults(kind: ModelKind, iterations: int) -> FitSettings:
    return FitSettings(iterations=iterations, noise=None, model=kind)


MODELS: dict[str, NamedModel] = {
    "paper": NamedModel("The paper's MAP-EM", "MAP-EM with ε on the diagonal of Σ.", FitSettings()),
    "exact": NamedModel(
        "Exact EM",
        "The posterior covariance in the M-step, noise, and a prior of Σ.",
        _defaults("exact", EXACT_ITERATIONS),
    ),
    "ordinal": NamedModel(
        "Exact EM on ordered ratings",
        "As exact; a rating is an interval of a continuous latent response, the prediction "
        "its median.",
        _defaults("ordinal", EXACT_ITERATIONS),
    ),
    "factor": NamedModel(
        "Low rank, for large tables",
        "As ordinal with Σ = W Wᵀ + γ Id: little is lost, and tables of any width can be fitted.",
        _defaults("factor", EXACT_ITERATIONS),
    ),
    "two-sided": NamedModel(
        "Two-sided: items and users",
        "As ordinal; besides the covariance of the items, one of the users: people who rated the "
        "same resemble each other.",
        _defaults("two-sided", EXACT_ITERATIONS),
    ),
    "mixture": NamedModel(
        "Mixture of Gaussians",
        "MAP-EM with a Gaussian for each of several groups of users.",
        _defaults("mixture", PAPER_ITERATIONS),
    ),
}


# Settings with a name of their own: for who wants an answer at once, and the best one.
PRESETS: dict[str, FitSettings] = {
    # So few iterations do not over-fit with less of a prior.
    "fast": replace(_defaults("factor", 5), rank=31, prior_strength=300.0, dtype="float32"),
    "best": replace(
        _defaults("two-sided", EXACT_ITERATIONS), average_rank=BEST_RANK, dtype="float32"
    ),
}
# For people, as those of the models are.
PRESET_LABELS = {
    "fast": "Low rank, fast (preset)",
    "best": "Two-sided averaged with low rank (preset best)",
}


def settings_for(name: str) -> FitSettings:
    """The settings of a named model.

    Raises
    ------
    ConfigError
        If there is no such model.
    """
    if name not in MODELS:
        raise ConfigError(f"The model is {', '.join(MODELS)}, not {name!r}.")
    return MODELS[name].settings

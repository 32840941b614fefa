"""Settings of exact EM with a dense Σ; fields of
:class:`gmc_core.gaussian.settings.FitSettings`, each declared here."""

from __future__ import annotations

from typing import Any

from gmc_core.base.kinds import Number, Whole, YesNo
from gmc_core.base.setting import Control
from gmc_core.gaussian.declaration import DENSE, MAX_ITERATIONS, ONE_SIDED, fit_setting

# Longer steps were not tried.
MOST_RELAXATION = 8.0

# (any: a dataclass takes its fields from these)
STEP_LENGTH: Any = fit_setting(
    None,
    kind=Number(1, MOST_RELAXATION, metavar="ETA"),
    noun="The step length η",
    flag="--step-length",
    former=("--relaxation",),
    models=DENSE,
    named="η = {:.4g}",
    about="length of the longest of every four steps (over-relaxation); at 5 less than half of "
    "the iterations of 1 are enough",
    usual=dict.fromkeys(DENSE, 5.0),
)
WARM_UP: Any = fit_setting(
    None,
    kind=Whole(1, MAX_ITERATIONS, metavar="L"),
    noun="The number of warm-up iterations",
    flag="--warm-up",
    former=("--warm",),
    models=DENSE,
    named="warm-up {}",
    about="iterations of the paper's MAP-EM, without noise, before exact EM",
    usual=dict.fromkeys(DENSE, 3),
)
LEARN_NOISE: Any = fit_setting(
    False,
    kind=YesNo(),
    noun="Learning the noise",
    flag="--learn-noise",
    models=ONE_SIDED,
    about="the noise variance is only where it begins: every M-step takes a new one",
    control=Control(
        card="model",
        label="Learn the noise",
        key="noise_learned",
        help="The noise variance is where it begins, and every M-step takes a new one. On "
        "sparse ratings it falls too far, and held-out ratings are predicted worse.",
    ),
)

"""The settings of session noise, see :class:`gmc_core.gaussian.noise.SessionNoise`; fields of
:class:`gmc_core.gaussian.settings.FitSettings`."""

from __future__ import annotations

from typing import Any

from gmc_core.base.kinds import Number
from gmc_core.base.setting import Control
from gmc_core.gaussian.declaration import Above, ModelKind, fit_setting

# Chosen, with the variance that auto begins with, on ratings held out inside training sets of two
# MovieLens sets, see docs/beyond.md; from 1 minute to 1 hour all windows help.
SESSION_WINDOW = 300.0
USUAL_SESSION_NOISE = 0.15
WITH_SESSIONS: tuple[ModelKind, ...] = ("paper", "exact", "ordinal")

NOISE: Any = fit_setting(
    0.0,
    kind=Number(0, metavar="VARIANCE"),
    noun="The session noise variance",
    flag="--session-noise",
    models=WITH_SESSIONS,
    about="variance τ² of an error that a user's ratings share the more the closer in time "
    "they were given; reads the times of the ratings, those held out included; 0 is none",
    named="session noise {:.4g}",
    control=Control(
        card="e_step",
        label="Session noise τ²",
        low=0,
        high=10,
        step=0.05,
        help="People rate a page of titles in one mood: ratings of one user within minutes "
        "share an error of this variance. It reads when ratings were given, so its figures "
        "are not to be compared with those of models that see ratings alone.",
    ),
)
WINDOW: Any = fit_setting(
    SESSION_WINDOW,
    kind=Number(0, above=True, metavar="SECONDS"),
    noun="The session window",
    flag="--session-window",
    models=WITH_SESSIONS,
    needs=("session_noise", Above(0)),
    about="seconds w after which what two ratings share of the session noise has fallen to exp(-1)",
    named="window {:.4g} s",
)

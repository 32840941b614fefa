"""``gmc calibrate``: how wide the intervals of a saved model must be."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmc_core.base.errors import GmcError
from gmc_core.cli.activity import doing
from gmc_core.cli.output import duration, note
from gmc_core.cli.parser import add_command
from gmc_core.cli.values import number, whole

if TYPE_CHECKING:
    from gmc_core.gaussian.linalg.threads import ThreadPool
    from gmc_core.model.gaussian_model import GaussianModel

EXAMPLES = """\
  gmc calibrate --model ml-1m.npz
  gmc calibrate --model ml-1m.npz --level 0.5
"""


def add_parser(commands: Any) -> None:
    """Add the command ``calibrate``."""
    parser = add_command(
        commands,
        "calibrate",
        help="learn how wide the intervals of a saved model must be",
        description="Learn, on ratings held out inside the training set, how many standard\n"
        "deviations the intervals of a saved model need to hold what they promise, and keep it\n"
        "in the model file. Takes one more fit. Predictions stay what they are.",
        examples=EXAMPLES,
    )
    parser.add_argument("--model", metavar="FILE", required=True, help="saved by gmc fit")
    parser.add_argument(
        "--level",
        type=number,
        default=0.9,
        metavar="P",
        help="share of ratings that an interval shall hold (default: 0.9)",
    )
    parser.add_argument(
        "--threads", type=whole, metavar="N", help="cores to use (default: all, or GMC_THREADS)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Calibrate a model file in place."""
    check_level(args.level)
    from gmc_core.base.errors import ModelFileError
    from gmc_core.fitting.intervals import calibrate_file
    from gmc_core.gaussian.linalg.threads import ThreadPool
    from gmc_core.model.calibration import note_of

    note("fitting once more, to nearly all of the model's ratings …")
    doing("fitting once more")
    model = calibrate_file(Path(args.model), args.level, team=ThreadPool(args.threads))
    if model is None:
        raise ModelFileError(
            f"{args.model}: it was replaced or removed while its intervals were being calibrated, "
            "and is left as it is. Calibrate it again."
        )
    print(note_of(model.calibration))
    return 0


def remedy(model: GaussianModel, path: str) -> str:
    """What to do for calibrated intervals, after the sentence that says there are none."""
    if model.calibration is not None:
        return ""
    if model.ratings is None:
        return " Calibrate a model that has its ratings."
    return f" gmc calibrate --model {path} learns it."


def add_intervals_argument(parser: Any) -> None:
    """``--intervals``, for the commands that save a model."""
    parser.add_argument(
        "--intervals",
        type=level_or_none,
        metavar="P|none",
        help="with --model-out: learn how wide intervals must be to hold this share of ratings, by "
        "one more fit (default: 0.9 where the fit took two minutes at most)",
    )


def level_or_none(text: str) -> float | str:
    """A share, or the word none."""
    return text if text == "none" else number(text)


def check_intervals(wanted: float | str | None, model_out: str | None) -> None:
    """Refuse a level that is none before anything is computed.

    Raises
    ------
    ConfigError
        If the level is not between 0 and 1, or no model is saved.
    """
    from gmc_core.base.errors import ConfigError

    if wanted is None:
        return
    if model_out is None:
        raise ConfigError("--intervals is about the saved model; give --model-out.")
    if not isinstance(wanted, str):
        check_level(wanted)


def check_level(level: float) -> None:
    """Refuse a level that is none.

    Raises
    ------
    ConfigError
        If it is not between 0 and 1.
    """
    from gmc_core.base.errors import ConfigError

    if not 0 < level < 1:
        raise ConfigError(f"The level of an interval lies between 0 and 1, not {level:g}.")


def save_calibrated(
    model: GaussianModel,
    path: str | Path,
    wanted: float | str | None,
    seconds: float,
    *,
    with_ratings: bool = True,
    team: ThreadPool | None = None,
) -> Path:
    """Save a model, then calibrate its intervals, if that is wanted, and save it again.

    Whatever ends the calibration, Ctrl-C too, leaves the model saved without it.

    wanted : the level, "none", or None for what is affordable. seconds : that its fit took.
    """
    from gmc_core.base.files import written_in_place
    from gmc_core.model.model_file import save_model

    if written_in_place(Path(path)):  # such as a pipe: it cannot be written a second time
        model = _with_intervals(model, wanted, seconds, path=path, team=team)
        return save_model(model, path, with_ratings=with_ratings)
    saved = save_model(model, path, with_ratings=with_ratings)
    try:
        found = _with_intervals(model, wanted, seconds, path=path, team=team)
        if found is not model:
            save_model(found, path, with_ratings=with_ratings)
    except (Exception, KeyboardInterrupt):
        shown = model if with_ratings else replace(model, ratings=None)
        note(
            f"the model is saved to {saved}; its intervals are not calibrated."
            f"{remedy(shown, str(saved))}"
        )
        raise
    return saved


def _with_intervals(
    model: GaussianModel,
    wanted: float | str | None,
    seconds: float,
    *,
    path: str | Path,
    team: ThreadPool | None = None,
) -> GaussianModel:
    """The model with its intervals calibrated, or the same where that is not wanted."""
    from gmc_core.fitting.intervals import calibrated
    from gmc_core.model.calibration import AFFORDABLE_SECONDS, USUAL_LEVEL

    if isinstance(wanted, str):
        return model
    if wanted is None and seconds > AFFORDABLE_SECONDS:
        note(
            "the intervals of this model are not calibrated, since that takes as long as the fit, "
            f"about {duration(seconds)}: gmc calibrate --model {path}"
        )
        return model
    note(
        f"calibrating the intervals by one more fit, about {duration(seconds)}; --intervals none "
        "leaves that out"
    )
    doing("calibrating the intervals")
    try:
        model = calibrated(model, USUAL_LEVEL if wanted is None else wanted, team=team)
    except GmcError as error:
        if wanted is not None:
            raise
        note(f"the intervals are not calibrated: {error}")
    return model

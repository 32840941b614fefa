"""The settings of a fit: what follows from their declarations, and what must never change."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import Any

import pytest

from gmc_core.base.errors import ConfigError
from gmc_core.base.kinds import Number, NumberOrFile, Numbers, OneOf, Size, Whole, YesNo
from gmc_core.cli import build_parser
from gmc_core.cli.arguments import config_from_arguments
from gmc_core.data.ratings import RatingScale
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.gaussian.declaration import Above
from gmc_core.gaussian.models import MODELS, settings_for
from gmc_core.gaussian.settings import FitSettings, settings_of_a_fit
from gmc_core.runs.store.command import arguments_of
from tests.tools.settings_table import PAGE, with_table

SETTINGS = settings_of_a_fit()
SCALES = (RatingScale(1, 5, 1), RatingScale(0, 10, 1))

# Settings, and beginnings of the keys of their runs, as stores of 2026 hold them: as given, and
# with the defaults of a scale of stars and of 0..10 with 400 items.
KEYS = [
    ({}, "4d26d4e515b7 e4c119c230f7 d37809fb55e6"),
    ({"epsilon": 1}, "960578329d1f 696da108dca7 3bb3d9133e56"),
    (
        {"epsilon": 0.1, "iterations": 40, "dtype": "float32"},
        "629a307bd2b7 c5daaec30bb7 fa6d0d6ca1e5",
    ),
    ({"noise": 0.5, "initial": 2.5}, "ac4102f4f134 94961a06e8b5 ab444d0e233d"),
    ({"noise": "variances.csv"}, "52931bc8ba40 cefa06e384aa 20d17863d74a"),
    ({"objective": True}, "4b9fc3476e0e dd2644a57fea ebec00be67bd"),
    ({"signals": "columns"}, "6c68e269cc0e 2a70fcbdf011 9751b908147e"),
    ({"signals": "blocks", "block": (8, 32)}, "2a2f3b211cbd 0ff36e262a0b 4722483bfcc3"),
    ({"iterations": 0, "epsilon": 0.0, "noise": None}, "e9b70a3cd5ba ef052074960b c9e16503ecd6"),
    ({"model": "exact"}, "46775fc9fe63 06a59342c2e8 5e39928ab16d"),
    (
        {"model": "exact", "prior_strength": 20.0, "prior_target": (0.1, 0.0, 0.3, 0.2)},
        "0d9efb5d27d6 a61f30d03578 884d15401558",
    ),
    (
        {"model": "exact", "relaxation": 2.0, "warm": 2, "noise": 0.7},
        "5800b74e27b5 2daac79446c6 dc638b1e5473",
    ),
    (
        {"model": "exact", "learn_noise": True, "noise": 1.0},
        "bba5dae780e5 32231f104973 1a829134ffdd",
    ),
    (
        {"model": "exact", "attributes": False, "epsilon": 0.01},
        "1086dd82d666 26ee508b3117 5724e5a327fe",
    ),
    ({"model": "ordinal"}, "9b3ca36f7f7b cfacaf1d48c7 2a9807714703"),
    (
        {"model": "ordinal", "prior_strength": 100, "iterations": 4},
        "188d2cb8d1c7 2bf7c831ae27 48270dde0ec3",
    ),
    (
        {"model": "ordinal", "dtype": "float32", "noise": 0.4},
        "eab285d75c38 f2d502aaab84 7a95ebcb62e7",
    ),
    (
        {"model": "ordinal", "signals": "columns", "initial": 3},
        "348ceae609c7 5457e5ac0033 59f213000bf1",
    ),
    ({"model": "mixture"}, "e949b1ca2c01 593c9c55a085 48e12d07117a"),
    (
        {"model": "mixture", "components": 3, "epsilon": 0.5},
        "c08f2ee516b1 ce26b445818e c455392c1798",
    ),
    (
        {"model": "mixture", "components": 1, "dtype": "float32"},
        "3e0c3096c222 e9efedb88d56 70c920e6315e",
    ),
]


@pytest.mark.parametrize(("given", "keys"), KEYS, ids=lambda part: str(part)[:60])
def test_runs_of_before_are_found(given: dict[str, Any], keys: str) -> None:
    fit = replace(settings_for(given.get("model", "paper")), **given)
    found = [
        ExperimentConfig(fit=one).key("d" * 64, "e" * 64, version=5, noise_sha256="f" * 64)[:12]
        for one in (fit, *(fit.resolved(scale, 400) for scale in SCALES))
    ]
    assert " ".join(found) == keys


def other_than_default(name: str) -> FitSettings:
    """Settings of a model that has this one, with a value that is not the default."""
    setting = SETTINGS[name]
    kind, usual = setting.kind, setting.usual.get(setting.models[-1])
    usual = usual if isinstance(usual, int | float) else 0
    value: Any
    if isinstance(kind, Number | Whole | NumberOrFile):
        value = usual + 1 if kind.holds(usual + 1) else kind.low
    elif isinstance(kind, OneOf):
        value = kind.choices[-1]
    elif isinstance(kind, YesNo):
        value = not setting.default
    else:
        numbers = (0.1, 0.0, 0.3, 0.2)[: getattr(kind, "count", 0)]
        value = {Numbers: numbers, Size: (4, 9)}[type(kind)]
    needed = {}
    if setting.needs is not None:
        other, wanted = setting.needs
        needed = {other: wanted.limit + 1 if isinstance(wanted, Above) else wanted}
    model = {} if name == "model" else {"model": setting.models[-1]}
    base = settings_for(model.get("model", value))
    return replace(base, **{**needed, **model, name: value})


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_goes_through_json_and_the_command_line(name):
    fit = other_than_default(name)
    assert getattr(fit, name) != getattr(settings_for(fit.model), name) or name == "model"
    assert FitSettings.from_dict(json.loads(json.dumps(fit.as_dict()))) == fit
    config = ExperimentConfig(fit=fit)
    line = shlex.join(["fit", *arguments_of(config)])
    assert SETTINGS[name].flag.removeprefix("--") in line
    again = config_from_arguments(build_parser().parse_args(shlex.split(line)))
    assert again.fit == fit


@pytest.mark.parametrize("name", SETTINGS)
def test_what_no_setting_can_be_is_refused_by_name(name):
    """JSON of an imported run can hold anything."""
    setting = SETTINGS[name]
    for value in ([], "\n", {"a": 1}, float("nan"), -1e9, 10**400):
        if setting.kind.holds(value):
            assert (name, value) in [("initial", -1e9), ("noise", "\n")]
            continue
        with pytest.raises(ConfigError) as refused:
            FitSettings.from_dict({"model": setting.models[-1], name: value})
        assert setting.noun in str(refused.value)
        assert f"must be {setting.kind.range}, not {setting.kind.normal(value)!r}"[:80] in str(
            refused.value
        )


@pytest.mark.parametrize("name", [name for name, one in SETTINGS.items() if one.scope])
def test_a_setting_that_the_model_has_not_is_refused(name):
    value = getattr(other_than_default(name), name)
    other = next(model for model in MODELS if model not in SETTINGS[name].models)
    with pytest.raises(ConfigError, match=f"belongs to the models? .*, not to {other}"):
        replace(settings_for(other), **{name: value})


@pytest.mark.parametrize(("former", "name"), [("--relaxation", "relaxation"), ("--warm", "warm")])
def test_a_former_name_works_and_says_the_new_one(capsys, former, name):
    args = build_parser().parse_args(["fit", "--model", "exact", former, "2"])
    assert getattr(config_from_arguments(args).fit, name) == 2
    err = capsys.readouterr().err
    assert err == f"note: {former} is now called {SETTINGS[name].flag}\n"
    with pytest.raises(SystemExit):
        build_parser().parse_args(["fit", "--help"])
    out = capsys.readouterr().out
    assert f"{SETTINGS[name].flag} " in out and f"{former} " not in out


def test_a_setting_that_needs_another_is_refused_without_it():
    args = build_parser().parse_args(["fit", "--block", "3x4"])
    with pytest.raises(ConfigError, match=r"block \(--block\) needs --signals=blocks"):
        config_from_arguments(args)
    words = ["fit", "--session-window", "60"]
    with pytest.raises(ConfigError, match=r"--session-window\) needs --session-noise above 0"):
        config_from_arguments(build_parser().parse_args(words))
    config = config_from_arguments(build_parser().parse_args([*words, "--session-noise", "0.2"]))
    assert any(word.startswith("--session-window=60") for word in arguments_of(config))
    assert not any("window" in word for word in arguments_of(ExperimentConfig()))


def test_the_docs_table_is_that_of_the_declarations():
    page = PAGE.read_text(encoding="utf-8")
    assert with_table(page) == page, "python -m tests.tools.settings_table writes it anew"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Number(), "a number"),
        (Number(0, above=True), "a number above 0"),
        (Number(0, 1, above=True), "a number above 0 and at most 1"),
        (Number(high=1), "a number of at most 1"),
        (Number(1, 8), "a number from 1 to 8"),
        (Whole(1), "a whole number of at least 1"),
        (OneOf((".", ",")), "'.' or ','"),
    ],
)
def test_a_range_says_which_ends_it_has(kind, words):
    assert kind.range == words
    for value, inside in ((0, None), (1, True), (8, None), (True, False), (None, False)):
        assert inside is None or kind.holds(value) == (inside and not isinstance(kind, OneOf))

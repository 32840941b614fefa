"""What repeats a run repeats it elsewhere: the command, and the refusal of other files."""

from __future__ import annotations

import json
import shlex
import zipfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from making import movielens_folder

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.cli import arguments, build_parser, main
from gmc_core.data.hashes import ROLES, file_sha256
from gmc_core.data.readers import DelimitedOptions
from gmc_core.fitting.config import ExperimentConfig
from gmc_core.fitting.preparing import describe, prepare, split_reading
from gmc_core.gaussian.settings import FitSettings
from gmc_core.protocol.filters import Filter
from gmc_core.runs.store import Run, Store
from gmc_core.runs.store.command import arguments_of, command, written_out
from gmc_core.runs.store.transfer import export, import_run
from gmc_core.runs.sweeps import SweepConfig, submit_or_find_sweep
from gmc_core.runs.worker import work
from gmc_dashboard.shared import sources

FEW = Filter(2, 1, None)


def odd_file(path: Path, users: int = 40, items: int = 15, seed: int = 3) -> Path:
    """Ratings 2, 2.5 … 4 with decimal commas, no header, titles in Latin-1, columns in an
    order of their own, and a repeated rating."""
    rng = np.random.default_rng(seed)
    values = 2 + rng.integers(0, 5, size=(users, items)) / 2
    known = rng.random(values.shape) < 0.7
    rows = [
        f"{values[u, m]:.1f}".replace(".", ",") + f";Café {m};{m + 100};who{u:02}"
        for u, m in zip(*np.nonzero(known), strict=True)
    ]
    other = ("4,0" if not rows[0].startswith("4") else "2,0") + rows[0][3:]
    path.write_bytes("\n".join([*rows, other]).encode("latin-1") + b"\n")
    return path


READING: dict[str, Any] = {
    "separator": ";", "header": False, "user": 3, "item": 2, "rating": 0, "title": 1,
    "duplicates": "first",
}  # fmt: skip
TINY: dict[str, Any] = {"iterations": 2}
FITS = {
    "paper": FitSettings(**TINY, dtype="float32"),
    "exact": FitSettings(model="exact", noise=None, learn_noise=True, **TINY),
    "ordinal": FitSettings(model="ordinal", noise=None, **TINY),
    "mixture": FitSettings(model="mixture", noise=None, **TINY),
}


def computed(store: Store, config: ExperimentConfig) -> Run:
    run = store.submit(config)
    work(store, idle_seconds=0, polite=False)
    run = store.run(run.id)
    assert run.state == "finished", run.message
    return run


def repeated(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The result of a command in a fresh home, given from ``folder``."""
    monkeypatch.setenv("GMC_HOME", str(folder / "another home"))
    monkeypatch.chdir(folder)
    words = shlex.split(line)
    assert words[0] == "gmc"
    assert main([*words[1:], "--json", "out.json"]) == 0
    result: dict[str, Any] = json.loads((folder / "out.json").read_text())
    return result


def same(store: Store, run: Run, result: dict[str, Any]) -> None:
    """The figures are identical, not merely close."""
    for name in ("nmae", "nmae_se", "mae", "rmse", "n", "baselines"):
        assert result["summary"][name] == (run.summary or {})[name]
    records = [record for r in result["repetitions"] for record in r["records"]]
    kept = [record.as_dict() for _, record in store.records(run.id)]
    for name in ("nmae", "log_likelihood", "covariance_change"):
        assert [record[name] for record in records] == [record[name] for record in kept]
    assert result["data"]["sha256"] == run.data_sha256


@pytest.mark.parametrize("model", FITS)
def test_a_run_of_every_model_is_repeated_elsewhere(model, tmp_path, monkeypatch):
    """On an uploaded file with odd reading options, which lies elsewhere by then."""
    monkeypatch.setenv("GMC_HOME", str(tmp_path / "home"))
    store = Store(tmp_path / "home")
    upload = sources.keep_upload("meine Größe.csv", odd_file(tmp_path / "x").read_bytes())
    config = ExperimentConfig(
        data=str(upload), reading=READING, filter=FEW, seed=4, repetitions=2, fit=FITS[model],
    )  # fmt: skip
    run = computed(store, config)
    line = store.command(run.id)
    assert "--data='meine Größe.csv'" in line or "'--data=meine Größe.csv'" in line
    assert str(tmp_path) not in line
    assert f"--data-sha256={file_sha256(upload)}" in line
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "meine Größe.csv").write_bytes(upload.read_bytes())
    same(store, run, repeated(line, elsewhere, monkeypatch))


def timed_file(path: Path) -> Path:
    """Ratings with times, of 30 users and 12 items."""
    rows = [
        f"{u},{i},{2 + (u * i + u) % 5 / 2},{1_000_000_000 + (u * 7 + i * 13) % 50}\n"
        for u in range(30)
        for i in range(12)
        if (u + i) % 4
    ]
    path.write_text("user,item,rating,when\n" + "".join(rows))
    return path


@pytest.mark.parametrize("protocol", ["strong", "none", "pair", "random", "latest"])
def test_a_run_of_every_protocol_is_repeated_elsewhere(protocol, tmp_path, monkeypatch):
    store = Store(tmp_path / "home")
    fit = FITS["paper"]
    if protocol == "pair":
        lines = odd_file(tmp_path / "all.csv").read_bytes().splitlines(keepends=True)[:-1]
        (tmp_path / "train.csv").write_bytes(b"".join(lines[:-30]))
        (tmp_path / "test.csv").write_bytes(b"".join(lines[-30:]))
        config = ExperimentConfig(
            data="", protocol="pair", reading=READING, fit=fit,
            train_file=str(tmp_path / "train.csv"), test_file=str(tmp_path / "test.csv"),
        )  # fmt: skip
    elif protocol in ("random", "latest"):
        held: dict[str, Any] = {"random": {"folds": 3}, "latest": {"last": 2}}[protocol]
        config = ExperimentConfig(
            data=str(timed_file(tmp_path / "timed.csv")), protocol=protocol, fit=fit, seed=1,
            filter=Filter(0, 0), **held,
        )  # fmt: skip
        assert f"--{next(iter(held))}=" in " ".join(arguments_of(config))
    else:
        folder = movielens_folder(tmp_path / "ml", users=40, items=12)
        config = ExperimentConfig(data=str(folder), protocol=protocol, filter=FEW, fit=fit)
    run = computed(store, config)
    line = store.command(run.id)
    (tmp_path / "elsewhere").mkdir()
    result = repeated(line, tmp_path / "elsewhere", monkeypatch)
    if protocol == "none":
        assert result["data"]["sha256"] == run.data_sha256
    else:
        same(store, run, result)


@pytest.mark.parametrize("scale", ["", "--scale=1,5,1"])
def test_a_usual_scale_is_the_same_found_or_given(scale, tmp_path, monkeypatch):
    """Whole numbers and floating-point ones are one scale, with two hashes of the ratings."""
    rows = "".join(f"{u},{i},{1 + (u + i) % 5}\n" for u in range(20) for i in range(9))
    (tmp_path / "stars.csv").write_text("user,item,rating\n" + rows)
    monkeypatch.chdir(tmp_path)
    args = ["fit", "--data=stars.csv", "--iterations=1", "--min-user-ratings=2", *scale.split()]
    config = arguments.config_from_arguments(build_parser().parse_args(args))
    written = written_out(config, describe(prepare(config)))
    again = build_parser().parse_args(["fit", *arguments_of(written)])
    repeated_config = arguments.config_from_arguments(again)
    found = prepare(repeated_config)
    assert found.data_sha256 == prepare(config).data_sha256
    assert found.data_sha256.startswith(repeated_config.expected["ratings"])


def test_every_setting_is_written_out(tmp_path):
    store = Store(tmp_path / "home")
    file = odd_file(tmp_path / "r.csv")
    for model, words in {
        "paper": "--epsilon=0.075 --noise=0 --init=3 --no-objective",
        "exact": "--epsilon=0 --prior-strength=7.5 --step-length=5 --warm-up=3 --learn-noise "
        "--attributes --prior-target=0.0375,0,0.05,0.0375",
        "mixture": "--components=2 --epsilon=0.075",
    }.items():
        run = computed(
            store,
            ExperimentConfig(data=str(file), reading=READING, filter=FEW, fit=FITS[model]),
        )
        line = store.command(run.id)
        for word in [
            *words.split(), f"--model={model}", "--seed=0", "--repetitions=1", "--iterations=2",
            "--signals=rows", "--protocol=weak", "--min-user-ratings=2", "--min-item-ratings=1",
            "--weak-users=33", "--format=delimited", "'--separator=;'", "--no-header",
            "--decimal=,", "--encoding=latin-1", "--columns=user=4,item=3,rating=1,title=2",
            "--scale=2,4,0.5", "--duplicates=first",
        ]:  # fmt: skip
            assert word in line.split(), (word, line)


def test_written_out_it_is_still_the_same_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GMC_HOME", str(tmp_path / "home"))
    store = Store(tmp_path / "home")
    config = ExperimentConfig(data=str(odd_file(tmp_path / "r.csv")), reading=READING, filter=FEW,
                              fit=FITS["ordinal"])  # fmt: skip
    run = computed(store, config)
    assert main([*shlex.split(store.command(run.id))[1:], "--detach"]) == 0
    out, err = capsys.readouterr()
    # Its data have not been seen in this reading, so a worker has to find that out.
    work(store, idle_seconds=0, polite=False)
    again = store.run(out.strip())
    assert again.key == run.key and again.state == "finished"


def test_another_file_is_refused_with_both_hashes_and_the_remedy(tmp_path, capsys):
    store = Store(tmp_path / "home")
    file = odd_file(tmp_path / "r.csv")
    run = computed(store, ExperimentConfig(data=str(file), reading=READING, filter=FEW,
                                           fit=FITS["paper"]))  # fmt: skip
    words, old = shlex.split(store.command(run.id))[1:], file_sha256(file)
    odd_file(file, seed=5)
    assert main(words) == 2
    said = capsys.readouterr().err
    assert old in said and file_sha256(file) in said
    assert "leave out --data-sha256" in said and "r.csv" in said
    # The same file, read in another way.
    odd_file(file)
    assert main([word for word in words if not word.startswith("--duplicates")]) == 2
    said = capsys.readouterr().err
    assert "other ratings" in said and str(run.data_sha256)[:16] in said
    assert "reading and filter options" in said
    assert main([*words, "--data-sha256=12"]) == 2
    assert "12 of 64" in capsys.readouterr().err


def test_the_command_line_names_all_roles_of_hashes():
    assert set(arguments.HASHES) == set(ROLES)


def test_another_noise_file_is_refused(tmp_path, capsys):
    store = Store(tmp_path / "home")
    file, noise = odd_file(tmp_path / "r.csv"), tmp_path / "noise.csv"
    noise.write_text("item,variance\n" + "".join(f"{m + 100},0.5\n" for m in range(15)))
    fit = FitSettings(iterations=1, noise=str(noise))
    run = computed(store, ExperimentConfig(data=str(file), reading=READING, filter=FEW, fit=fit))
    export(store, run.id, tmp_path / "run.zip")
    with zipfile.ZipFile(tmp_path / "run.zip") as archive:
        assert archive.read("noise.csv") == noise.read_bytes()
    words = shlex.split(store.command(run.id))[1:]
    noise.write_text(noise.read_text().replace("0.5", "0.6"))
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "noise.csv" in said and "--noise-sha256" in said


def odd_config(path: Path, **fit: Any) -> ExperimentConfig:
    return ExperimentConfig(
        data=str(path), reading=READING, filter=FEW, fit=replace(FITS["paper"], **fit)
    )


def test_other_data_than_expected_are_refused_where_they_are_known(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GMC_HOME", str(tmp_path / "home"))
    store = Store(tmp_path / "home")
    config = odd_config(odd_file(tmp_path / "r.csv"))
    run = computed(store, config)
    for role in ("ratings", "data"):
        with pytest.raises(DataError, match="0000000000000000"):
            store.submit_or_find(replace(config, expected={role: "0" * 16}))
    with pytest.raises(ConfigError, match="--noise-sha256"):
        store.submit_or_find(replace(config, expected={"noise": "0" * 16}))
    sweep = SweepConfig(replace(config, expected={"ratings": "0" * 16}), (0.1, 1.0))
    with pytest.raises(DataError, match="0000000000000000"):
        submit_or_find_sweep(store, sweep)
    assert len(store.runs()) == 1
    right = {"ratings": str(run.data_sha256), "data": file_sha256(tmp_path / "r.csv")}
    assert store.submit_or_find(replace(config, expected=right)) == (store.run(run.id), False)
    words = [word for word in shlex.split(store.command(run.id))[1:] if "-sha256=" not in word]
    computed(store, config_of(words))
    assert main([*words, "--detach", f"--ratings-sha256={'0' * 16}"]) == 2
    assert "0000000000000000" in capsys.readouterr().err


def config_of(words: list[str]) -> ExperimentConfig:
    return arguments.config_from_arguments(build_parser().parse_args(words))


def test_a_run_that_expects_other_data_is_not_the_queued_one(tmp_path):
    store = Store(tmp_path / "home")
    config = odd_config(odd_file(tmp_path / "r.csv"))
    first = store.submit(config)
    other = store.submit(replace(config, expected={"ratings": "0" * 16}))
    third = store.submit(replace(config, expected={"data": "0" * 16}, seed=1))
    work(store, idle_seconds=0, polite=False)
    assert [store.run(run.id).state for run in (first, other, third)] == [
        "finished", "failed", "failed",
    ]  # fmt: skip
    assert "other ratings" in store.run(other.id).message
    assert "another file" in store.run(third.id).message


def test_the_noise_of_one_run_is_not_anothers(tmp_path, capsys):
    store = Store(tmp_path / "home")
    file = odd_file(tmp_path / "r.csv")
    hashed = {}
    for name, value in (("one.npy", 0.5), ("two.npy", 0.7), ("three.npy", 0.9)):
        np.save(tmp_path / name, value * np.eye(15))
        hashed[name] = f"--noise-sha256={file_sha256(tmp_path / name)}"
    configs = {name: odd_config(file, noise=str(tmp_path / name)) for name in hashed}
    runs = {name: store.submit(configs[name]) for name in ("one.npy", "two.npy")}
    work(store, idle_seconds=0, polite=False)  # both, with the same data in memory
    runs["three.npy"] = store.submit(configs["three.npy"])  # of data that the store has seen
    for name, run in runs.items():
        assert hashed[name] in store.command(run.id).split()
    plain = computed(store, odd_config(file, noise=0.0))
    line = store.command(plain.id)
    assert "--noise=0" in line.split() and "--noise-sha256" not in line
    assert main(shlex.split(line)[1:]) == 0
    # Nor of a run of an older version, in whose data it was kept.
    old = {**(plain.data or {}), "files": {**(plain.data or {})["files"], "noise": "3" * 64}}
    assert "--noise-sha256" not in command(replace(plain, data=old))


def test_the_sweeps_command_knows_the_data_of_its_fits(tmp_path):
    store = Store(tmp_path / "home")
    base = ExperimentConfig(data=str(odd_file(tmp_path / "r.csv")), reading=READING, filter=FEW,
                            fit=FITS["paper"])  # fmt: skip
    sweep = submit_or_find_sweep(store, SweepConfig(base, (0.1, 1.0), (1, 2), (0, 1)))[0]
    work(store, idle_seconds=0, polite=False)
    line = store.command(sweep.id)
    assert line.startswith("gmc sweep --epsilon=0.1,1 --iterations=1,2 --seeds=0,1 ")
    assert f"--data-sha256={file_sha256(tmp_path / 'r.csv')}" in line
    assert "--scale=2,4,0.5" in line and "--dtype=float32" in line


def test_an_older_run_and_one_that_was_not_read_yet_have_a_command(tmp_path):
    store = Store(tmp_path / "home")
    run = store.submit(ExperimentConfig(data="sample"))
    assert "--model=paper" in store.command(run.id)
    old = {
        "name": "sample", "sha256": "0" * 64, "users": 9, "items": 9, "ratings": 9,
        "scale": [0.5, 5.0, 0.5], "divisor": 1.65,
    }  # fmt: skip
    assert "--epsilon=0.3" in command(replace(run, data=old))
    # What an import claims of itself breaks nothing.
    for junk in ({"files": 3, "reading": [], "users_to_draw": "x"},
                 {"files": {"data": 5}, "reading": {"separator": None, "user": {}}}):  # fmt: skip
        assert "--seed=0" in command(replace(run, data={**old, **junk}))


def test_the_export_holds_what_is_needed_but_the_data(tmp_path):
    store = Store(tmp_path / "home")
    file = odd_file(tmp_path / "r.csv")
    run = computed(store, ExperimentConfig(data=str(file), reading=READING, filter=FEW,
                                           fit=FITS["paper"]))  # fmt: skip
    export(store, run.id, tmp_path / "run.zip")
    with zipfile.ZipFile(tmp_path / "run.zip") as archive:
        told, page = archive.read("repeat.txt").decode(), archive.read("report.html").decode()
        names = archive.namelist()
    assert store.command(run.id) in told and file_sha256(file) in told
    assert run.title in told and str(run.data_sha256) in told
    assert "r.csv" not in names
    assert "item mean" in page and f"{run.baselines['user and item bias']:.6g}" in page
    assert import_run(Store(tmp_path / "other"), tmp_path / "run.zip").baselines == run.baselines
    content = json.loads(export(store, run.id, tmp_path / "run.json").read_text())
    assert content["name"] == run.title
    assert content["repetitions"][0]["baselines"]["item mean"]["nmae"] > 0
    assert f"{run.title}" in export(store, run.id, tmp_path / "r.csv.csv").read_text()


def test_fit_prints_the_baselines(tmp_path, capsys):
    file = odd_file(tmp_path / "r.csv")
    options = ["--separator=;", "--no-header", "--columns=user=4,item=3,rating=1"]
    code = main(["fit", f"--data={file}", *options, "--min-user-ratings=2", "--iterations=1",
                 "--repetitions=2", f"--json={tmp_path / 'out.json'}"])  # fmt: skip
    assert code == 0
    out = capsys.readouterr().out
    summary = json.loads((tmp_path / "out.json").read_text())["summary"]
    for name in ("item mean", "user and item bias"):
        assert f"{summary['baselines'][name]['nmae']:.4f}" in next(
            line for line in out.splitlines() if line.startswith(name)
        )
    assert "66 held-out ratings" in out and "are few" in out and "--repetitions 20" in out
    # Only 2, 2.5 … 4 occur: the divisor rests on that.
    assert "ends and step taken from the values that occur" in out and "--scale" in out


# A value for every option, none of them the default or what would be found.
OPTIONS: dict[str, Any] = {
    "separator": "\t", "header": False, "decimal": ",", "encoding": "cp1252", "user": 3,
    "item": "Größe in cm", "rating": 0, "timestamp": "when", "title": 7, "low": -10.0,
    "high": 10.0, "step": "continuous", "not_rated": ("NR", "-1", "99.5", ""),
}  # fmt: skip


@pytest.mark.parametrize("other", [{}, {"separator": "whitespace", "header": True, "step": 0.25}])
def test_every_reading_option_survives_the_command(other):
    assert set(OPTIONS) == {field.name for field in fields(DelimitedOptions)}
    options = DelimitedOptions(**{**OPTIONS, **other})
    reading = {field.name: getattr(options, field.name) for field in fields(options)}
    given = arguments_of(ExperimentConfig(data="r.csv", reading=reading))
    parsed = arguments.config_from_arguments(build_parser().parse_args(["fit", *given]))
    assert split_reading(parsed.reading)["options"] == options


def test_a_run_with_codes_for_not_rated_is_repeated_elsewhere(tmp_path, monkeypatch):
    store = Store(tmp_path / "home")
    file = odd_file(tmp_path / "r.csv")
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines, b"NR;Caf\xe9;100;who99\n", b"-1;Caf\xe9;101;who99\n"]))
    reading = {**READING, "not_rated": ["NR", -1]}
    run = computed(store, ExperimentConfig(data=str(file), reading=reading, filter=FEW,
                                           fit=FITS["paper"]))  # fmt: skip
    assert {"--not-rated=NR", "--not-rated=-1"} <= set(store.command(run.id).split())
    # Also where only the reading that was found tells of them.
    told = replace(run, config=replace(run.config, reading={}))
    assert "--not-rated=NR" in command(told).split()
    same(store, run, repeated(store.command(run.id), tmp_path, monkeypatch))

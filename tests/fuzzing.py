"""Damaged and hostile files, made from valid ones by a seed, and what must hold of reading them."""

from __future__ import annotations

import gzip
import io
import os
import random
import warnings
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from reader_files import (
    EACHMOVIE,
    JESTER,
    JESTER_DAT,
    MATRIX_MARKET,
    ML1M,
    ML10M,
    ML100K,
    ML_CSV,
    NETFLIX,
)

from gmc_core.base.errors import GmcError
from gmc_core.data.readers import Loaded

TABLE = (
    'user;item;rating;time;title\nann;007;4,5;2001-01-31;"Heat; or so"\n'
    "bob;7;3;2001-02-01;Amélie\nann;8;1,5;;\n"
).encode()
PLAIN = b"1,10,5\n1,20,3\n2,10,4\n3,30,1\n3,10,2\n"
BLANKS = b"7 1000000000000000000 2.5\n8   12 3\n\n7 12 4\n"
RECORDS = b"""[{"user": "ann", "item": "007", "rating": 4.5, "text": "a, \\"b\\""},
{"user": "bob", "item": "7", "rating": 3}, {"user": "ann", "item": "8", "rating": 1.5}]"""
# name of the ratings file → the files of a folder that load as they are
SETS: dict[str, dict[str, bytes]] = {
    "ml1m": ML1M,
    "ml10m": ML10M,
    "ml100k": ML100K,
    "csv": ML_CSV,
    "eachmovie": EACHMOVIE,
    "jester": {"jester-data-1.csv": JESTER},
    "netflix": NETFLIX,
    "mtx": {"ratings.mtx": MATRIX_MARKET},
    "jester2": {"jester_ratings.dat": JESTER_DAT},
    "json": {"mine.json": RECORDS},
    "table": {"mine.csv": TABLE},
    "plain": {"plain.txt": PLAIN},
    "blanks": {"blanks.dat": BLANKS},
}
# How many files each kind of test tries in one run of the suite, together at least 2,000;
# GMC_FUZZ=20 in the environment tries twenty times as many.
_TIMES = int(os.environ.get("GMC_FUZZ", "1"))
FILES = {
    name: _TIMES * count
    for name, count in {
        "ratings": 700, "known": 200, "archives": 300, "tables": 300, "noise": 200, "models": 240,
        "runs": 120, "comparisons": 24, "doors": 60,
    }.items()
}  # fmt: skip
# What files of people and of attackers hold: separators, quotes, blanks and line ends of all
# systems, NUL and control characters, other encodings, numbers at the ends of their types.
WORDS: Sequence[bytes] = (
    b"", b"\0", b"\n", b"\r", b"\r\n", b"\n\n", b" ", b"\t", b",", b";", b"|", b"::", b":", b'"',
    b'""', b"'", b"\\", b"\x1f", b"\x0c", b"\x1a", b"\x85", b"\xe9", b"\xff\xfe", b"\xef\xbb\xbf",
    "€".encode(), "\u2028".encode(), "١٢".encode(), "é".encode("utf-16-le"), b"\xed\xa0\x80",
    b"nan", b"NaN", b"inf", b"-inf", b"Infinity", b"null", b"None", b"NA", b"0", b"-0", b"-1",
    b"1e308", b"-1e308", b"1e309", b"1e-320", b"99", b"0.1", b"3,5", b"1_0", b"+5", b"0x10",
    b"1000000000000000000", b"9223372036854775807", b"9223372036854775808", b"007", b"1.0",
    b"18446744073709551616", b"=1+1", b"<script>", b"%s%n", b"../../etc/passwd", b"1970-01-01",
    b"99999-99-99", b"12/31/99 23:59:59", b"user,item,rating\n", b"(1999)", b"( ", b" " * 300,
    b"9" * 400, b"," * 60, b"\n" * 50, b"1::2::3::4\n", b"1\t2\t3\n", b"userId,movieId,rating\n",
)  # fmt: skip


def mutated(data: bytes, rng: random.Random) -> bytes:
    """One to four changes of any kind."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice((0, 1, 1, 2, 5, 20, 200)))
        lines = data.split(b"\n")
        match rng.randrange(9):
            case 0:  # one bit
                if data:
                    place = rng.randrange(len(data))
                    bit = bytes([data[place] ^ 1 << rng.randrange(8)])
                    data = data[:place] + bit + data[place + 1 :]
            case 1:
                data = data[:start]
            case 2:
                data = data[:start] + data[end:]
            case 3:
                data = data[:start] + data[start:end] * rng.choice((2, 3, 50)) + data[end:]
            case 4:
                rng.shuffle(lines)
                data = b"\n".join(lines)
            case 5:
                line = rng.randrange(len(lines))
                lines[line] = rng.choice(WORDS) + lines[line] + rng.choice(WORDS)
                data = b"\n".join(lines)
            case 6:  # mixed encodings
                text = data.decode("latin-1")
                data = text.encode(rng.choice(("utf-8", "utf-16", "utf-16-le", "utf-8-sig")))
            case _:
                data = data[:start] + rng.choice(WORDS) + data[end:]
    return data


def generated(rng: random.Random) -> bytes:
    """A table of a few rows in no format: words between separators."""
    separator = rng.choice((b",", b";", b"\t", b"|", b"::", b" "))
    width = rng.choice((1, 2, 3, 3, 3, 4, 4, 7))
    number = [str(rng.choice((1, 2, 3, 5, 2.5, -7, 10**18, 10**19))).encode() for _ in range(4)]
    rows = [
        separator.join(
            rng.choice(WORDS) if rng.random() < 0.06 else rng.choice(number) for _ in range(width)
        )
        for _ in range(rng.choice((0, 1, 2, 5, 30)))
    ]
    return rng.choice((b"\n", b"\r\n", b"\r")).join(rows) + rng.choice((b"", b"\n"))


def packed(files: dict[str, bytes], rng: random.Random) -> bytes:
    """The files as a zip, damaged more often than not."""
    out = io.BytesIO()
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, 14))
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", method) as archive:
        warnings.simplefilter("ignore")  # of two members of one name
        for name, data in files.items():
            inside = rng.choice(("", "", "", "ml/", "../", "/", "C:/", "a/b/c/d/e/f/g/", ".git/"))
            if rng.random() < 0.2:
                data, name = gzip.compress(data), f"{name}.gz"
            archive.writestr(inside + name, data)
            if rng.random() < 0.05:
                archive.writestr(inside + name, data)
    content = out.getvalue()
    for _ in range(rng.choice((0, 1, 2))):
        place = rng.randrange(len(content))
        if rng.random() < 0.2:
            content = content[:place]
            break
        wrong = rng.choice((bytes([rng.randrange(256)]), b"\xff" * 4, b"\0" * 4))
        content = content[:place] + wrong + content[place + len(wrong) :]
    return content


def tried(
    action: Callable[..., Any], *arguments: Any, path: Path | None = None, **more: Any
) -> Any:
    """The result, or None after one clear error; anything else, a warning too, fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return action(*arguments)
        except GmcError as error:
            check_error(error, path)
            return None


def check_error(error: GmcError, path: Path | None = None) -> None:
    """A sentence that names the file, is not endless, and shows nothing raw."""
    text = str(error)
    assert 10 < len(text) < 2000, text[:3000]
    assert text.strip().endswith((".", ")", '"', "'", "]")), text
    if path is not None:
        assert str(path) in text or str(path.parent) in text, text


def check_loaded(loaded: Loaded) -> None:
    """Every row is accounted for, and every rating is a number of the scale."""
    ratings, report = loaded.ratings, loaded.report
    assert len(ratings) > 0
    dropped = sum(count for _, count in report.dropped)
    assert report.rows_read == report.ratings + report.duplicates + dropped
    assert (report.ratings, report.users, report.items) == (
        len(ratings), ratings.n_users, ratings.n_items,
    )  # fmt: skip
    assert np.isfinite(ratings.values).all()
    assert ratings.values.min() >= ratings.scale.low - 1e-6
    assert ratings.values.max() <= ratings.scale.high + 1e-6
    assert (np.diff(ratings.indptr) > 0).all()
    for vocabulary in (ratings.users, ratings.items):
        assert all(str(value).strip() for value in vocabulary.ids.tolist())
    assert "nan" not in str(report).split("scale")[-1].split("\n")[0]


HOSTILE: Sequence[Any] = (
    None, True, -1, 0, 1, 10**18, 10**400, 1e308, -1e308, 1e-320, float("nan"), float("inf"), "",
    "x", "\0", "\ud800", "=1+1", "<script>alert(1)</script>", "../../x", "9" * 5000, [], {}, [[]],
    [None], [1, 2], {"x": 1}, "<U999999999", "finished", "running",
)  # fmt: skip


def altered(value: Any, rng: random.Random) -> Any:
    """JSON with one part, at any depth, left out or replaced."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        name = rng.choice(sorted(value))
        if rng.random() < 0.1:
            return {key: part for key, part in value.items() if key != name}
        return {**value, name: altered(value[name], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        place = rng.randrange(len(value))
        if rng.random() < 0.1:
            return value[:place] + value[place + 1 :]
        return [*value[:place], altered(value[place], rng), *value[place + 1 :]]
    return rng.choice(HOSTILE)

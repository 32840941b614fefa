"""Loading ratings in any format; all other code reads files through this."""

from __future__ import annotations

import os
from dataclasses import replace
from types import ModuleType

from gmc_core.base.errors import ConfigError, DataError
from gmc_core.data.readers import (
    copies,
    delimited,
    eachmovie,
    jester,
    jester_dat,
    matrix_market,
    movielens_100k,
    movielens_csv,
    movielens_dat,
    netflix,
)
from gmc_core.data.readers.assemble import Parts, assemble, check_policy, default_name
from gmc_core.data.readers.beside import described, unused_note
from gmc_core.data.readers.companions import refuse_companion
from gmc_core.data.readers.delimited import DelimitedOptions
from gmc_core.data.readers.report import Loaded
from gmc_core.data.readers.source import Progress, Source, open_source

# In the order in which they are tried: "delimited" takes nearly anything.
_MODULES: dict[str, ModuleType] = {
    module.NAME: module
    for module in (
        movielens_dat,
        movielens_100k,
        movielens_csv,
        eachmovie,
        netflix,
        matrix_market,
        jester_dat,
        jester,
        delimited,
    )
}
FORMATS = tuple(_MODULES)


def load(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    options: DelimitedOptions | None = None,
    duplicates: str = "last",
    name: str | None = None,
    beside: bool = False,
    on_read: Progress | None = None,
) -> Loaded:
    """Read ratings from a folder, a zip or a file (also packed as ``.gz``, say).

    A large table is kept as a copy, see :mod:`gmc_core.data.readers.copies`, and comes from there
    the next time.

    Parameters
    ----------
    path : the folder or file.
    format : one of ``FORMATS``; None finds it.
    options : how to read a delimited text; implies that format.
    duplicates : which of several ratings of one item by one user counts: "last"
        or "first" (by time if the file has times that differ, else by position), "mean",
        or "error".
    name : a name for the data; by default from the path.
    beside : for a delimited text: take titles, genres and users' attributes from MovieLens's or
        EachMovie's files in its folder.
    on_read : called with (bytes read, bytes in total) while a large file is read.

    Raises
    ------
    DataError
        If the data cannot be found or read; names file, line and value.
    ConfigError
        If the format, the policy or the options have no meaning.
    """
    check_policy(duplicates)
    if format is not None and format not in _MODULES:
        raise ConfigError(f"There is no format {format!r}; use one of {', '.join(FORMATS)}.")
    if options is not None and format not in (None, delimited.NAME):
        raise ConfigError(f"Options are for the format 'delimited', not for {format!r}.")
    key = copies.key_of(path, (format, options, duplicates, name, beside))
    if key is not None and (kept := copies.find(key)) is not None:
        return kept
    source = open_source(path).telling(on_read)
    parts = _read(source, format, options, beside)
    loaded = assemble(parts, duplicates, name or default_name(source.path))
    # Not if the source has changed meanwhile.
    if key is not None and key == copies.key_of(path, (format, options, duplicates, name, beside)):
        copies.keep(key, loaded)
    return loaded


def _read(
    source: Source, format: str | None, options: DelimitedOptions | None, beside: bool
) -> Parts:
    if format is None:
        format = delimited.NAME if options is not None else detect(source)
    if format == delimited.NAME:
        parts = delimited.read(source, options)
        return described(parts, source) if beside else parts
    parts = _MODULES[format].read(source)
    assert isinstance(parts, Parts)
    return replace(parts, notes=(*parts.notes, unused_note(format))) if beside else parts


def detect(source: Source) -> str:
    """The name of the first format that recognises the source.

    Raises
    ------
    DataError
        If none does; the message says what was looked for and what is there. Also if what is
        there belongs to a known data set and holds no ratings, or is one person's list.
    """
    for name, module in _MODULES.items():
        if name == delimited.NAME:
            refuse_companion(source)
        if module.matches(source):
            return name
    there = ", ".join(source.names()[:10]) or "no file"
    raise DataError(
        "No known data set was found: looked for ratings.dat, u.data, ratings.csv, vote.txt, "
        "mv_*.txt, combined_data_*.txt, *.mtx, jester_ratings.dat, jester*.csv and a single text "
        f"file; there is {there}. Give the path of the ratings file itself.",
        path=source.path,
    )

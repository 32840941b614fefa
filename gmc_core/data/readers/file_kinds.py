"""The kind of a file by its first bytes: text, compressed, a table in another format, or none.

Ratings and plain tables are opened through here, so that both read the same files and say the
same of the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gmc_core.base.errors import DataError

BOM = b"\xef\xbb\xbf"
# Bytes needed to recognise a kind; the signature of a tar archive lies furthest in.
SIGN_BYTES = 512

# Compressions that are undone while reading, and the endings that a name loses with them.
PACKINGS = {
    "gzip": b"\x1f\x8b",
    "bzip2": b"BZh",
    "xz": b"\xfd7zXZ\0",
    "zstd": b"\x28\xb5\x2f\xfd",
}
PACKED_ENDINGS = (".gz", ".bz2", ".xz", ".zst")

CSV_REMEDY = "save it as CSV there and give that file"
_ARCHIVE = "unpack it and give the folder"
_FRAME = "write it as CSV or parquet with the program that made it"
# First bytes → what the file is, and the remedy.
_SIGNS: tuple[tuple[bytes, str, str], ...] = (
    (b"%PDF-", "a PDF document", "give the table itself, as CSV"),
    (b"\x89PNG", "a picture (PNG)", "give the table itself, as CSV"),
    (b"\xff\xd8\xff", "a picture (JPEG)", "give the table itself, as CSV"),
    (b"GIF8", "a picture (GIF)", "give the table itself, as CSV"),
    (b"II*\0", "a picture (TIFF)", "give the table itself, as CSV"),
    (b"MM\0*", "a picture (TIFF)", "give the table itself, as CSV"),
    (b"RIFF", "a sound, film or picture", "give the table itself, as CSV"),
    (b"SQLite format 3\0", "an SQLite database", "write the table of the ratings out as CSV"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook (.xls) or another Office file",
     f"open it in a spreadsheet program, {CSV_REMEDY}"),
    (b"{\\rtf", "a text document (RTF)", "give the table itself, as CSV"),
    (b"\x93NUMPY", "a NumPy array (.npy)", "write it as CSV"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", _FRAME),
    (b"PAR1", "a parquet file", "gmc complete --table reads it as a table if its name ends in "
     ".parquet; write ratings as CSV"),
    (b"ARROW1", "a Feather (Arrow) file", _FRAME),
    (b"FEA1", "a Feather file", _FRAME),
    (b"RDX", "a file of R", "write the table with write.csv in R"),
    (b"RDA", "a file of R", "write the table with write.csv in R"),
    (b"X\n\0\0\0", "a file of R (.rds)", "write the table with write.csv in R"),
    (b"MATLAB 5.0", "a MATLAB file", "write the table with writematrix in MATLAB"),
    (b"$FL2", "an SPSS file", _FRAME),
    (b"<stata_dta>", "a Stata file", _FRAME),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", _ARCHIVE),
    (b"Rar!", "a RAR archive", _ARCHIVE),
    (b"PK\x05\x06", "an empty zip archive", "give one with ratings"),
    (b"\x7fELF", "a program", "give a file with ratings"),
    (b"version https://git-lfs", "a pointer of Git LFS, not the file itself",
     "fetch the file with git lfs pull"),
)  # fmt: skip
_MARKUP: tuple[tuple[bytes, str, str], ...] = (
    (b"<!doctype html", "a web page (HTML), perhaps saved by mistake instead of the file",
     "download the file itself"),
    (b"<html", "a web page (HTML), perhaps saved by mistake instead of the file",
     "download the file itself"),
    (b"<?xml", "an XML file", "save it as CSV with the program that made it"),
)  # fmt: skip
_PICKLE = re.compile(rb"\x80[\x02-\x05][\x80-\x95(}\]cX]", re.DOTALL)
# Two adjacent runs of blanks would make matching quadratic: minutes for a megabyte of blanks.
_PYTHON_RECORDS = re.compile(rb"(?:\[\s*)?\{\s*u?'\w+'\s*:")
_JSON = re.compile(rb"\s*(?:\[\s*[\[{\]]|\{\s*[\"}])")
# What is in a zip → what it is, and the remedy. A plain zip of data files has none of these.
_ZIPPED: tuple[tuple[str, str, str], ...] = (
    ("word/document.xml", "a Word document", "give the table itself, as CSV"),
    ("ppt/presentation.xml", "a presentation", "give the table itself, as CSV"),
    ("xl/workbook.bin", "a binary Excel workbook (.xlsb)",
     f"open it in a spreadsheet program, {CSV_REMEDY}"),
    ("content.xml", "an OpenDocument file (.ods)",
     f"open it in a spreadsheet program, {CSV_REMEDY}"),
    ("META-INF/MANIFEST.MF", "a Java program", "give a file with ratings"),
)  # fmt: skip
WORKBOOK = "xl/workbook.xml"


def packing(start: bytes) -> str | None:
    """The compression of a file by its first bytes, one of ``PACKINGS``; None if there is none."""
    for name, sign in PACKINGS.items():
        if start.startswith(sign) and (name != "bzip2" or start[4:10] in (b"1AY&SY", b"")):
            return name
    return None


def plain_name(name: str) -> str:
    """A file's name without the ending of a compression."""
    for ending in PACKED_ENDINGS:
        if name.lower().endswith(ending):
            return name[: -len(ending)]
    return name


def is_zip(start: bytes) -> bool:
    """Whether a file is a zip archive (a workbook is one too)."""
    return start.startswith(b"PK\x03\x04")


def is_json(start: bytes) -> bool:
    """Whether a text starts as JSON tables do: an array of records or rows, or an object."""
    return _JSON.match(start.removeprefix(BOM)) is not None


def is_one_line(start: bytes) -> bool:
    """Whether a file may be read though it has no line ends."""
    return is_zip(start) or is_json(start)


def refuse(start: bytes, path: object) -> None:
    """Raise for a file that is no table: what it is, and what to do.

    start : its first bytes, inflated.

    Raises
    ------
    DataError
        If the first bytes are those of a document, picture, database, array or archive.
    """
    found = [entry for entry in _SIGNS if start.startswith(entry[0])]
    text = start.removeprefix(BOM).lstrip()[:64].lower()
    found += [entry for entry in _MARKUP if text.startswith(entry[0])]
    if found:
        raise no_table(*found[0][1:], path)
    if _PICKLE.match(start):
        # Never opened to see: reading a pickle runs code that the file contains.
        raise no_table("a pickle of Python", "write the table as CSV (DataFrame.to_csv)", path)
    if _PYTHON_RECORDS.match(start.lstrip()):
        raise no_table("Python's notation of records, which is not JSON", "save it as JSON", path)
    if start[257:262] == b"ustar":
        raise DataError("Tar archives are not read; unpack it and give the folder.", path=path)


def no_table(what: str, remedy: str, path: object) -> DataError:
    """The error for a file that is something else."""
    return DataError(f"This is {what}, no table that is read here; {remedy}.", path=path)


def refuse_zipped(names: Iterable[str], path: object) -> None:
    """The same for a zip archive, by the names of its files."""
    there = set(names)
    for name, what, remedy in _ZIPPED:
        if name in there:
            raise no_table(what, remedy, path)
    if there and all(name.endswith(".npy") for name in there):
        raise no_table("an archive of NumPy arrays (.npz)", "write the table as CSV", path)

"""Whether an exported run that comes back is this store's own, unchanged.

Nothing in a file can prove that its figures were computed with its settings: whoever edits
the one can edit the other. So a store seals what it exports with a secret that never leaves
its database (HMAC-SHA-256 over the run and the hashes of its files), and believes only its own
seal.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import zipfile
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

from gmc_core.base.errors import GmcError
from gmc_core.data.ratings import RatingScale
from gmc_core.protocol.metrics import score_pooled

if TYPE_CHECKING:
    from gmc_core.runs.store.run import Run
    from gmc_core.runs.store.store import Store

NOT_OURS = (
    "Imported, and not known to be this store's own run, unchanged: it can be looked at, but a "
    "new start with its settings computes them anew."
)
UNSEALED = (
    "Exported without a seal: imported again, also into this store, the run can be looked at, but "
    "a new start with its settings computes them anew."
)
_BLOCK_BYTES = 1 << 20
_SAME_SCORE = 1e-6


def seal(store: Store, content: dict[str, Any], files: dict[str, str]) -> dict[str, Any]:
    """What goes into ``content["seal"]``. files : name in the archive → SHA-256.

    Raises
    ------
    StoreError
        If this is the first seal and its secret cannot be kept.
    """
    return {"files": files, "mac": _mac(_secret(store), content, files)}


def is_ours(store: Store, content: dict[str, Any], files: dict[str, str] | None) -> bool:
    """Whether this store has exported exactly this.

    files : name → SHA-256 of what the archive has of the run's files; None if a name comes twice.
    """
    found = content.get("seal")
    if not isinstance(found, dict) or files is None or found.get("files") != files:
        return False
    secret = _kept_secret(store)
    if secret is None:
        return False  # a store that has never exported anything
    plain = {name: value for name, value in content.items() if name != "seal"}
    return hmac.compare_digest(str(found.get("mac")), _mac(secret, plain, files))


def _mac(secret: bytes, content: dict[str, Any], files: dict[str, str]) -> str:
    # Through JSON and back: a tuple and a list, say, give the same text then, so that the hash of
    # what is exported equals that of what is read.
    plain = json.loads(json.dumps([content, files]))
    return hmac.new(secret, json.dumps(plain, sort_keys=True).encode(), hashlib.sha256).hexdigest()


def _secret(store: Store) -> bytes:
    """The store's own, made when it is first needed."""
    found = _kept_secret(store)  # first, since on a full or read-only disk none can be made
    if found is not None:
        return found
    with store.writing() as database:
        database.execute(
            "INSERT OR IGNORE INTO settings (name, value) VALUES ('seal', ?)",
            (secrets.token_hex(32),),
        )
    found = _kept_secret(store)
    assert found is not None
    return found


def _kept_secret(store: Store) -> bytes | None:
    rows = store.rows("SELECT value FROM settings WHERE name = 'seal'")
    return bytes.fromhex(rows[0]["value"]) if rows else None


def copied(source: IO[bytes], target: IO[bytes] | None) -> str:
    """Copy a file, or only read it; returns the SHA-256 of what was read."""
    digest = hashlib.sha256()
    while block := source.read(_BLOCK_BYTES):
        digest.update(block)
        if target is not None:
            target.write(block)
    return digest.hexdigest()


def hashes(archive: zipfile.ZipFile, names: list[str]) -> dict[str, str] | None:
    """Name → SHA-256 of these members, None if a name comes twice."""
    if len(set(names)) < len(names):
        return None
    found = {}
    for name in names:
        with archive.open(name) as file:
            found[name] = copied(file, None)
    return found


def doubt(store: Store, id: str) -> str:
    """A sentence if the figures of a finished run are not those of its predictions, else ""."""
    run = store.run(id)
    if run.comparison is not None:
        return _doubt_of_comparison(store, run)
    if run.kind != "run" or run.state != "finished" or run.data is None:
        return ""
    scale = RatingScale(*run.data["scale"])
    parts = []
    for index, result in enumerate(store.results(id)):
        held_out = store.held_out(id, index)
        if held_out is None:
            return ""  # exported without files: there is nothing to compare with
        parts.append(held_out)
        stated = (result.get("scores") or {}).get("nmae")
        words = _differs(f"repetition {index + 1}", stated, [held_out], scale)
        if words:
            return words
    return _differs("the result", (run.summary or {}).get("nmae"), parts, scale)


def _doubt_of_comparison(store: Store, run: Run) -> str:
    """The same of a finished comparison: every method's NMAE against that of its files."""
    from gmc_core.runs.comparisons import comparison_of

    summary, found = run.summary or {}, comparison_of(store, run)
    if run.state != "finished" or found is None or not found.outcomes:
        return ""  # exported without files: there is nothing to compare with
    table = summary.get("table")
    lines = table.get("methods") if isinstance(table, dict) else None
    stated = {
        line.get("name"): (line.get("scores") or {}).get("nmae")
        for line in (lines if isinstance(lines, list) else [])
        if isinstance(line, dict) and isinstance(line.get("scores") or {}, dict)
    }
    scores = {row.name: row.scores.nmae for row in found.rows() if row.scores is not None}
    for name, label in found.labels.items():
        words = _words(label, stated.get(name), scores.get(name))
        if words:
            return words
    return _words("the best method", summary.get("nmae"), min(scores.values(), default=None))


def _differs(what: str, stated: Any, parts: list[Any], scale: RatingScale) -> str:
    rated = [part for part in parts if len(part.actual)]
    found = None
    if rated:
        pairs = [(part.predictions, part.actual) for part in rated]
        with suppress(GmcError):  # predictions that are no numbers have no score
            found = score_pooled(pairs, scale, [part.unseen for part in rated]).nmae
    return _words(what, stated, found)


def _words(what: str, stated: Any, found: float | None) -> str:
    if stated is None and found is None:
        return ""
    if stated is not None and found is not None and abs(stated - found) <= _SAME_SCORE:
        return ""
    shown = ["none" if value is None else f"{value:.4f}" for value in (stated, found)]
    return (
        f"Do not rely on these figures: the NMAE of {what} is given as {shown[0]}, but that of "
        f"its predictions is {shown[1]}. Export the run again where it was computed."
    )

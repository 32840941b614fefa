"""The command line in this process, and a file for it."""

from __future__ import annotations

import numpy as np

from gmc_core.cli import main


def write_ratings(path, users=60, items=30, seed=0, fill=0.5):
    """user,item,rating of two tastes, on 1..5."""
    rng = np.random.default_rng(seed)
    tastes = rng.normal(size=(users, 2)) @ rng.normal(size=(2, items))
    values = np.clip(np.round(3 + tastes), 1, 5).astype(int)
    known = rng.random((users, items)) < fill
    lines = ["user,item,rating"]
    lines += [f"u{u:02d},{i},{values[u, i]}" for u, i in zip(*np.nonzero(known), strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def run(capsys, *argv):
    code = main([str(word) for word in argv])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def refused(capsys, *argv):
    """The one line that says why a command was refused."""
    code, out, err = run(capsys, *argv)
    assert code == 2
    assert out == ""
    last = err.strip().splitlines()[-1]
    assert last.startswith("gmc: error: ")
    return last

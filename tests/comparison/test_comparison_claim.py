"""Who computes a comparison: one process at a time, whatever becomes of it."""

from __future__ import annotations

import subprocess
import sys

from gmc_core.cli import main
from gmc_core.runs.store.comparisons import ComparisonFolder

HOLDER = """
import sys
from pathlib import Path
from gmc_core.runs.store.comparisons import ComparisonFolder, Status
folder = ComparisonFolder(Path(sys.argv[1]))
try:
    with folder.claimed():
        folder.keep_status(Status("running"))
        print("mine", flush=True)
        sys.stdin.readline()
except Exception as error:
    print("refused", error, flush=True)
"""


def holders(folder, count):
    """Processes that all want to compute the same comparison, and what each printed first."""
    made = [
        subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    return made, [process.stdout.readline().strip() for process in made]


def test_of_two_at_once_on_one_folder_one_is_refused(tmp_path):
    """However close they are: what decides is a lock, not a look at a file."""
    made, said = holders(tmp_path / "folder", 2)
    try:
        assert sorted(line.split()[0] for line in said) == ["mine", "refused"]
        refused = next(line for line in said if line.startswith("refused"))
        winner = made[said.index("mine")]
        assert f"process {winner.pid}" in refused
        assert "--folder" in refused
        command = ["compare", "--data", "sample", "--folder", str(tmp_path / "folder")]
        assert main(command) == 2
        assert ComparisonFolder(tmp_path / "folder").status().state == "running"
    finally:
        for process in made:
            process.communicate("")


def test_a_claim_ends_with_its_process_whatever_ends_that(tmp_path):
    made, said = holders(tmp_path / "folder", 1)
    assert said == ["mine"]
    made[0].kill()
    made[0].wait()
    made[0].communicate()
    made, said = holders(tmp_path / "folder", 1)
    assert said == ["mine"]
    made[0].communicate("")

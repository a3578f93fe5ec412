"""Judges the demo's story about state outside the workspace; run in the workspace, told where things are."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


def main(letters: Path, codes_sum: str, letters_sum: str) -> int:
    """0 where everything holds, else 1 with the first thing that does not."""
    for problem in problems(letters, codes_sum, letters_sum):
        print(problem)  # noqa: T201 - the feedback
        return 1
    return 0


def problems(letters: Path, codes_sum: str, letters_sum: str) -> Iterator[str]:
    """What is wrong, in the order of the assignment."""
    if digest(Path("codes.csv")) != codes_sum:
        yield "codes.csv does not hold every customer's legacy_code as it was (customer_id,legacy_code)"
    if digest(Path("letters")) != letters_sum:
        yield f"letters/ does not hold what was in {letters}"
    columns = subprocess.run(
        [
            "psql",
            "-XAtc",
            "SELECT column_name FROM information_schema.columns WHERE table_name = 'customers'",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if columns.returncode != 0:
        yield f"the database cannot be asked: {columns.stderr.strip()}"
    if "legacy_code" in columns.stdout.split():
        yield "customers still has the column legacy_code"
    if letters.exists():
        yield f"{letters} is still there"


def digest(path: Path) -> str:
    """A hash of a file, or of all files of a folder with their names; empty where there is nothing."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    files = sorted(each for each in path.rglob("*") if each.is_file())
    found = hashlib.sha256()
    for each in files:
        found.update(f"{each.relative_to(path)}\0".encode() + each.read_bytes() + b"\0")
    return found.hexdigest() if files else ""


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))

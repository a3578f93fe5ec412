"""Measures what the layer adds to an agent's calls, how fast it replays, what its log weighs, and a rewind.

The agent is a plain loop over litellm with a message list that grows: an answer of 0.6 KB with one tool call,
a tool result of 2.5 KB. The scripted model serves it over HTTP from a process of its own. Every step is made
twice in turns, bare and under a live layer, and what the layer adds is the difference of the two.

    python benchmarks/capture.py --write docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from call_overhead import journal_lines, overhead, overhead_lines
from conversation import scratch
from replays import replay_lines
from rewinds import rewind_lines
from workspace import machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--nodes", default="100,2000", help="lengths of the replayed runs, by commas")
    parser.add_argument("--only", choices=["calls", "replay", "rewind"], help="one part instead of all")
    parser.add_argument("--disk", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--write", type=Path, help="the document whose part on calls is replaced")
    arguments = parser.parse_args()
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # no look-up on the network
    described = machine()
    print(described, flush=True)
    tables: list[list[str]] = []

    def told(lines: list[str]) -> None:
        tables.append(lines)
        print("\n".join(lines) + "\n", flush=True)

    with scratch(arguments.disk) as base:
        if arguments.only in (None, "calls"):
            found = overhead(base, arguments.files, arguments.steps)
            told(overhead_lines(found))
            told(journal_lines(found))
    with scratch(arguments.disk) as base:
        if arguments.only in (None, "replay"):
            told(replay_lines(base, [int(part) for part in arguments.nodes.split(",")]))
    with scratch(arguments.disk) as base:
        if arguments.only in (None, "rewind"):
            told(rewind_lines(base, arguments.files))
    if arguments.write is not None:
        text = arguments.write.read_text()
        before, begin, rest = text.partition("<!-- measured: calls -->\n")
        _, end, after = rest.partition("<!-- end: calls -->")
        if not end:
            sys.exit(
                f"{arguments.write} has no part between <!-- measured: calls --> and <!-- end: calls -->"
            )
        body = f"Measured on {described}.\n\n" + "\n\n".join("\n".join(lines) for lines in tables) + "\n\n"
        arguments.write.write_text(before + begin + "\n" + body + end + after)


if __name__ == "__main__":
    main()

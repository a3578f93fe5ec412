"""Reads the gateways' authentication logs: authlog.py LOG…"""

import gzip
import json
import re
import sys

ENTRY = re.compile(
    r"(?P<time>\S+) (?P<gateway>\S+) session=(?P<session>\S+) user=(?P<user>\S+) "
    r"from=(?P<from>\S+) event=(?P<event>\S+)"
)


def read(path):
    """The entries of one log, in its order."""
    opener = gzip.open if str(path).endswith(".gz") else open
    entries = []
    with opener(path, "rt", encoding="utf-8") as file:
        for line in file:
            found = ENTRY.match(line)
            if not found:
                continue
            entry = found.groupdict()
            entry["time"] = entry["time"][:19] + "Z"
            entry["raw"] = line.rstrip("\n")
            entries.append(entry)
    return entries


def merged(paths):
    """The entries of several logs, each once, by time."""
    seen = {}
    for path in paths:
        for entry in read(path):
            seen.setdefault((entry["gateway"], entry["raw"]), entry)
    return sorted(seen.values(), key=lambda entry: (entry["time"], entry["gateway"]))


if __name__ == "__main__":
    for each in merged(sys.argv[1:]):
        print(json.dumps(each))

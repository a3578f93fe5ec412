"""`load.py EXPORT STORE`: makes a store of format 1 of an export; needs shelf 1.x."""

import json
import sys


def items(text):
    """(key, time, tags, text) of each item that an export has and that is not deleted."""
    found = []
    for line in text.splitlines():
        item = json.loads(line)
        time, body = item["revisions"][0]
        if body:
            found.append((item["key"], time, item["tags"], body))
    return found


def main(export, store):
    from shelf.store import save

    with open(export, encoding="utf-8") as file:
        save(store, items(file.read()))


if __name__ == "__main__":
    main(*sys.argv[1:])

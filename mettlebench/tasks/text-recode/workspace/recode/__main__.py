"""`python3 -m recode convert [--sidecar] FILE…`: rewrites files as UTF-8, in place."""

import csv
import json
import os
import sys

from recode.document import decode


def pages():
    with open("docs/donors.csv", encoding="utf-8", newline="") as file:
        return {row["folder"]: row["page"] for row in csv.DictReader(file)}


def main(arguments):
    if arguments[:1] != ["convert"]:
        sys.exit(__doc__)
    sidecar = "--sidecar" in arguments
    for path in arguments[1:]:
        if path == "--sidecar":
            continue
        with open(path, "rb") as file:
            document = decode(file.read(), pages()[os.path.basename(os.path.dirname(path))])
        if sidecar:
            held = {"encoding": document.encoding, "mark": document.mark, "newline": document.newline}
            with open(path + ".sidecar.json", "w", encoding="utf-8") as file:
                json.dump({**held, "lost": document.lost}, file)
        with open(path, "wb") as file:
            file.write(document.text.encode("utf-8"))


main(sys.argv[1:])

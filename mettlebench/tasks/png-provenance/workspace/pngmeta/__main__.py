"""python3 -m pngmeta (show FILE… | strip [--repair] FILE…)"""

import sys

from pngmeta.chunks import Damaged, read_chunks, write_chunks
from pngmeta.strip import stripped
from pngmeta.text import texts


def main(arguments):
    if not arguments or arguments[0] not in ("show", "strip"):
        raise SystemExit(__doc__)
    repair = "--repair" in arguments
    failed = False
    for name in arguments[1:]:
        if name == "--repair":
            continue
        with open(name, "rb") as file:
            data = file.read()
        try:
            chunks = read_chunks(data, lenient=repair)
        except Damaged as damage:
            print(f"{name}: {damage}", file=sys.stderr)
            failed = True
            continue
        if arguments[0] == "show":
            for keyword, text in texts(chunks).items():
                print(f"{name}: {keyword}: {text}")
        else:
            with open(name, "wb") as file:
                file.write(write_chunks(stripped(chunks)))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

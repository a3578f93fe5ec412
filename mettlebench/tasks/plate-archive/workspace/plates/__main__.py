"""python3 -m plates standardise FILE…"""

import sys
from pathlib import Path

from plates import Malformed, read, write


def main(arguments):
    if arguments[:1] != ["standardise"]:
        raise SystemExit(__doc__)
    failed = False
    for name in arguments[1:]:
        try:
            plate = read(Path(name).read_bytes())
        except Malformed as malformed:
            print(f"{name}: malformed ({malformed.reason})", file=sys.stderr)
            failed = True
        else:
            Path(name).write_bytes(write(plate))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Checks rates/convert.py in a directory: `rates_check.py [--only PART] DIRECTORY`."""

import importlib.util
import sys

CONVERT = {(100, 1_500_000): 150, (333, 500_000): 167, (1, 400_000): 0, (-333, 500_000): -167, (250, 1_002_000): 251}
FEE = {0: 0, 1: 50, 10_000: 50, 10_001: 120, 100_000: 120, -100_000: 120, 100_001: 300}


def main(arguments):
    only = None
    if arguments[0] == "--only":
        only, arguments = arguments[1], arguments[2:]
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location("convert", f"{arguments[0]}/rates/convert.py")
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except Exception:
        print("broken")
        return 2
    parts = {
        "convert": lambda: all(module.convert(*given) == want for given, want in CONVERT.items()),
        "fee": lambda: all(module.fee(given) == want for given, want in FEE.items()),
    }
    for name, right in parts.items():
        if only in (None, name):
            if not right():
                print(f"{name} wrong")
                return 1
            print(f"{name} ok")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

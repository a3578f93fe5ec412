"""Turns service files into JSON; see docs/conf-format.md."""

import json
import os
import re
import sys


class Malformed(ValueError):
    """A line that is none of the format; the text begins with its number."""


def scalar(text):
    """A value of the file as Python has it."""
    if re.fullmatch(r'"(?:[^"\\]|\\["\\])*"', text):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def parse(text):
    """Section name to an object of its keys."""
    sections, current = {}, None
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or line[0] in "#;":
            continue
        if stripped[0] == "[" and stripped[-1] == "]":
            current = sections[stripped[1:-1].strip()] = {}
            continue
        key, equals, value = stripped.partition("=")
        if current is None or not equals or not key.strip():
            raise Malformed(f"{number}: neither a section nor a key and its value")
        current[key.strip()] = scalar(value.strip())
    return sections


def main(arguments):
    in_place = arguments[:1] == ["-i"]
    for path in arguments[in_place:]:
        with open(path, encoding="utf-8") as file:
            made = json.dumps(parse(file.read()), indent=2, ensure_ascii=False) + "\n"
        if in_place:
            with open(os.path.splitext(path)[0] + ".json", "w", encoding="utf-8") as file:
                file.write(made)
            os.unlink(path)
        else:
            sys.stdout.write(made)


if __name__ == "__main__":
    main(sys.argv[1:])

"""python3 -m pofile merge [--prune] CATALOGUE TEMPLATE"""

import re
import sys
from dataclasses import replace
from pathlib import Path

from pofile import parse, write

FORMS = 2


def alike(text):
    """A text without what may differ between two versions of it."""
    return re.sub(r"\s+", "", text).rstrip(".!?:").lower()


def merged(catalogue, template, prune):
    old = {(entry.context, entry.msgid): entry for entry in catalogue if not entry.obsolete and entry.msgid}
    wanted = {(entry.context, entry.msgid) for entry in template}
    used = set()
    result = [entry for entry in catalogue if not entry.msgid]
    for new in template:
        if new.msgid:
            result.append(taken_over(new, old, wanted, used, prune))
    if not prune:
        for entry in catalogue:
            key = (entry.context, entry.msgid)
            if entry.obsolete or (entry.msgid and key not in wanted and key not in used):
                result.append(replace(entry, obsolete=True))
    return result


def taken_over(new, old, wanted, used, prune):
    key = (new.context, new.msgid)
    found, fuzzy = old.get(key), False
    if found:
        fuzzy = "fuzzy" in found.flags or (found.plural is None) != (new.plural is None)
    else:
        for other, entry in old.items():
            if other not in wanted and other[0] == new.context and alike(other[1]) == alike(new.msgid):
                found, fuzzy = entry, True
                used.add(other)
                break
    count = 1 if new.plural is None else FORMS
    strings = list(found.strings[:count]) if found else []
    if found and (found.plural is None) != (new.plural is None):
        strings = strings[:1]
    strings += [""] * (count - len(strings))
    flags = (["fuzzy"] if fuzzy else []) + [flag for flag in new.flags if flag != "fuzzy"]
    comments = list(found.comments) if found and not prune else []
    return replace(new, strings=strings, flags=flags, comments=comments)


def main(arguments):
    prune = "--prune" in arguments
    arguments = [each for each in arguments if each != "--prune"]
    if len(arguments) != 3 or arguments[0] != "merge":
        raise SystemExit(__doc__)
    path = Path(arguments[1])
    catalogue = parse(path.read_text(encoding="utf-8"))
    template = parse(Path(arguments[2]).read_text(encoding="utf-8"))
    path.write_text(write(merged(catalogue, template, prune)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Takes catalogues apart."""

import re

from pofile.entry import Entry

KEYWORD = re.compile(r'(msgctxt|msgid_plural|msgid|msgstr)(\[\d\])? "(.*)"')


def parse(text):
    """The entries of a catalogue, in order."""
    entries = []
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.splitlines() if line.strip()]
        if lines:
            entries.append(parse_entry(lines))
    return entries


def parse_entry(lines):
    entry = Entry()
    for line in lines:
        if line.startswith("#~ "):
            entry.obsolete = True
            line = line[3:]
        if line.startswith("#. "):
            entry.extracted.append(line[3:])
        elif line.startswith("#:"):
            entry.references += line[2:].split()
        elif line.startswith("#,"):
            entry.flags += [flag.strip() for flag in line[2:].split(",")]
        elif line.startswith("#"):
            entry.comments.append(line[2:])
        else:
            found = KEYWORD.match(line)
            if found:
                take(entry, found.group(1), unescape(found.group(3)))
    return entry


def take(entry, keyword, text):
    if keyword == "msgctxt":
        entry.context = text
    elif keyword == "msgid":
        entry.msgid = text
    elif keyword == "msgid_plural":
        entry.plural = text
    else:
        entry.strings = [text]


def unescape(text):
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t"}.get(found.group(1), found.group(1)), text)

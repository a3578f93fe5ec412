"""Puts catalogues together."""


def write(entries):
    return "\n".join(write_entry(entry) for entry in entries)


def write_entry(entry):
    lines = ["# " + comment for comment in entry.comments]
    lines += ["#. " + comment for comment in entry.extracted]
    if entry.references:
        lines.append("#: " + " ".join(entry.references))
    if entry.flags:
        lines.append("#, " + ", ".join(entry.flags))
    body = []
    if entry.context is not None:
        body.append("msgctxt " + quoted(entry.context))
    body.append("msgid " + quoted(entry.msgid))
    if entry.plural is None:
        body.append("msgstr " + quoted(entry.strings[0] if entry.strings else ""))
    else:
        body.append("msgid_plural " + quoted(entry.plural))
        body += [f"msgstr[{n}] " + quoted(text) for n, text in enumerate(entry.strings)]
    lines += ["#~ " + line if entry.obsolete else line for line in body]
    return "".join(line + "\n" for line in lines)


def quoted(text):
    return '"' + text.replace("\n", "\\n").replace("\t", "\\t") + '"'

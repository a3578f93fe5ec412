"""Builds two catalogues and a template that has moved on, and knows what becomes of them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from mettlebench.craft import Craft

LANGUAGES = ("de", "fr")
FORMS = 2
VERBS = ("Book", "Cancel", "Move", "Confirm", "Print", "Share", "Pay", "Check")
NOUNS = (
    "the room",
    "your stay",
    "this ticket",
    "an invoice",
    "all seats",
    'the "quiet" car',
    "C:\\Temp",
    "a\tlist",
)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry of a catalogue, in our own terms."""

    msgid: str
    context: str | None = None
    plural: str | None = None
    strings: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()
    extracted: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    obsolete: bool = False
    breaks: int = field(default=0, compare=False)

    @property
    def key(self) -> tuple[str | None, str]:
        return self.context, self.msgid

    @property
    def state(self) -> str:
        if self.obsolete:
            return "obsolete"
        if "fuzzy" in self.flags:
            return "fuzzy"
        return "translated" if self.strings and all(self.strings) else "untranslated"


def quoted(text: str) -> str:
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
        text = text.replace(plain, escaped)
    return f'"{text}"'


def text_lines(keyword: str, text: str, pieces: int) -> list[str]:
    """A text on one line, or on several where it is cut into pieces."""
    if pieces < 2 or len(text) < pieces:
        return [f"{keyword} {quoted(text)}"]
    size = -(-len(text) // pieces)
    return [f'{keyword} ""', *(quoted(text[n : n + size]) for n in range(0, len(text), size))]


def written(entries: list[Entry], *, broken: bool = False) -> str:
    """A catalogue's text: in the library's form, or with texts broken over lines."""
    blocks = []
    for each in entries:
        pieces = each.breaks if broken else 0
        lines = [f"# {comment}" if comment or not broken else "#" for comment in each.comments]
        lines += [f"#. {comment}" for comment in each.extracted]
        lines += ["#: " + " ".join(each.references)] if each.references else []
        lines += ["#, " + ", ".join(each.flags)] if each.flags else []
        body = text_lines("msgctxt", each.context, 0) if each.context is not None else []
        body += text_lines("msgid", each.msgid, pieces)
        if each.plural is None:
            body += text_lines("msgstr", each.strings[0] if each.strings else "", pieces)
        else:
            body += text_lines("msgid_plural", each.plural, pieces)
            for number, string in enumerate(each.strings or ("",) * FORMS):
                body += text_lines(f"msgstr[{number}]", string, pieces)
        lines += [f"#~ {line}" if each.obsolete else line for line in body]
        blocks.append("".join(line + "\n" for line in lines))
    return "\n".join(blocks)


def sources(chance: random.Random, count: int) -> list[Entry]:
    """Entries of a template."""
    found: dict[tuple[str | None, str], Entry] = {}
    while len(found) < count:
        text = f"{chance.choice(VERBS)} {chance.choice(NOUNS)}"
        text += chance.choice(("", "", ".", " now", "\nThank you", " for {name}"))
        plural = f"{text} ({{n}} times)" if chance.random() < 0.2 else None
        entry = Entry(
            msgid=text,
            context=chance.choice((None, None, None, "menu", "mail")),
            plural=plural,
            strings=("",) * (FORMS if plural else 1),
            extracted=("shown on the first page",) if chance.random() < 0.2 else (),
            references=(f"src/{chance.choice(('cart', 'mail', 'seat'))}.py:{chance.randrange(9, 900)}",),
            flags=("python-brace-format",) if "{" in text + str(plural) else (),
            breaks=chance.choice((0, 0, 2, 3)),
        )
        found[entry.key] = entry
    return list(found.values())


def translated(chance: random.Random, entry: Entry, language: str) -> Entry:
    word = {"de": "Übersetzung", "fr": "traduction à faire"}[language]
    strings = tuple(f'{word} {n}: "{entry.msgid}"' for n in range(len(entry.strings)))
    luck = chance.random()
    if luck < 0.12:
        strings = (*strings[:-1], "")
    comments: tuple[str, ...] = ("sagt man so?", "", f"siehe {chance.randrange(99)}") if luck > 0.9 else ()
    comments = ("vu avec Inès",) if 0.75 < luck < 0.8 else comments
    flags = ("fuzzy", *entry.flags) if 0.2 < luck < 0.3 else entry.flags
    return replace(entry, strings=strings, comments=comments, flags=flags)


def story() -> tuple[list[Entry], dict[str, list[Entry]]]:
    """The new template, and the catalogues as they are handed out."""
    chance = random.Random(28)
    pool = sources(chance, 62)
    old, fresh, gone = pool[:44], pool[44:54], pool[54:]
    template = []
    for number, entry in enumerate(old):
        entry = replace(entry, references=(f"src/new.py:{number}",))
        if number % 11 == 3:
            entry = replace(entry, msgid=entry.msgid.upper() + "!")
        if number % 13 == 5:
            plural = None if entry.plural else entry.msgid + " (many)"
            entry = replace(entry, plural=plural, strings=("",) * (FORMS if plural else 1))
        if number % 9 != 7:
            template.append(entry)
    template = [header("template"), *template[20:], *fresh, *template[:20]]
    catalogues = {}
    for language in LANGUAGES:
        entries = [translated(chance, entry, language) for entry in old]
        lost = [
            replace(translated(chance, entry, language), obsolete=True, flags=(), references=(), extracted=())
            for entry in gone
        ]
        catalogues[language] = [header(language), *entries, *lost]
    return template, catalogues


def header(language: str) -> Entry:
    text = f"Language: {language}\nContent-Type: text/plain; charset=UTF-8\n"
    return Entry(msgid="", strings=(text,), comments=("Booking app", "the translators, thank you"), breaks=2)


def alike(text: str) -> str:
    return "".join(text.split()).rstrip(".!?:").lower()


def merged(catalogue: list[Entry], template: list[Entry]) -> list[Entry]:
    """A catalogue merged and pruned, by the rules."""
    live = {entry.key: entry for entry in catalogue if not entry.obsolete and entry.msgid}
    wanted = {entry.key for entry in template}
    result = [entry for entry in catalogue if not entry.msgid]
    for new in template:
        if not new.msgid:
            continue
        found = live.get(new.key)
        fuzzy = found is not None and ("fuzzy" in found.flags or bool(found.plural) != bool(new.plural))
        if found is None:
            near = [
                e
                for k, e in live.items()
                if k not in wanted and k[0] == new.context and alike(k[1]) == alike(new.msgid)
            ]
            found, fuzzy = (near[0], True) if near else (None, False)
        count = FORMS if new.plural else 1
        strings = found.strings if found else ()
        if found and bool(found.plural) != bool(new.plural):
            strings = strings[:1]
        strings = (*strings, *[""] * count)[:count]
        flags = (("fuzzy",) if fuzzy else ()) + new.flags
        result.append(replace(new, strings=strings, flags=flags, comments=()))
    return result


TEMPLATE, BEFORE = story()
AFTER = {language: merged(entries, TEMPLATE) for language, entries in BEFORE.items()}


def build(craft: Craft) -> None:
    craft.write("po/messages.pot", written(TEMPLATE, broken=True))
    for language, entries in BEFORE.items():
        craft.write(f"po/{language}.po", written(entries, broken=True))

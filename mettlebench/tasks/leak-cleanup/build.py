"""Builds the repository: a main branch, two lines that nothing refers to, and tokens in many places."""

from __future__ import annotations

import random
import re
import string
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mettlebench.craft import Craft

REMOVED = b"***REMOVED***"
TOKEN = re.compile(rb"(?<![A-Za-z0-9_])ck_(?:live|test)_[A-Za-z0-9]{24}(?![A-Za-z0-9_])")
PLACEHOLDER = b"ck_live_" + b"X" * 24
PEOPLE = {
    "mira": "Mira Lang <mira@courier.example>",
    "jonas": "Jonas Ek <jonas@courier.example>",
    "dana": "Dana Weber <dana@courier.example>",
}
LOST = {"rescue/jonas": "jonas", "rescue/mira": "mira"}
FIRST = 1752570000


@dataclass(frozen=True, kw_only=True)
class Made:
    """One commit: on which line, by whom, and the one file it writes."""

    mark: int
    parent: int
    branch: str
    who: str
    at: int
    message: bytes
    path: str
    data: bytes


def token(chance: random.Random, kind: str = "live") -> bytes:
    return f"ck_{kind}_{''.join(chance.choices(string.ascii_letters + string.digits, k=24))}".encode()


def history(seed: int = 41) -> list[Made]:
    chance = random.Random(seed)
    tokens = [token(chance, chance.choice(("live", "test"))) for _ in range(6)]
    leaks = {
        5: b"[api]\nkey = %s\n",
        9: "schlüssel = '%s' # für Köln\n".encode("latin-1"),
        16: b"export T=%s;\n",
    }
    leaks |= {27: b"curl -H 'token: %s' \\\n", 31: b"\xff\xfe\x00%s\x00"}
    made: list[Made] = []
    tips = {"main": 0}
    for mark in range(1, 37):
        branch = (
            "rescue/mira" if mark in (13, 17, 20, 27) else "rescue/jonas" if mark in (22, 24, 31) else "main"
        )
        base = {"rescue/mira": 12, "rescue/jonas": 21}.get(branch, 0)
        parent = tips.get(branch, base)
        who = LOST.get(branch) or chance.choice(list(PEOPLE))
        topic = chance.choice(("route", "stamp", "parcel", "depot", "retry"))
        message = f"{topic}: {chance.choice(('weigh', 'sort', 'print', 'queue'))} again ({mark})\n".encode()
        data = f"# {topic}\nlimit = {chance.randrange(900)}\n".encode() * chance.randrange(1, 4)
        path = f"courier/{topic}.py"
        if mark in leaks:
            path, data = f"conf/env{mark}.ini", leaks[mark] % tokens[sorted(leaks).index(mark)]
        if mark == 19:
            message += b"\nTried with " + tokens[5] + b", works.\n"
        if mark == 23:
            path, data = (
                "docs/setup.md",
                b"Put your token here: " + PLACEHOLDER + b"\nnot_ck_live_" + b"A" * 24 + b"\n",
            )
        if mark == 26:
            path, data = "conf/env5.ini", b"[api]\nkey = from the vault\n"
        made.append(
            Made(
                mark=mark,
                parent=parent,
                branch=branch,
                who=who,
                at=FIRST + 90000 * mark,
                message=message,
                path=path,
                data=data,
            )
        )
        tips[branch] = mark
    return made


def stream(made: list[Made], *, scrubbed: bool = False) -> bytes:
    """The history as `git fast-import` reads it, with or without its tokens."""

    def clean(data: bytes) -> bytes:
        return scrub(data) if scrubbed else data

    parts = []
    for each in made:
        who = PEOPLE[each.who]
        head = f"commit refs/heads/{each.branch}\nmark :{each.mark}\nauthor {who} {each.at} +0100\n"
        head += f"committer {who} {each.at + 30} +0100\n"
        parts += [head.encode(), block(clean(each.message))]
        parts.append(f"from :{each.parent}\n".encode() if each.parent else b"")
        parts += [f"M 100644 inline {each.path}\n".encode(), block(clean(each.data))]
    tag = f"tag v1.0\nfrom :{18}\ntagger {PEOPLE['dana']} {FIRST + 2000000} +0100\n"
    secret = next(found for each in made if each.mark == 5 for found in TOKEN.findall(each.data))
    parts += [tag.encode(), block(clean(b"courier 1.0\n\nsmoke test used " + secret + b"\n"))]
    return b"".join(parts)


def block(data: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(data), data)


def scrub(data: bytes) -> bytes:
    return TOKEN.sub(lambda found: found.group() if found.group() == PLACEHOLDER else REMOVED, data)


def build(craft: Craft) -> None:
    repository = craft.repository("repo")
    repository.fast_import(stream(history()))
    for branch in LOST:
        repository.git("update-ref", "-d", f"refs/heads/{branch}")
    repository.check_out("main")


@dataclass(frozen=True, kw_only=True)
class State:
    """What can be read of a history: ids by mark, and by mark all that a commit says, ids aside."""

    ids: dict[int, str]
    facts: dict[int, tuple[str, ...]]
    tag: str
    findings: list[tuple[str, str, str]]


FACTS = "%H%x00%at%x00%T%x00%an <%ae>%x00%cn <%ce>%x00%ct%x00%B%x01"


def read_log(said: str) -> dict[int, list[str]]:
    """Commits by mark, from a log in the form of FACTS."""
    found: dict[int, list[str]] = {}
    for record in said.split("\x01"):
        fields = record.strip("\n").split("\0")
        if len(fields) == 7 and fields[1].isdigit():
            found[(int(fields[1]) - FIRST) // 90000] = fields
    return found


def objects(batch: bytes) -> Iterator[tuple[str, str, bytes]]:
    """Name, kind and content of each object, from what `git cat-file --batch` prints."""
    place = 0
    while place < len(batch):
        end = batch.index(b"\n", place)
        name, kind, size = batch[place:end].decode().split()
        yield name, kind, batch[end + 1 : end + 1 + int(size)]
        place = end + 2 + int(size)


def state_of(made: list[Made], *, scrubbed: bool = False) -> State:
    """Make a history somewhere, and read it."""
    with tempfile.TemporaryDirectory() as place:
        repository = Craft(Path(place)).repository("repo")
        repository.fast_import(stream(made, scrubbed=scrubbed))
        log = read_log(repository.git("log", "--branches", f"--format={FACTS}"))
        findings = {
            (name, kind, each.decode())
            for name, kind, data in objects(repository.raw("cat-file", "--batch", "--batch-all-objects"))
            for each in TOKEN.findall(data)
            if kind != "tree" and each != PLACEHOLDER
        }
        tag = repository.git("cat-file", "tag", "v1.0")
    return State(
        ids={mark: fields[0] for mark, fields in log.items()},
        facts={mark: (*fields[1:6], fields[6].strip("\n")) for mark, fields in log.items()},
        tag=tag,
        findings=sorted(findings),
    )

"""Builds the repository: two branches by four people under nine addresses, and eight release tags."""

from __future__ import annotations

import hashlib
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mettlebench.craft import Craft, Repository

DOMAIN = "meterd.example"
PEOPLE = {
    "ada": ("Ada Novak", f"ada.novak@{DOMAIN}"),
    "bela": ("Bela Kern", f"bela.kern@{DOMAIN}"),
    "chiara": ("Chiara Rossi", f"chiara.rossi@{DOMAIN}"),
    "deniz": ("Deniz Aydin", f"deniz.aydin@{DOMAIN}"),
}
APPROVED = {email: name for name, email in PEOPLE.values()}
FIRST = 1748772000  # 1 June 2025, 10:00 UTC
DAY = 86400
BUILD_HOST_CHANGES = 1760572800  # 16 October 2025, 00:00 UTC
MANAGER_CHANGES = 1756684800  # 1 September 2025, 00:00 UTC
MODULES = ("frame", "crc", "registers", "poller", "store", "export", "clock", "retry")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One commit to be made: mark of the parent, branch, who under which identity, when, and what."""

    mark: int
    parent: int
    branch: str
    name: str
    email: str
    at: int
    message: str
    path: str
    data: str


@dataclass(frozen=True, kw_only=True)
class Release:
    """One annotated tag to be made."""

    name: str
    mark: int
    email: str
    at: int
    artifact: str


def person(email: str, at: int) -> str:
    """The approved address of whoever used an address at a time."""
    if email in APPROVED:
        return email
    if email == "root@build-17":
        return PEOPLE["chiara" if at >= BUILD_HOST_CHANGES else "deniz"][1]
    if email == f"ci@{DOMAIN}":
        return PEOPLE["bela" if at >= MANAGER_CHANGES else "ada"][1]
    who = {"ada@localhost": "ada", "belak77@post.example": "bela", "c.rossi@old-employer.example": "chiara"}
    return PEOPLE[who[email]][1]


def entries() -> list[Entry]:
    chance = random.Random(17)
    wrong = [
        ("ada", "ada@localhost"),
        ("Bela K.", "belak77@post.example"),
        ("root", "root@build-17"),
        ("release", f"ci@{DOMAIN}"),
        ("C. Rossi", "c.rossi@old-employer.example"),
        ("root", "root@build-17"),
    ]
    made: list[Entry] = []
    for mark in range(1, 45):
        on_release = mark in (27, 29, 32, 35, 38, 41)
        branch = "release/1.x" if on_release else "main"
        before = [each.mark for each in made if each.branch == branch]
        parent = before[-1] if before else (24 if on_release else 0)
        name, email = chance.choice(wrong) if chance.random() < 0.55 else chance.choice(list(PEOPLE.values()))
        module = chance.choice(MODULES)
        data = "".join(f"{module}_{n} = {chance.randrange(10**6)}\n" for n in range(chance.randrange(4, 12)))
        message = (
            f"{module}: {chance.choice(('limit', 'log', 'check', 'widen', 'rename'))} {module}_{mark % 4}\n"
        )
        if mark % 5 == 0:
            message += f"\nThe field test of week {mark} showed why: meters of series {mark % 3} need it.\n"
        at = FIRST + mark * 4 * DAY + chance.randrange(9 * 3600)
        made.append(
            Entry(
                mark=mark,
                parent=parent,
                branch=branch,
                name=name,
                email=email,
                at=at,
                message=message,
                path=f"meterd/{module}.py",
                data=data,
            )
        )
    return made


def releases() -> list[Release]:
    at = {each.mark: each.at for each in entries()}
    marks = {
        "v0.8.0": 6,
        "v0.9.0": 12,
        "v1.0.0": 18,
        "v1.1.0": 24,
        "v1.1.1": 29,
        "v1.1.2": 38,
        "v1.2.0": 40,
        "v2.0.0": 44,
    }
    return [
        Release(
            name=name,
            mark=mark,
            email=f"ci@{DOMAIN}" if number % 3 else "root@build-17",
            at=at[mark] + 3600,
            artifact=hashlib.sha256(f"meterd-{name}".encode()).hexdigest(),
        )
        for number, (name, mark) in enumerate(marks.items())
    ]


def stream() -> bytes:
    """The history as `git fast-import` reads it."""
    parts: list[str] = []
    for each in entries():
        parts.append(f"commit refs/heads/{each.branch}\nmark :{each.mark}\n")
        who = f"{each.name} <{each.email}>"
        parts.append(f"author {who} {each.at} +0000\ncommitter {who} {each.at + 60} +0000\n")
        parts.append(_data(each.message) + (f"from :{each.parent}\n" if each.parent else ""))
        parts.append(f"M 100644 inline {each.path}\n{_data(each.data)}")
    for tag in releases():
        parts.append(f"tag {tag.name}\nfrom :{tag.mark}\ntagger release <{tag.email}> {tag.at} +0000\n")
        parts.append(_data(tag_message(tag)))
    return "".join(parts).encode()


def tag_message(tag: Release) -> str:
    return f"meterd {tag.name[1:]}\n\nbuilt on build-17\nartifact: {tag.artifact}\n"


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"


def build(craft: Craft) -> None:
    repository = craft.repository("repo")
    repository.configure("user.name", "Ada Novak")
    repository.configure("user.email", PEOPLE["ada"][1])
    repository.fast_import(stream())
    repository.check_out("main")


@dataclass(frozen=True, kw_only=True)
class Original:
    """What the repository was like when it was handed out."""

    commits: dict[int, str]
    trees: dict[int, str]
    tags: dict[str, str]
    texts: dict[str, str]


def original() -> Original:
    """Build the repository once more, and read it."""
    with tempfile.TemporaryDirectory() as place:
        repository = Craft(Path(place)).repository("repo")
        repository.fast_import(stream())
        commits: dict[int, str] = {}
        trees: dict[int, str] = {}
        by_time = {each.at: each.mark for each in entries()}
        for line in repository.git("log", "--branches", "--format=%H %T %at").splitlines():
            commit, tree, at = line.split()
            commits[by_time[int(at)]] = commit
            trees[by_time[int(at)]] = tree
        tags = {tag.name: repository.git("rev-parse", f"refs/tags/{tag.name}") for tag in releases()}
        texts = {tag.name: _text(repository, tag.name) for tag in releases()}
    return Original(commits=commits, trees=trees, tags=tags, texts=texts)


def _text(repository: Repository, name: str) -> str:
    return repository.git("cat-file", "tag", name)

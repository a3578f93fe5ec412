"""Builds a repository with a submodule in which there is work that is nowhere else."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from mettlebench.craft import EPOCH, Craft, Repository

WHO = "Dana Weber <dana@example.org>"
URL = "https://git.example/tools/parse.git"
FIRST = EPOCH - 200 * 86400

INIT = '''"""Reads lines of fields."""

from parse.quotes import unquoted

__all__ = ["fields", "unquoted"]


def fields(line):
    """The fields of a line."""
    return [unquoted(field.strip()) for field in line.split(";")]
'''
QUOTES = '''"""Quoted fields."""


def unquoted(field):
    """A field without its quotes."""
    return field[1:-1] if len(field) > 1 and field[0] == field[-1] == '"' else field
'''
QUOTES_LOCAL = QUOTES.replace(" == '\"' else field", ' and field[0] in "\'\\"" else field')
UNITS = '''"""Numbers with units."""

FACTORS = {"k": 1000, "M": 1000000}


def number(field):
    """The number in a field such as `3k`."""
    return int(field[:-1]) * FACTORS[field[-1]] if field[-1] in FACTORS else int(field)
'''
TABLES = "".join(f"{n}\t{n * n % 97}\n" for n in range(40))
REPORT = '''"""Sums up a sample."""


def summary(fields, number, text):
    """Name and total of each line."""
    rows = [fields(line) for line in text.splitlines() if line]
    return [f"{name} {sum(number(value) for value in values)}" for name, *values in rows]
'''
PATHS = '''"""Where the modules are that are kept beside this program."""

import configparser


def modules():
    """Their folders."""
    config = configparser.ConfigParser()
    with open(".gitmodules", encoding="utf-8") as file:
        config.read_string("".join(line.strip() + "\\n" for line in file))
    return [config[section]["path"] for section in config.sections()]
'''
VERSION = '''"""Prints the version of the parser: its last tag, and the number of commits since."""

import subprocess

describe = ["git", "-C", "libs/parse", "describe", "--tags", "--long"]
tag, count, _ = subprocess.run(describe, capture_output=True, text=True, check=True).stdout.rsplit("-", 2)
print(f"{tag.removeprefix('v')}+{count}")
'''
CHECK = '''"""Checks a working tree: the parser's version, its data, and a report on a sample."""

import subprocess
import sys

sys.path.insert(0, ".")
version = subprocess.run([sys.executable, "-B", "scripts/version.py"], capture_output=True, text=True)
if version.returncode:
    sys.exit("the parser has no version")
print("parse", version.stdout.strip())

from app import paths, report

sys.path[:0] = paths.modules()
from parse import fields
from parse.units import number

with open("libs/parse/parse/tables.tab", encoding="utf-8") as file:
    print("tables", len(file.readlines()))
for line in report.summary(fields, number, "'north';3k;20\\n\\"south\\";1M;5\\n"):
    print(line)
'''
IGNORE = "*.tab\n__pycache__/\n"
SAID = "parse 1.2+{}\ntables 40\nnorth 3020\nsouth 1000005\n"


def block(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"


def commit(ref: str, mark: int, parents: tuple[str, ...], message: str, files: dict[str, str]) -> str:
    """One commit as `git fast-import` reads it; a file `160000 …` is a link to a commit."""
    at = FIRST + mark * 86400
    lines = [
        f"commit {ref}\nmark :{mark}\nauthor {WHO} {at} +0000\ncommitter {WHO} {at} +0000\n{block(message)}"
    ]
    lines += [f"{'merge' if number else 'from'} {parent}\n" for number, parent in enumerate(parents)]
    for name, text in files.items():
        lines.append(
            f"M {text} {name}\n" if text.startswith("160000 ") else f"M 100644 inline {name}\n{block(text)}"
        )
    return "".join(lines)


def module_stream() -> bytes:
    parts = [
        commit("refs/heads/main", 1, (), "Begin\n", {"parse/__init__.py": INIT, "parse/quotes.py": QUOTES}),
        commit(
            "refs/heads/main",
            2,
            (":1",),
            "Ignore what editors leave\n",
            {".gitignore": "*.tmp\n__pycache__/\n"},
        ),
        commit("refs/heads/main", 3, (":2",), "Add the tables\n", {"parse/tables.tab": TABLES}),
    ]
    for mark in range(4, 18):
        text = f"{mark}. entry\n" * (mark % 5 + 1)
        parts.append(
            commit("refs/heads/main", mark, (f":{mark - 1}",), f"Note {mark} in the log\n", {"LOG": text})
        )
    parts += [
        commit(
            "refs/heads/fix/empty-fields",
            18,
            (":9",),
            "Keep empty fields\n",
            {"parse/empty.py": "KEEP = True\n"},
        ),
        commit(
            "refs/heads/fix/empty-fields",
            19,
            (":18",),
            "Test empty fields\n",
            {"test_empty.py": "assert True\n"},
        ),
        commit("refs/heads/old-reader", 20, (":5",), "Try another reader\n", {"reader.py": "# slow\n"}),
        commit("refs/kept/head", 21, (":17",), "Read single quotes, half done\n", {"NOTES": "see Tuesday\n"}),
        commit(
            "refs/kept/head", 22, (":21",), "Say who asked for it\n", {"NOTES": "see Tuesday\nfor Imre\n"}
        ),
        commit("refs/kept/index", 23, (":22",), "index on (no branch)\n", {}),
        commit(
            "refs/kept/stash", 24, (":22", ":23"), "On (no branch): tabs\n", {"parse/tabs.py": "TABS = 4\n"}
        ),
        "reset refs/tags/v1.0\nfrom :6\n\n",
        f"tag v1.2\nfrom :14\ntagger {WHO} {FIRST} +0000\n{block('parse 1.2')}",
    ]
    return "".join(parts).encode()


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the two repositories are like when they are handed out."""

    refs: dict[str, tuple[str, str]]
    objects: dict[str, str]
    head: str
    history: list[str]
    tree: str


def craft_repositories(craft: Craft) -> Facts:
    module = craft.repository("repo/libs/parse")
    module.fast_import(module_stream())
    head, stash = module.git("rev-parse", "refs/kept/head", "refs/kept/stash").split()
    parent = craft.repository("repo")
    files = {"app/__init__.py": "", "app/paths.py": PATHS, "app/report.py": REPORT, ".gitignore": IGNORE}
    files |= {"scripts/check.py": CHECK, "scripts/version.py": VERSION}
    modules = f'[submodule "libs/parse"]\n\tpath = libs/parse\n\turl = {URL}\n'
    parts = [commit("refs/heads/main", 1, (), "Begin\n", files)]
    moves = ("v1.0", "main~8", "main~2", "main")
    commits = module.git("rev-parse", *(f"{ref}^{{commit}}" for ref in moves)).split()
    for number, (ref, commit_id) in enumerate(zip(moves, commits, strict=True), start=2):
        link = f"160000 {commit_id}"
        held = {"libs/parse": link, ".gitmodules": modules, "CHANGES": f"{number}. parser moved\n"}
        parts.append(
            commit("refs/heads/main", number, (f":{number - 1}",), f"Move the parser to {ref}\n", held)
        )
    parent.fast_import("".join(parts).encode())
    parent.check_out("main")
    parent.configure("submodule.libs/parse.url", URL)
    parent.configure("submodule.libs/parse.active", "true")
    _settle(module, head, stash)
    tree = _worktree(module)
    # a tag's own fields, then those of the commit it leads to
    fields = "%(refname)%09%(objectname)%09%(contents:subject)%09%(*objectname)%09%(*contents:subject)"
    objects, refs = {"HEAD": head}, {"HEAD": (head, module.git("log", "-1", "--format=%s", head))}
    for line in module.git("for-each-ref", f"--format={fields}").splitlines():
        name, object_id, subject, commit_id, commit_subject = (*line.split("\t"), "", "")[:5]
        objects[name] = object_id
        refs[name] = (commit_id, commit_subject) if commit_id else (object_id, subject)
    return Facts(
        refs=dict(sorted(refs.items())),
        objects=objects,
        head=head,
        history=parent.git("rev-list", "--first-parent", "main").split(),
        tree=tree,
    )


def _settle(module: Repository, head: str, stash: str) -> None:
    """Leave the submodule as colleagues left it: detached, with a stash and changes."""
    module.git("update-ref", "--no-deref", "HEAD", head)
    module.git("stash", "store", "-m", "On (no branch): tabs", stash)
    for name in ("head", "index", "stash"):
        module.git("update-ref", "-d", f"refs/kept/{name}")
    module.configure("remote.origin.url", URL)
    module.git("read-tree", "HEAD")
    module.git("checkout-index", "--all")


def _worktree(module: Repository) -> str:
    """Make the local changes, and give the tree that they are when committed."""
    (module.root / "parse/quotes.py").write_text(QUOTES_LOCAL)
    (module.root / "parse/units.py").write_text(UNITS)
    (module.root / "scratch.tmp").write_text("nothing\n")
    module.git("add", "--all")
    tree = module.git("write-tree")
    module.finish()
    return tree


def build(craft: Craft) -> None:
    craft_repositories(craft)
    repo = craft.root / "repo"
    (repo / ".git/modules/libs").mkdir(parents=True)
    (repo / "libs/parse/.git").rename(repo / ".git/modules/libs/parse")
    (repo / "libs/parse/.git").write_text("gitdir: ../../.git/modules/libs/parse\n")
    config = repo / ".git/modules/libs/parse/config"
    config.write_text(config.read_text() + "[core]\n\tworktree = ../../../../libs/parse\n")


def original() -> Facts:
    """Build the repositories once more, and read them."""
    with tempfile.TemporaryDirectory() as place:
        return craft_repositories(Craft(Path(place)))

"""Builds a repository whose feature branch went wrong twice on its way, and was broken in between."""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mettlebench.craft import EPOCH, Craft

WHO = "Dana Weber <dana@example.org>"
COMMITS = 33
BROKEN = (6, 15, 16, 27)
WRONG_CONVERT, WRONG_FEE = 12, 21

CONVERT = '''def convert(cents, ppm):
    """Cents of another currency at a rate in millionths."""
    sign = -1 if cents < 0 else 1
    return sign * ((abs(cents) * ppm + 500_000) // 1_000_000)
'''
CONVERT_WRONG = '''def convert(cents, ppm):
    """Cents of another currency at a rate in millionths."""
    return int(cents * ppm / 1_000_000)
'''
FEE = '''def fee(cents):
    """What a conversion costs."""
    size = abs(cents)
    return next((cost for limit, cost in LIMITS if size <= limit), HIGHEST)
'''
FEE_WRONG = '''def fee(cents):
    """What a conversion costs."""
    return next((cost for limit, cost in LIMITS if abs(cents) < limit), HIGHEST)
'''
HEAD = '''"""Exchange rates, as of step {}."""

LIMITS = ((0, 0), (10_000, 50), (100_000, 120))
HIGHEST = 300
'''
SUBJECTS = (
    "Tidy names",
    "Try another table",
    "Note a question",
    "Shorten",
    "Write down a rate",
    "Move a comment",
)


def module(step: int) -> str:
    convert = CONVERT_WRONG if step >= WRONG_CONVERT else CONVERT
    fee = FEE_WRONG if step >= WRONG_FEE else FEE
    text = "\n\n".join((HEAD.format(step), convert, fee))
    return text.replace("return next(", "return next((", 1) if step in BROKEN else text


def block(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"


def stream() -> bytes:
    chance, parts = random.Random(33), []
    for mark in range(1, COMMITS + 7):
        step = mark - 6
        branch = "feature/rates" if step > 0 else "main"
        at = EPOCH - (120 - mark) * 86400 + chance.randrange(20000)
        message = f"{chance.choice(SUBJECTS)} ({step})\n" if step > 0 else f"Ledger, part {mark}\n"
        files = (
            {"rates/convert.py": module(step)} if step > 0 else {f"ledger/part_{mark}.py": f"PART = {mark}\n"}
        )
        if step > 0 and step % 4 == 1:
            files["rates/customers.txt"] = f"Customer {chance.randrange(1000)} asked for step {step}\n"
        parts.append(
            f"commit refs/heads/{branch}\nmark :{mark}\nauthor {WHO} {at} +0000\ncommitter {WHO} {at} +0000\n"
        )
        parts.append(block(message) + (f"from :{mark - 1}\n" if mark > 1 else ""))
        parts += [f"M 100644 inline {name}\n{block(text)}" for name, text in files.items()]
    return "".join(parts).encode()


def build(craft: Craft) -> None:
    repository = craft.repository("repo")
    repository.fast_import(stream())
    repository.check_out("main")


@dataclass(frozen=True, kw_only=True)
class Original:
    """What the repository was when it was handed out; commits of the branch oldest first, objects its own."""

    base: str
    commits: list[str]
    objects: list[str]


def original() -> Original:
    """Build the repository once more, and read it."""
    with tempfile.TemporaryDirectory() as place:
        repository = Craft(Path(place)).repository("repo")
        repository.fast_import(stream())
        branch = "main..feature/rates"
        return Original(
            base=repository.git("rev-parse", "main"),
            commits=repository.git("rev-list", "--reverse", branch).split(),
            objects=repository.git("rev-list", "--objects", "--no-object-names", branch).split(),
        )


def verdict(step: int, part: str) -> str:
    if step in BROKEN:
        return "broken"
    return "wrong" if step >= (WRONG_CONVERT if part == "convert" else WRONG_FEE) else "ok"

"""The commands of the demo's scripted agent: real work, in bash, python3 with its sqlite3 module, and git."""

from __future__ import annotations

from dataclasses import dataclass

BASH = "bash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One answer of the agent: what it says, the tool it calls and, for bash, the command."""

    say: str
    tool: str = BASH
    command: str = ""


SUBMIT = Move(
    say="Everything on my list is done and committed. I submit.",
    command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
)

_AMOUNTS = '''cat > quayside/amounts.py <<'EOF'
"""Amounts as the clerks enter them (docs/schema.md tells the rules)."""

import re

_SIGNS = {"€": "EUR", "eur": "EUR", "£": "GBP", "gbp": "GBP"}


def parse(entry):
    """Cents and currency of an entry; ValueError names one that cannot be read."""
    text, currency = entry.casefold().strip(), "EUR"
    for sign, code in _SIGNS.items():
        if sign in text:
            text, currency = text.replace(sign, ""), code
    quantity, _, price = text.rpartition("x")
    digits = price.replace(" ", "").removesuffix(",-")
    found = re.fullmatch(r"([0-9][0-9.,]*?)(?:[.,]([0-9]{1,2}))?", digits)
    if not found:
        raise ValueError(f"no amount: {entry!r}")
    whole, fraction = re.sub("[.,]", "", found[1]), (found[2] or "").ljust(2, "0")
    return int(whole + fraction) * int(quantity or 1), currency

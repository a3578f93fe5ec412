"""Turns what a subagent did into rules for the next time (paper, Algorithm 2), proposed to a person.

Two questions to the model: is there a rule in this, and which related calls would it hold for. What it
answers is checked as any rules file is; what does not hold is dropped and said.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentrewind.backup.assistant.model import Model, first_object, opening
from agentrewind.backup.rules.loading import USER_RULES, RulesError, parse_rules
from agentrewind.backup.values import Target, ToolCall
from agentrewind.durable import make_directory, write_file
from agentrewind.errors import UsageError

PROPOSALS = ("backup", "proposals")
_ID = re.compile(r"[0-9a-z-]{1,80}")

_FORM = """\
A rule is a JSON object: "id" (family.name), "program" (list of base names of programs) or "tool" (list \
of tool names), optionally "subcommand" (list of first operands), "any_option", "no_option", "values" \
(options that take the next word), "kind", "tier" ("pair"), "parameters", "captures", "verify", \
"restore" (a phrase each).
Kinds: "files" with parameters {"paths": "operands"} for files that the operands name; "command" with \
parameters {"state": "what it is", "capture": [words], "restore": [words]} for state that one program \
prints and another takes back on standard input; in words "{1}", "{2}" stand for operands, "{operands}" \
for all, "{file}" for a file with what was captured."""

_REFLECT = """\
A subagent preserved state before a tool call that no rule understood. Is there a rule that would do the\
 same for such calls without a model, safely, whatever their operands? Prefer none to one that could \
miss state.

%s

Answer with one JSON object: {"decision": "add", "update" or "none", "rule": {...}, "reason": "a \
sentence"}"""

_GENERALISE = """\
This rule preserves state before a call. Name rules of the same kind for closely related programs or \
subcommands whose capture and restore you are certain of; an empty list is a good answer.

%s

Answer with one JSON object: {"rules": [{...}]}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Rules that wait for a person, as the text of a rules file."""

    id: str
    text: str


def reflect(call: ToolCall, target: Target, model: Model, *, known: Sequence[str]) -> str:
    """The text of the proposed rules, empty where the model sees none that hold. Raises CaptureError."""
    facts = {
        "tool": call.name,
        "arguments": call.arguments,
        "what was preserved": target.name,
        "commands": target.detail,
        "rules that exist": list(known),
    }
    told = _ask(model, _REFLECT % _FORM, facts)
    if told.get("decision") not in ("add", "update") or not isinstance(told.get("rule"), dict):
        return ""
    first = _checked([told["rule"]])
    if not first:
        return ""
    more = _ask(model, _GENERALISE % _FORM, {"rule": told["rule"]}).get("rules")
    return first + _checked(
        [each for each in more if isinstance(each, dict)] if isinstance(more, list) else []
    )


def propose(home: Path, text: str, name: str) -> Proposal:
    """Keep proposed rules until a person accepts or rejects them."""
    place = home.joinpath(*PROPOSALS)
    make_directory(place)
    write_file(place / f"{name}.toml", text.encode())
    return Proposal(id=name, text=text)


def proposals(home: Path) -> list[Proposal]:
    """What waits, oldest first."""
    place = home.joinpath(*PROPOSALS)
    if not place.is_dir():
        return []
    return [Proposal(id=path.stem, text=path.read_text("utf-8")) for path in sorted(place.glob("*.toml"))]


def difference(home: Path, proposal: Proposal) -> str:
    """What accepting would change in the user's rules, as a unified diff. Raises RulesError."""
    path = home.joinpath(*USER_RULES)
    before = path.read_text("utf-8") if path.exists() else ""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        _joined(before, proposal.text).splitlines(keepends=True),
        fromfile=str(path),
        tofile=f"{path} with {proposal.id}",
    )
    return "".join(lines)


def accept(home: Path, name: str) -> Path:
    """Put the proposed rules into the user's file. Raises UsageError, or RulesError and changes nothing."""
    proposal = find(home, name)
    path = home.joinpath(*USER_RULES)
    before = path.read_text("utf-8") if path.exists() else ""
    after = _joined(before, proposal.text)
    parse_rules(after, str(path))
    make_directory(path.parent)
    write_file(path, after.encode())
    reject(home, name)
    return path


def reject(home: Path, name: str) -> None:
    """Forget a proposal."""
    find(home, name)
    home.joinpath(*PROPOSALS, f"{name}.toml").unlink()


def find(home: Path, name: str) -> Proposal:
    """The proposal of this id. Raises UsageError."""
    waiting = {each.id: each for each in proposals(home)}
    if not _ID.fullmatch(name) or name not in waiting:
        known = ", ".join(waiting) or "none"
        raise UsageError(f"no proposal is called {name!r}; waiting: {known}")
    return waiting[name]


def _joined(before: str, text: str) -> str:
    """The user's file with the rules in it; a rule of the same id gives way."""
    ids = {rule.id for rule in parse_rules(text, "proposal")}
    blocks = re.split(r"(?m)^(?=\[\[rule\]\])", before)
    kept = [block for block in blocks if not any(f'id = "{each}"' in block for each in ids)]
    whole = "".join(kept).rstrip()
    return f"{whole}\n\n{text}" if whole else text


def _ask(model: Model, prompt: str, facts: dict[str, Any]) -> dict[str, Any]:
    return first_object(model.ask(opening(prompt, facts)).text) or {}


def _checked(rules: Sequence[dict[str, Any]]) -> str:
    """The rules as text, each alone checked as a file would be; what does not hold is left out."""
    found = []
    for rule in rules:
        text = _as_toml({**rule, "untried": True})
        try:
            parse_rules(text, "proposal")
        except RulesError:
            continue
        found.append(text)
    return "\n".join(found)


def _as_toml(rule: dict[str, Any]) -> str:
    lines = [f"{name} = {_value(value)}" for name, value in rule.items() if value is not None]
    return "\n".join(["[[rule]]", *lines, ""])


def _value(value: Any) -> str:
    match value:
        case dict():
            inner = ", ".join(f"{json.dumps(name)} = {_value(each)}" for name, each in value.items())
            return f"{{ {inner} }}"
        case list():
            return f"[{', '.join(map(_value, value))}]"
        case _:
            # what JSON writes of texts, numbers and truth values is TOML as well
            return json.dumps(value)

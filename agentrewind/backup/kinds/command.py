"""State that a program prints and takes back: rules give the programs to run.

Parameters of a rule: `capture`, a list of words, or a list of such lists; `restore`, the same, empty where
only a person can restore; `state` names what it is. In a word `{1}`, `{2}`, … stand for the call's operands,
without what follows an option of the rule's `values`, `{operands}` alone for all of them, `{option:-n}` alone
for that option with its value, `{file}` for a file with what was captured; without `{file}` the program gets
it on standard input.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

from agentrewind.backup.kind import Captured, CaptureError, Outcome, Parameters, Store, UnclearError
from agentrewind.backup.programs import run
from agentrewind.backup.rules.matching import split_options
from agentrewind.backup.values import Command, Context, Target
from agentrewind.errors import DamagedError
from agentrewind.records import Json


class CommandOutput:
    """The kind `command`."""

    def targets(self, command: Command, parameters: Parameters, context: Context) -> tuple[Target, ...]:
        """One target with the programs' words filled in."""
        if command.host is not None or command.open_ended or not all(word.literal for word in command.argv):
            raise UnclearError("its arguments are only known when it runs")
        values = parameters.get("values")
        taking = [str(each) for each in values] if isinstance(values, list) else []
        _, operands = split_options(command.argv[1:], taking)
        words = [word.text for word in operands]
        texts = [word.text for word in command.argv[1:]]
        capture = [_filled(each, words, texts) for each in _programs(parameters.get("capture"))]
        restore = [_filled(each, words, texts) for each in _programs(parameters.get("restore"))]
        if not capture:
            raise UnclearError("the rule does not say how to capture the state")
        name = _fill(str(parameters.get("state") or command.name), words)
        cwd = str(command.cwd or context.cwd)
        detail: dict[str, Json] = {"capture": _json(capture), "restore": _json(restore), "cwd": cwd}
        return (Target(kind="command", name=name, detail=detail),)

    def capture(self, target: Target, store: Store, context: Context) -> Captured:
        """What the programs print, one payload each. Empty output is no capture."""
        blobs: list[str] = []
        size = 0
        for words in _words(target, "capture"):
            output = _run(words, target, context)
            if not output.strip():
                raise CaptureError(f"{words[0]} printed nothing, so there is nothing to restore from")
            name = store.put(output)
            if store.get(name) != output:
                raise CaptureError(f"what {words[0]} printed cannot be read back")
            blobs.append(name)
            size += len(output)
        outputs: list[Json] = [*blobs]
        return Captured(manifest={"outputs": outputs}, blobs=tuple(blobs), bytes=size)

    def fingerprint(self, target: Target, context: Context) -> str:
        """Digest of what the programs print; "" where they fail, as for something that is gone."""
        found = sha256()
        for words in _words(target, "capture"):
            try:
                found.update(_run(words, target, context))
            except CaptureError:
                return ""
        return found.hexdigest()

    def restore(self, target: Target, captured: Captured, store: Store, context: Context) -> Outcome:
        """Run the restoring programs, then capture again and compare."""
        outputs = captured.manifest.get("outputs")
        if not isinstance(outputs, list):
            raise DamagedError("the backup's list of outputs cannot be read")
        data = [store.get(str(name)) for name in outputs]
        programs = _words(target, "restore")
        if not programs:
            return Outcome(restored=(), missing=(f"{target.name}: only a person can put it back",))
        for index, words in enumerate(programs):
            file = store.scratch() / "state"
            file.write_bytes(data[min(index, len(data) - 1)])
            if any("{file}" in word for word in words):
                _run([word.replace("{file}", str(file)) for word in words], target, context)
            else:
                _run(words, target, context, stdin=file.read_bytes())
            file.unlink()
        now = [_run(words, target, context) for words in _words(target, "capture")]
        return Outcome(restored=(target.name,), missing=() if now == data else (target.name,))

    def plan(self, target: Target, captured: Captured, context: Context) -> tuple[str, ...]:
        """The programs that would run."""
        return tuple(" ".join(words) for words in _words(target, "restore"))

    def describe(self, target: Target) -> tuple[str, str]:
        """What is captured and how it comes back."""
        shown = [" ".join(words) for words in _words(target, "restore")]
        captures = ", ".join(" ".join(words) for words in _words(target, "capture"))
        return f"what {captures} prints", "; ".join(shown) or "by a person, from what was printed"


def _run(words: Sequence[str], target: Target, context: Context, stdin: bytes | None = None) -> bytes:
    return run(words, context, stdin=stdin, cwd=context.cwd / str(target.detail["cwd"]))


def _programs(value: Json) -> list[list[str]]:
    if not isinstance(value, list) or not value:
        return []
    nested = value if isinstance(value[0], list) else [value]
    return [[str(word) for word in each] for each in nested if isinstance(each, list)]


def _filled(words: Sequence[str], operands: Sequence[str], texts: Sequence[str]) -> list[str]:
    found: list[str] = []
    for word in words:
        option = re.fullmatch(r"\{option:(.+)\}", word)
        if word == "{operands}":
            found += operands
        elif option:
            found += _option(option[1], texts)
        else:
            found.append(_fill(word, operands))
    return found


def _fill(word: str, operands: Sequence[str]) -> str:
    def operand(match: re.Match[str]) -> str:
        index = int(match[1]) - 1
        if index >= len(operands):
            raise UnclearError(f"the call has no operand {match[1]}, which its rule needs")
        return operands[index]

    return re.sub(r"\{(\d+)\}", operand, word)


def _option(name: str, texts: Sequence[str]) -> list[str]:
    for index, text in enumerate(texts):
        if text == name and index + 1 < len(texts):
            return [name, texts[index + 1]]
        if text.startswith(f"{name}="):
            return [text]
    return []


def _words(target: Target, key: str) -> list[list[str]]:
    return _programs(target.detail[key])


def _json(programs: list[list[str]]) -> list[Json]:
    return [list(words) for words in programs]

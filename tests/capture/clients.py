"""What tests of several clients share: one answer, one conversation, and how live answers are compared."""

from __future__ import annotations

from typing import Any

from harness_adapters.scripted import ScriptedAnswer

KEY = "sk-test-1234567890"
MESSAGES: list[Any] = [{"role": "system", "content": "You work."}, {"role": "user", "content": "go"}]
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
TOOLS: Any = [{"type": "function", "function": {"name": "bash", "parameters": SCHEMA}}]
FLAT_TOOLS: Any = [{"type": "function", "name": "bash", "parameters": SCHEMA, "strict": False}]
ANSWER = ScriptedAnswer(
    content="Let me look at it; it may take a while é.",
    tool_calls=[("bash", {"command": "ls"}), ("bash", {"command": "pwd -P and more and more"})],
)


def without_ids(seen: Any) -> str:
    """The scripted model counts its answers and calls, so two live answers differ in that."""
    text = repr(seen)
    for number in range(1, 9):
        for before, after in (("call_", ""), ("_", "'"), ("-", "'")):
            text = text.replace(f"{before}{number}{after}", f"{before}n{after}")
    return text

"""The demo's scripted agent, driven over real HTTP with real bash.

The loop below stands in for an agent and for the rewind layer: it keeps a copy of the workspace before each
answer and cuts its own conversation. What it proves is that the script does its part; that the real layer and
a real agent do theirs is proved elsewhere.
"""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from agentrewind.errors import UsageError
from harness_adapters.demo import MODEL_NAME, policy, task_text
from harness_adapters.demo.forms import form_of
from harness_adapters.demo.policy import LESSON, MEMORY, find_checkpoint, next_move
from harness_adapters.demo.steps import APPLY, CAREFUL, GROUNDWORK, HASTY, REPAIRS, SUBMIT
from harness_adapters.scripted import NoAnswerError, ScriptedModel

Run = subprocess.CompletedProcess[str]
Message = dict[str, Any]


def tool(name: str) -> Message:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


BASH = (tool("bash"),)
ALL = (*BASH, tool("backtrack_candidates"), tool("backtrack_commit"))


@dataclass
class Loop:
    """A stand-in for agent and layer; `rewinds_context` and `refuse` make it behave as the variants do."""

    workspace: Path
    copies: Path
    bash: Callable[[Path, str], Run]
    check: Callable[[Path], Run]
    tools: Sequence[Message] = ALL
    rewinds_context: bool = True
    rewinds_files: bool = True
    refuse: bool = False
    messages: list[Message] = field(default_factory=lambda: [{"role": "user", "content": task_text()}])
    checkpoints: list[int] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)
    rewinds: int = 0

    def run(self, base_url: str) -> None:
        """Go on until a submission is accepted or five are rejected."""
        while self.verdicts[-1:] != ["accepted"] and len(self.verdicts) < 5:
            self._save()
            answer = ask(base_url, self.messages, self.tools)
            self.messages.append(answer)
            (call,) = answer["tool_calls"]
            arguments = json.loads(call["function"]["arguments"])
            match call["function"]["name"]:
                case "bash":
                    self._bash(call["id"], arguments["command"])
                case "backtrack_candidates":
                    self._answer(call["id"], self._candidates())
                case _:
                    self._rewind(call["id"], arguments)

    def _save(self) -> None:
        copy = self.copies / f"{self.rewinds}-{len(self.messages)}"
        shutil.copytree(self.workspace, copy, symlinks=True)
        self.checkpoints.append(len(self.messages))

    def _answer(self, call_id: str, content: object) -> None:
        self.messages.append({"role": "tool", "tool_call_id": call_id, "content": json.dumps(content)})

    def _bash(self, call_id: str, command: str) -> None:
        done = self.bash(self.workspace, command)
        self.ran.append(command)
        self._answer(call_id, {"returncode": done.returncode, "output": done.stdout})
        if command == SUBMIT.command:
            verdict = self.check(self.workspace).stdout
            self.verdicts.append(verdict.splitlines()[0].removeprefix("criterion: ").partition(":")[0])
            self.messages.append({"role": "user", "content": f"Not accepted.\n{verdict}"})

    def _candidates(self) -> object:
        entries = []
        for step, at in enumerate(self.checkpoints[:-1]):
            answer, result = self.messages[at : at + 2]
            (call,) = answer["tool_calls"]
            command = {"name": call["function"]["name"], "arguments": call["function"]["arguments"][:90]}
            command["exit_code"] = json.loads(result["content"])["returncode"]
            entries.append({"record_uid": f"rec_{at:06}", "step": step, "summary": answer["content"][:80],
                            "tools": [command], "files": [], "memories": [], "external": []})  # fmt: skip
        return {"candidates": entries[::-1]}

    def _rewind(self, call_id: str, arguments: Mapping[str, str]) -> None:
        if self.refuse:
            self._answer(call_id, {"error": "no rewinds are left"})
            return
        at = int(arguments["record_uid"].removeprefix("rec_"))
        if self.rewinds_files:
            shutil.rmtree(self.workspace)
            shutil.copytree(self.copies / f"{self.rewinds}-{at}", self.workspace, symlinks=True)
        if self.rewinds_context:
            self.messages[at:] = [{"role": "system", "content": f"Notes:\n1. {arguments['memory_summary']}"}]
        else:
            self._answer(call_id, {"rewound": arguments["record_uid"]})
        self.checkpoints = []
        self.rewinds += 1


def ask(base_url: str, messages: Sequence[Message], tools: Sequence[Message]) -> Message:
    address = urlsplit(base_url)
    body = {"model": MODEL_NAME, "messages": list(messages), "tools": list(tools)}
    connection = http.client.HTTPConnection(address.hostname or "", address.port or 0, timeout=10)
    connection.request("POST", f"{address.path}/chat/completions", json.dumps(body))
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    assert response.status == 200, answer
    message: Message = answer["choices"][0]["message"]
    return message


@pytest.fixture
def loop(
    workspace: Path, tmp_path: Path, bash: Callable[[Path, str], Run], check: Callable[[Path], Run]
) -> Loop:
    return Loop(workspace=workspace, copies=tmp_path / "copies", bash=bash, check=check)


def play(loop: Loop, strategy: str) -> ScriptedModel:
    with ScriptedModel(policy(strategy), models=[MODEL_NAME]) as model:
        loop.run(model.base_url)
    return model


def commands(*plans: Sequence[Any]) -> list[str]:
    return [move.command for plan in plans for move in plan if move.command]


def test_rewind_keeps_the_good_work_and_succeeds(loop: Loop) -> None:
    model = play(loop, "rewind")
    assert loop.verdicts == ["archive", "accepted"]
    assert loop.rewinds == 1
    assert loop.ran == commands(GROUNDWORK, HASTY, CAREFUL)
    assert 8 <= len(GROUNDWORK) <= 10
    assert not any(request.refusal for request in model.requests)
    told = [request.told(LESSON) for request in model.requests]
    assert told == [False] * (len(told) - len(CAREFUL)) + [True] * len(CAREFUL)


def test_continue_is_rejected_five_times_on_one_criterion(loop: Loop) -> None:
    play(loop, "continue")
    assert loop.verdicts == ["archive"] * 5
    assert loop.rewinds == 0
    assert loop.ran == commands(GROUNDWORK, HASTY, REPAIRS)


def test_without_the_tools_the_rewinding_agent_continues(loop: Loop) -> None:
    loop.tools = BASH
    play(loop, "rewind")
    assert loop.verdicts == ["archive"] * 5


def test_after_a_refused_rewind_it_continues(loop: Loop) -> None:
    loop.refuse = True
    play(loop, "rewind")
    assert loop.verdicts == ["archive"] * 5


def test_files_alone_rewound_are_enough_for_it(loop: Loop) -> None:
    loop.rewinds_context = False
    play(loop, "rewind")
    assert loop.verdicts == ["archive", "accepted"]


def test_context_alone_rewound_is_not(loop: Loop) -> None:
    loop.rewinds_files = False
    play(loop, "rewind")
    assert loop.verdicts == ["archive"] * 5


@pytest.mark.parametrize("strategy", ["rewind", "continue"])
def test_every_answer_follows_from_the_conversation_alone(strategy: str, loop: Loop) -> None:
    model = play(loop, strategy)
    again, decide = policy(strategy), policy(strategy)
    for request in reversed(model.requests):
        assert decide(request) == again(request) == again(request)


def test_commands_name_the_moves() -> None:
    """Two moves with one command could not be told apart in a conversation; only the submission repeats."""
    for plan in [(*GROUNDWORK, *HASTY, *REPAIRS), (*GROUNDWORK, *CAREFUL, *REPAIRS)]:
        single = [move.command for move in plan if move is not SUBMIT]
        assert len(set(single)) == len(single)
    assert [move for move in (*GROUNDWORK, *HASTY) if APPLY.command.split(" &&")[0] in move.command] == [
        APPLY
    ]


def entry(record_uid: str, command: str, name: str = "bash") -> Message:
    arguments = json.dumps({"command": command})
    return {"record_uid": record_uid, "tools": [{"name": name, "arguments": arguments, "exit_code": 0}]}


def test_the_checkpoint_is_the_first_that_leads_to_the_migration() -> None:
    entries = [
        entry("rec_000009", "ls"),
        entry("rec_000007", APPLY.command),
        entry("rec_000005", APPLY.command),
        entry("rec_000003", "python3 migrations/002_amounts.py --dry-run data/orders.db"),
        {"record_uid": "rec_000001", "tools": []},
    ]
    assert find_checkpoint(json.dumps({"candidates": entries})) == "rec_000005"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"error": "no"}', "cannot be read"),
        ('{"candidates": [3]}', "cannot be read"),
        ('{"candidates": []}', "none of 0 candidates"),
    ],
)
def test_candidates_that_do_not_help_are_named(answer: str, says: str) -> None:
    with pytest.raises(NoAnswerError, match=says):
        find_checkpoint(answer)


def test_the_script_ends_and_says_so() -> None:
    with ScriptedModel(policy("continue")) as model:
        (request,) = _asked(model)
    calls = form_of(request).calls(request)
    assert next_move(calls, back=False, may_rewind=False) is None
    with pytest.raises(NoAnswerError, match="ends here"):
        policy("continue")(request)


def _asked(model: ScriptedModel) -> tuple[Any, ...]:
    """A request in which every move of the continuing agent was made already."""
    messages: list[Message] = [{"role": "user", "content": "go"}]
    for number, command in enumerate(commands(GROUNDWORK, HASTY, REPAIRS)):
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": "{}"})
    with pytest.raises(AssertionError, match="ends here"):
        ask(model.base_url, messages, BASH)
    return model.requests


def test_an_unknown_strategy_is_named() -> None:
    with pytest.raises(UsageError, match="'hope'; known: rewind, continue"):
        policy("hope")


def test_the_note_tells_the_way_and_the_task_does_not_hold_it() -> None:
    assert LESSON in MEMORY
    assert LESSON not in task_text()
    assert MODEL_NAME.startswith("scripted")

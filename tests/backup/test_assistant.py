"""The part of backups that asks a model, with a scripted one over HTTP: honest, lying, lost, unreadable."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agentrewind.backup.assistant import exploring, reflection
from agentrewind.backup.assistant.covering import ModelCovers
from agentrewind.backup.assistant.experiences import experiences_for
from agentrewind.backup.assistant.model import LitellmModel
from agentrewind.backup.assistant.subagent import Budget, Subagent
from agentrewind.backup.entries import Entry, State
from agentrewind.backup.entry_lines import as_external
from agentrewind.backup.kind import CaptureError
from agentrewind.backup.masking import Masking
from agentrewind.backup.policy import BackupPolicy
from agentrewind.backup.rules.loading import load_rules, parse_rules
from agentrewind.backup.values import Decision, Target, Tier, ToolCall
from agentrewind.clock import SystemClock
from agentrewind.errors import UsageError
from harness_adapters.scripted import ScriptedAnswer, ScriptedModel, ScriptedRequest, Step, from_steps
from tests.backup.bench import Bench

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")

CHANGES = ScriptedAnswer(content='{"read_only": false, "reason": "a script"}')
READS = ScriptedAnswer(content='```json\n{"read_only": true, "reason": "it prints"}\n```')
DONE = {
    "outcome": "can be saved",
    "state": "pages of the wiki",
    "save": 'tar -C "{out}" -cpf "$BACKUP_DIR/wiki.tar" wiki',
    "verify": 'tar -C "{out}" -df "$BACKUP_DIR/wiki.tar"',
    "observe": 'cd "{out}/wiki" && sha256sum *',
    "restore": 'rm -rf "{out}/wiki" && tar -C "{out}" -xpf "$BACKUP_DIR/wiki.tar"',
}


def shell(command: str) -> ScriptedAnswer:
    return ScriptedAnswer(tool_calls=[("shell", {"command": command})])


def finish(**told: Any) -> ScriptedAnswer:
    return ScriptedAnswer(tool_calls=[("finish", told)])


@dataclass
class Stage:
    """A bench with a wiki outside the workspace, a script that empties it, and a scripted model."""

    bench: Bench
    serve: Callable[[Sequence[Step]], ScriptedModel]

    def run(
        self,
        *steps: Step,
        check: ScriptedAnswer = CHANGES,
        policy: BackupPolicy | None = None,
        more: str = "",
    ) -> Any:
        """The hook around `bash clean.sh`; returns what it guarded."""
        server = self.serve([check, *steps])
        backups = replace(
            self.bench.backups,
            policy=policy or BackupPolicy(),
            covers=ModelCovers(
                policy=policy or BackupPolicy(), model=LitellmModel("openai/scripted"), clock=SystemClock()
            ),
        )
        call = ToolCall(name="bash", arguments={"command": f"bash '{self.bench.out}/clean.sh'{more}"})
        guarded = backups.before(call, "rec_000002")
        self.requests = server.requests
        if not guarded.blocked:
            self.bench.run(f"bash '{self.bench.out}/clean.sh'")
            backups.after(guarded)
        return guarded

    @property
    def done(self) -> dict[str, str]:
        return {name: text.replace("{out}", str(self.bench.out)) for name, text in DONE.items()}

    @property
    def look(self) -> ScriptedAnswer:
        return shell(f"cat '{self.bench.out}/clean.sh'")

    @property
    def pages(self) -> dict[str, str]:
        wiki = self.bench.out / "wiki"
        return {path.name: path.read_text() for path in sorted(wiki.iterdir())} if wiki.exists() else {}


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    # litellm would look for newer prices on the network when it is imported
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    bench = Bench(base=tmp_path)
    (bench.out / "wiki").mkdir()
    for name in ("faq", "start"):
        (bench.out / "wiki" / name).write_text(f"the page {name}\n")
    (bench.out / "clean.sh").write_text('rm -rf "$OUT/wiki"\n')
    servers: list[ScriptedModel] = []

    def serve(steps: Sequence[Step]) -> ScriptedModel:
        conversations = [from_steps(steps[:1]), from_steps(steps[1:])]

        def policy(request: ScriptedRequest) -> ScriptedAnswer:
            return conversations["finish" in request.tool_names](request)

        server = ScriptedModel(policy)
        servers.append(server)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_BASE", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-scripted")
        return server

    yield Stage(bench, serve)
    for server in servers:
        server.close()


def test_what_a_script_destroys_comes_back(stage: Stage) -> None:
    before = stage.pages
    guarded = stage.run(stage.look, finish(**stage.done))
    assert stage.pages == {}

    [entry] = guarded.entries
    assert entry.tier is Tier.SUBAGENT
    assert entry.target.name == "pages of the wiki"
    [result] = stage.bench.take_back()

    assert result.state is State.RESTORED, result
    assert stage.pages == before


def test_the_subagent_sees_the_call_and_nothing_of_the_conversation(stage: Stage) -> None:
    stage.run(stage.look, finish(**stage.done))
    [check, first, second] = stage.requests
    shown = json.dumps(first.raw)
    assert "clean.sh" in shown
    assert [message["role"] for message in first.messages] == ["system", "user"]
    assert not check.tool_names
    # the script itself, which the first command printed
    assert "rm -rf" in json.dumps(second.raw["messages"][-1])


def test_no_credential_is_shown_to_the_model_and_the_entry_says_how_many(stage: Stage) -> None:
    (stage.bench.out / ".env").write_text("API_KEY=sk-in-a-file-123456\nHOST=wiki\n")
    print_file = shell(f"cat '{stage.bench.out}/.env'")
    guarded = stage.run(stage.look, print_file, print_file, finish(**stage.done), more=" --token t0psecret")
    asked = json.dumps([request.raw for request in stage.requests])
    assert "t0psecret" not in asked
    assert "in-a-file" not in asked
    assert "HOST=wiki" in asked
    assert "--token [redacted]" in asked
    [entry] = guarded.entries
    assert (entry.masked, as_external(entry)["masked"]) == (2, 2)
    log = (stage.bench.store.directory / "log.jsonl").read_bytes()
    assert b'"masked":2' in log
    assert b"t0psecret" not in log
    assert stage.bench.log.entry("last").masked == 2


@pytest.mark.parametrize(
    ("text", "shown", "count"),
    [
        ("psql --password $PGPASS", "psql --password $PGPASS", 0),
        ('curl -H "Authorization: Bearer ${TOKEN}" x', 'curl -H "Authorization: Bearer ${TOKEN}" x', 0),
        ("curl -u me:$PW x; curl -u me:pw12345 x", "curl -u me:$PW x; curl -u me:[redacted] x", 1),
        ("a://u:p1@h b://u:p1@h API_KEY=abc", "a://[redacted]@h b://[redacted]@h API_KEY=[redacted]", 2),
        ("SECRET=$(cat secret.txt)", "SECRET=$(cat secret.txt)", 0),
        ("ls -la", "ls -la", 0),
        (
            {"password": "two words", "n": ["--token abc"]},
            {"password": "[redacted]", "n": ["--token [redacted]"]},
            2,
        ),
        (["tool", "--token", "abc", "--user", "me"], ["tool", "--token", "[redacted]", "--user", "me"], 1),
        (["tool", "--token", "$T", 3, "--password"], ["tool", "--token", "$T", 3, "--password"], 0),
        ({"command": "login -p 'x'", "name": 1}, {"command": "login -p 'x'", "name": 1}, 0),
    ],
)
def test_what_is_masked_is_counted_once_and_names_of_variables_stay(
    text: Any, shown: Any, count: int
) -> None:
    masking = Masking()
    assert (masking.value(text), masking.value(text), masking.count) == (shown, shown, count)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"save": "true"}, "wrote nothing"),
        ({"save": 'touch "$BACKUP_DIR/pages"'}, "wrote nothing"),
        ({"save": "false"}, "saves the state failed"),
        ({"save": ""}, "no command to save"),
        ({"verify": ""}, "no command to verify"),
        ({"observe": ""}, "no command to observe"),
        ({"observe": "false"}, "observes the state fails"),
        ({"verify": "false"}, "verifies what was saved failed"),
        ({"verify": 'test -s "$BACKUP_DIR/other"'}, "verifies what was saved failed"),
        ({"verify": 'echo forged > "$BACKUP_DIR/more"'}, "verifies what was saved failed"),
        ({"restore": "", "instructions": ""}, "how the state is put back"),
        ({"outcome": "cannot be saved", "reason": "no access to the wiki"}, "no access"),
        ({"outcome": "perhaps"}, "cannot save"),
    ],
)
def test_what_is_not_saved_and_verified_blocks_the_call(
    told: dict[str, str], reason: str, stage: Stage
) -> None:
    guarded = stage.run(stage.look, finish(**{**stage.done, **told}))
    assert reason in guarded.blocked
    assert stage.pages
    [entry] = guarded.entries
    assert entry.state is State.BLOCKED


def test_it_can_write_nowhere_else(stage: Stage) -> None:
    out = stage.bench.out
    before = stage.pages
    guarded = stage.run(
        shell(f"rm -rf '{out}/wiki'; echo x > '{out}/planted'; bash '{out}/clean.sh'; echo tried"),
        stage.look,
        finish(**stage.done),
    )
    assert guarded.blocked == ""
    assert not (out / "planted").exists()
    [result] = stage.bench.take_back()
    assert result.state is State.RESTORED, result
    assert stage.pages == before


def test_a_budget_of_steps_time_and_bytes_is_kept(stage: Stage, tmp_path: Path) -> None:
    call = ToolCall(name="bash", arguments={"command": "bash clean.sh"})
    decision = Decision(read_only=False, tier=Tier.SUBAGENT, reason="a script")
    budgets = {
        "2 steps": (Budget(steps=2), shell("true")),
        "1 s": (Budget(seconds=1), shell("sleep 30")),
        "more than": (Budget(bytes=1 << 20), shell('head -c 3000000 /dev/zero > "$BACKUP_DIR/big"')),
    }
    for number, (reason, (budget, step)) in enumerate(budgets.items()):
        stage.serve([CHANGES, *[step] * 6])
        subagent = Subagent(model=LitellmModel("openai/scripted"), clock=SystemClock(), budget=budget)
        with pytest.raises(CaptureError, match=reason):
            subagent.find(call, decision, tmp_path / f"saved{number}", stage.bench.context)


def test_what_only_a_person_can_restore_is_told_as_such(stage: Stage) -> None:
    guarded = stage.run(
        stage.look, finish(**{**stage.done, "restore": "", "instructions": "upload the pages by hand"})
    )
    assert guarded.blocked == ""
    [result] = stage.bench.take_back()
    assert result.state is State.NOT_RESTORABLE
    assert "by hand" in " ".join(result.detail)


def test_a_restore_whose_check_fails_is_no_success(stage: Stage) -> None:
    stage.run(stage.look, finish(**{**stage.done, "restore": "true"}))
    [result] = stage.bench.take_back()
    assert result.state in (State.PARTLY, State.NOT_RESTORABLE)
    assert stage.pages == {}


def test_a_call_that_only_reads_needs_no_subagent(stage: Stage) -> None:
    guarded = stage.run(check=READS)
    assert guarded.entries == ()
    assert len(stage.requests) == 1


@pytest.mark.parametrize("answer", ["it is fine", '{"read_only": "yes"}', "{", '["read_only", true]', ""])
def test_a_check_that_cannot_be_read_is_no_permission(answer: str, stage: Stage) -> None:
    guarded = stage.run(stage.look, finish(**stage.done), check=ScriptedAnswer(content=answer))
    assert [entry.tier for entry in guarded.entries] == [Tier.SUBAGENT]


def test_a_provider_that_fails_blocks_the_call_or_lets_it_run_as_configured(stage: Stage) -> None:
    refused = ScriptedAnswer(status=400, body={"error": {"message": "no such model", "type": "invalid"}})
    blocked = stage.run(check=refused)
    assert "gave no answer" in blocked.blocked
    assert stage.pages


@pytest.mark.parametrize(
    ("answer", "kept"),
    [('{"backup": false, "reason": "made by a tool"}', False), ('{"backup": true}', True), ("dunno", True)],
)
def test_a_mode_or_the_users_own_words_decide(answer: str, kept: bool, stage: Stage) -> None:
    wish = "only pages that people wrote"
    policy = BackupPolicy(words=wish, model="openai/scripted")
    server = stage.serve([ScriptedAnswer(content=answer)])
    covers = ModelCovers(policy=policy, model=LitellmModel("openai/scripted"), clock=SystemClock())
    backups = replace(stage.bench.backups, policy=policy, covers=covers)
    call = ToolCall(name="bash", arguments={"command": f"rm '{stage.bench.out}/wiki/faq'"})

    guarded = backups.before(call, None)

    assert bool(guarded.entries) == kept
    assert wish in json.dumps(server.requests[0].raw)
    tagged: tuple[Entry, ...] = backups.before(replace(call, tagged=True), None).entries
    assert tagged, "what the agent marks is preserved in every mode"


RULE = {
    "id": "registry.set",
    "program": ["registry"],
    "subcommand": ["set"],
    "kind": "command",
    "tier": "pair",
    "parameters": {
        "state": "value {2}",
        "capture": ["registry", "get", "{2}"],
        "restore": ["registry", "load", "{2}"],
    },
    "captures": "the value",
    "restore": "written back",
}
MORE = {**RULE, "id": "registry.remove", "subcommand": ["remove"]}


@pytest.mark.parametrize(
    ("told", "ids"),
    [
        ({"decision": "none"}, []),
        ({"decision": "add", "rule": {**RULE, "kind": "magic"}}, []),
        ({"decision": "add", "rule": RULE}, ["registry.set", "registry.remove"]),
    ],
)
def test_what_a_subagent_did_becomes_a_proposed_rule(
    told: dict[str, Any], ids: list[str], stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([told, {"rules": [MORE, {"id": "not a rule"}]}])
    server = ScriptedModel(lambda request: ScriptedAnswer(content=json.dumps(next(answers))))
    try:
        monkeypatch.setenv("OPENAI_API_BASE", server.base_url)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-scripted")
        call = ToolCall(name="bash", arguments={"command": "registry set colour red"})
        target = Target(kind="saved", name="value colour", detail={"save": "registry get colour"})
        text = reflection.reflect(call, target, LitellmModel("openai/scripted"), known=[])
    finally:
        server.close()
    home = tmp_path / "home of rules"
    assert [rule.id for rule in parse_rules(text, "proposal")] == ids
    if not ids:
        return
    proposal = reflection.propose(home, text, "20260101")
    assert [rule.id for rule in load_rules(home).all if rule.id in ids] == []
    assert '+id = "registry.set"' in reflection.difference(home, proposal)
    (home / "backup" / "rules.toml").write_text(
        "# mine\n\n" + text.partition('[[rule]]\nid = "registry.remove"')[0]
    )

    path = reflection.accept(home, "20260101")

    assert path.read_text().startswith("# mine")
    in_force = {rule.id: rule for rule in load_rules(home).all}
    assert all(in_force[each].untried for each in ids)
    assert reflection.proposals(home) == []
    with pytest.raises(UsageError, match="20260101"):
        reflection.reject(home, "20260101")
    with pytest.raises(UsageError):
        reflection.accept(home, "../rules")


def test_a_tool_that_was_explored_is_known_to_the_subagent(stage: Stage, tmp_path: Path) -> None:
    stage.serve(
        [
            CHANGES,
            shell('echo state > "$BACKUP_DIR/file"; cat "$BACKUP_DIR/file"; touch /etc/planted'),
            finish(text="registry keeps values by name; save with `registry get`", words=["registry"]),
        ]
    )
    context = stage.bench.context
    found = exploring.explore(
        "registry", LitellmModel("openai/scripted"), directory=tmp_path / "trial", context=context
    )
    assert not Path("/etc/planted").exists()
    path = exploring.keep(tmp_path / "own", found)
    exploring.keep(tmp_path / "own", exploring.Experience(text='with "quotes"\nand lines', words=("x y",)))
    call = ToolCall(name="bash", arguments={"command": "registry set a b"})
    assert "registry get" in experiences_for(call, path)
    assert "quotes" not in experiences_for(call, path)


def test_shipped_experiences_are_found_by_tool_and_by_word() -> None:
    told = experiences_for(ToolCall(name="mcp__email__move", arguments={}))
    assert "INTERNALDATE" in told
    assert "PostgreSQL" in experiences_for(ToolCall(name="bash", arguments={"command": "psql -f x"}))
    assert "Browser" in experiences_for(ToolCall(name="mcp__playwright__browser_click", arguments={}))
    assert "PostgreSQL" not in told

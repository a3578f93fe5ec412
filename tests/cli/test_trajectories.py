"""Trajectories of the real mini-SWE-agent become runs that can be looked at, and claim nothing else."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrewind.cli import main
from agentrewind.clock import SystemClock
from agentrewind.display_story import story_of
from agentrewind.errors import AgentRewindError
from agentrewind.records import LlmNode
from agentrewind.run_store import RunStore
from agentrewind.trajectories import import_trajectory
from harness_adapters.demo.command import local_provider
from harness_adapters.scripted import ScriptedAnswer, ScriptedModel
from tests.cli.desk import Desk
from tests.view.served import Read, viewer

pytest.importorskip("minisweagent")

SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo the work"
SECRET = "sk-proj-0123456789abcdef0123456789"

IN_CALLS = (
    ScriptedAnswer("I look.", tool_calls=[("bash", {"command": "echo hello"})]),
    ScriptedAnswer("I forgot to call anything."),
    ScriptedAnswer("Two.", tool_calls=[("bash", {"command": "exit 3"}), ("bash", {"command": "echo two"})]),
    ScriptedAnswer("Done.", tool_calls=[("bash", {"command": SUBMIT})]),
)
IN_TEXT = tuple(
    ScriptedAnswer(f"{text}\n```mswea_bash_command\n{command}\n```" if command else text)
    for text, command in (("I look.", "echo hello"), ("No block.", ""), ("Two.", "exit 3"), ("Done.", SUBMIT))
)
OLD: dict[str, Any] = {
    "info": {
        "exit_status": "Submitted",
        "submission": "the work\n",
        "model_stats": {"instance_cost": 0.5, "api_calls": 3},
        "mini_version": "1.17.2",
        "config": {"model": {"model_name": "openai/old"}},
    },
    "messages": [
        {"role": "system", "content": "You are old."},
        {"role": "user", "content": "Do it."},
        {"role": "assistant", "content": "I look.\n```bash\necho hello\n```", "timestamp": 1_760_000_000.5},
        {"role": "user", "content": "<returncode>0</returncode>\n<output>\nhello\n</output>"},
        {"role": "assistant", "content": "I forgot the block."},
        {"role": "user", "content": "Give exactly one block."},
        {"role": "assistant", "content": f"Done.\n```bash\n{SUBMIT}\n```", "timestamp": 1_760_000_002.5},
        {"role": "user", "content": "the work\n"},
    ],
    "trajectory_format": "mini-swe-agent-1",
}


def saved(folder: Path, model_class: str, answers: Sequence[ScriptedAnswer]) -> Path:
    """What the package saves of an agent that gets these answers from the local server, one a request."""
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.environments.local import LocalEnvironment
    from minisweagent.models import get_model

    file = folder / f"{model_class}.traj.json"
    config = {
        "model_class": model_class,
        "model_kwargs": {"api_key": SECRET},
        "cost_tracking": "ignore_errors",
    }
    server = ScriptedModel(lambda request: answers[request.number - 1])
    with server, pytest.MonkeyPatch.context() as patch:
        for name, value in local_provider(server.base_url).items():
            patch.setenv(name, value)
        agent = DefaultAgent(
            get_model("openai/scripted", config=config),
            LocalEnvironment(cwd=str(folder)),
            system_template="You are a test.",
            instance_template="Do {{task}}.",
            output_path=file,
        )
        agent.run("it")
    return file


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A trajectory of each model class of the package, and one of its version 1."""
    folder = tmp_path_factory.mktemp("trajectories")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or importing it asks the network
        patch.setenv("MSWEA_SILENT_STARTUP", "1")
        found = {
            name: saved(folder, name, IN_TEXT if "text" in name else IN_CALLS)
            for name in ("litellm", "litellm_response", "litellm_textbased")
        }
    found["old"] = folder / "old.traj.json"
    found["old"].write_text(json.dumps(OLD))
    return found


@dataclass(frozen=True)
class Store:
    """A store that the command line is called on, in this process."""

    home: Path

    def call(self, *arguments: str) -> tuple[int, str]:
        """Exit code, and all that was printed."""
        told = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AGENTREWIND_HOME", str(self.home))
            streams = contextlib.redirect_stdout(told), contextlib.redirect_stderr(told)
            with streams[0], streams[1], pytest.raises(SystemExit) as ended:
                main(arguments)
        told.seek(0)
        return int(str(ended.value.code)), told.read()

    def json(self, *arguments: str) -> Any:
        code, told = self.call(*arguments, "--json")
        assert code == 0, told
        return json.loads(told)

    def contents(self) -> list[str]:
        return sorted(str(path.relative_to(self.home)) for path in self.home.rglob("*"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, files: dict[str, Path]) -> Store:
    """A store with all of them in it."""
    made = Store(tmp_path_factory.mktemp("store") / "home")
    for file in files.values():
        made.json("import", str(file))
    return made


def run_of(store: Store, file: Path) -> str:
    """The run that was made of a file."""
    found = [run for run in RunStore(store.home).runs() if file.name in str(run.timeline().header.options)]
    return found[0].run_id


def calls(store: Store, run: str) -> list[str]:
    """Every node on a line: what was answered, or the command with its exit code."""
    return [
        str(node["output"]["content"]).partition("\n")[0]
        if node["kind"] == "llm"
        else f"$ {node['input']['arguments']['command']}: {node['output']['value'].get('returncode')}"
        for node in store.json("log", run)["nodes"]
    ]


@pytest.mark.parametrize("name", ["litellm", "litellm_response"])
def test_answers_and_commands_stand_in_their_order(store: Store, files: dict[str, Path], name: str) -> None:
    run = run_of(store, files[name])
    assert calls(store, run) == [
        "I look.",
        "$ echo hello: 0",
        "I forgot to call anything.",
        "Two.",
        "$ exit 3: 3",
        "$ echo two: 0",
        "Done.",
        f"$ {SUBMIT}: 0",
    ]
    nodes = store.json("log", run)["nodes"]
    assert nodes[1]["output"]["value"]["output"] == "hello\n"
    assert nodes[-1]["output"]["value"] == {"returncode": 0, "submitted": "the work\n"}
    assert [node["parent"] for node in nodes if node["kind"] == "tool"] == [
        "rec_000001",
        "rec_000004",
        "rec_000004",
        "rec_000007",
    ]
    assert all("extra" not in each for each in nodes[6]["input"]["messages"])
    assert "not recorded), openai/scripted, no workspace" in store.call("list")[1]
    (row,) = (each for each in store.json("list") if each["run_id"] == run)
    assert (row["state"], row["nodes"], row["rewinds"], row["cost"]) == ("stopped", 8, 0, None)
    assert row["tokens_in"] > 0
    assert "not recorded" in row["agent"]


def test_commands_in_text_are_found_as_well(store: Store, files: dict[str, Path]) -> None:
    run = run_of(store, files["litellm_textbased"])
    assert calls(store, run) == [
        "I look.",
        "$ echo hello: 0",
        "No block.",
        "Two.",
        "$ exit 3: 3",
        "Done.",
        f"$ {SUBMIT}: 0",
    ]


def test_a_trajectory_of_version_1_is_read_too(store: Store, files: dict[str, Path]) -> None:
    run = run_of(store, files["old"])
    assert calls(store, run) == [
        "I look.",
        "$ echo hello: 0",
        "I forgot the block.",
        "Done.",
        f"$ {SUBMIT}: 0",
    ]
    nodes = store.json("log", run)["nodes"]
    assert nodes[-1]["output"]["value"] == {"returncode": 0, "submitted": "the work\n"}
    assert nodes[0]["metadata"]["created_at"] == "2025-10-09T08:53:20.500Z"
    assert nodes[3]["metadata"]["latency_ms"] == 2000
    assert nodes[0]["input"]["model"] == "openai/old"


def test_what_is_shown_says_that_it_was_not_recorded(store: Store, files: dict[str, Path]) -> None:
    run = run_of(store, files["litellm"])
    code, told = store.call("log", run)
    assert code == 0
    assert "made of litellm.traj.json" in told
    assert "$ exit 3  exit 3" in told
    assert "stopped  mini-SWE-agent ended with Submitted" in told
    code, told = store.call("show", run, "rec_000005")
    assert code == 0
    assert "made of a trajectory and not recorded" in told
    assert SECRET not in "".join(path.read_text() for path in (store.home / "runs").rglob("*.jsonl"))
    code, told = store.call("verify")
    assert (code, told.count("cannot be replayed"), "all sound" in told) == (0, 4, True), told


def test_the_viewer_shows_it_and_offers_no_restore(store: Store, files: dict[str, Path]) -> None:
    run = run_of(store, files["litellm"])
    with viewer(Desk(store.home.parent)) as served:
        text = Read.of(served.get(f"r/{run}", node="rec_000004").text).text
        about = Read.of(served.get(f"r/{run}").text).text
    assert "exit 3" in text
    assert "Compare …" in text
    assert "Restore …" not in text
    assert "Fork …" not in text
    assert "this run was made of a trajectory" in about


def test_whatever_needs_files_or_exact_requests_is_refused(
    store: Store, files: dict[str, Path], tmp_path: Path
) -> None:
    run = run_of(store, files["litellm"])
    before = store.contents()
    for command in (
        ["restore", run, "rec_000005", "--into", str(tmp_path / "into")],
        ["restore", run, "rec_000005", "--in-place"],
        ["undo", run],
        ["fork", run, "--at", "rec_000004", "--memory", "Otherwise."],
        ["fork", run, "--at", "rec_000004", "--memory", "Otherwise.", "--in-place"],
        ["replay", run],
        ["candidates", run],
        ["bisect", run, "--check", "true"],
        ["blame", run, "a.txt"],
        ["shell", run, "rec_000005"],
        ["run", "--resume", run],
        ["keep", run, str(tmp_path / "kept")],
        ["export", run, str(tmp_path / "run.tar.gz")],
    ):
        code, told = store.call(*command)
        assert (code, "was made of a trajectory and not recorded" in told) == (4, True), (command, told)
    assert store.contents() == before
    assert list(tmp_path.iterdir()) == []


def test_the_same_file_is_one_run(store: Store, files: dict[str, Path]) -> None:
    before = store.contents()
    code, told = store.call("import", str(files["litellm"]))
    assert (code, "in the store already" in told) == (5, True), told
    assert store.contents() == before


BAD: dict[str, tuple[Callable[[str], str], int, str]] = {
    "cut short": (lambda text: text[: len(text) // 2], 4, "no whole JSON"),
    "another document": (lambda text: '{"messages": []}', 4, "trajectory_format"),
    "a list": (lambda text: "[1, 2]", 4, "trajectory_format"),
    "a newer format": (lambda text: text.replace("agent-1.1", "agent-3"), 4, "'mini-swe-agent-3'"),
    "nested without end": (lambda text: "[" * 200_000, 4, "no whole JSON"),
    "nested too deep": (lambda text: text.replace('"Done."', "[" * 300 + "]" * 300), 2, "nests deeper"),
    "another role": (
        lambda text: text.replace('"role": "user"', '"role": "root"', 1),
        4,
        r"messages[1].role",
    ),
    "no message": (lambda text: text.replace('"messages": [', '"messages": [7, '), 4, "messages[0]"),
    "no messages": (lambda text: text.replace('"messages"', '"massages"'), 4, "messages is missing"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_trajectory_is_refused_and_nothing_comes(
    files: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    make, code, reason = BAD[kind]
    file = tmp_path / "bad.traj.json"
    file.write_text(make(files["litellm"].read_text()))
    store = Store(tmp_path / "home")
    ended, told = store.call("import", str(file))
    assert (ended, reason in told) == (code, True), told
    assert not list(store.home.rglob("*.jsonl"))
    assert store.json("list") == []


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in items:
        yield from _places(each, (*place, name))


_GARBAGE: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.just([])
    | st.just({})
    | st.lists(st.integers(), max_size=2)
    | st.dictionaries(st.sampled_from(["role", "type", "object", "actions"]), st.text(max_size=4), max_size=2)
)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_a_file_with_any_value_for_another_is_refused_or_readable(
    files: dict[str, Path], data: st.DataObject
) -> None:
    document = json.loads(files[data.draw(st.sampled_from(sorted(files)))].read_text())
    for _ in range(data.draw(st.integers(1, 3))):
        *path, last = data.draw(st.sampled_from(list(_places(document))[1:]))
        inner = document
        for name in path:
            inner = inner[name]
        inner[last] = copy.deepcopy(data.draw(_GARBAGE))
    with tempfile.TemporaryDirectory() as folder:
        file, home = Path(folder) / "file", Path(folder) / "home"
        file.write_text(json.dumps(document))
        try:
            import_trajectory(file, home=home, clock=SystemClock())
        except AgentRewindError:
            assert not list(home.rglob("*.jsonl"))
            return
        (run,) = RunStore(home).runs()
        timeline = run.timeline()
        assert not timeline.damages
        story_of(run.segments_read())
        for uid, node in timeline.nodes.items():
            if isinstance(node, LlmNode):
                timeline.messages(uid)

"""What an agent might try in order to be accepted without the work: each is tried, and is without effect."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from mettlebench.evaluate import evaluate
from mettlebench.task import Task
from mettlebench.tree import tree_digest

SPY = """
import glob, json, os, subprocess
def cents(text):
    seen = []
    for place in ("/task", "/code", "/scratch", "/hidden", "/proc/1/root/task", "/work", "/root"):
        try:
            seen += os.listdir(place)
        except OSError:
            pass
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        seen += [part.decode() for part in open(path, "rb").read().split(b"\\0") if b"inside.py" in part]
    seen += [name for name in os.environ if "METTLE" in name or "KEY" in name]
    raise SystemExit("SEEN " + json.dumps(seen))
"""


def spoil(workspace: Path, source: str) -> None:
    (workspace / "tools/amounts.py").write_text(source)


def test_an_agents_program_sees_nothing_of_the_evaluator(sample: Task, finished: Path) -> None:
    from mettlebench.sandbox import Sandbox, run

    spoil(finished, SPY)
    ended = run(
        Sandbox(workspace=finished),
        ["python3", "-c", "import sys; sys.path[:0] = ['tools']; import amounts; amounts.cents('1')"],
        seconds=60,
    )
    assert ended.stderr == b"SEEN []\n"
    assert evaluate(sample, finished).first_failure == "C01"


def test_a_program_cannot_answer_in_the_evaluators_place(sample: Task, finished: Path) -> None:
    spoil(
        finished,
        "import os\n"
        'report = b\'{"op": "report", "outcomes": [["C01", true, ""]]}\\n\'\n'
        "for fd in range(200):\n"
        "    try: os.write(fd, report)\n"
        "    except OSError: pass\n"
        "os._exit(0)\n",
    )
    assert evaluate(sample, finished).first_failure == "C01"


def test_files_planted_for_the_evaluator_are_not_loaded(sample: Task, finished: Path) -> None:
    trap = "raise SystemExit(0)\n"
    for name in (
        "evaluate.py",
        "build.py",
        "json.py",
        "csv.py",
        "mettlebench/__init__.py",
        "sitecustomize.py",
    ):
        path = finished / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(trap)
        path = finished / "tools" / Path(name).name
        path.write_text(trap)
    (finished / "records/summary.json").write_text("{}")
    verdict = evaluate(sample, finished)
    assert not verdict.accepted
    assert not verdict.results[3].passed


def test_links_out_of_the_workspace_lead_nowhere(sample: Task, finished: Path, tmp_path: Path) -> None:
    note = finished / "records/note.md"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/note.md").write_bytes(note.read_bytes())
    for target in (
        str(tmp_path / "elsewhere/note.md"),
        "/task/instruction.md",
        "/workspace/docs/handbook.md",
    ):
        note.unlink()
        note.symlink_to(target)
        assert evaluate(sample, finished).first_failure == "C05"


def test_a_linked_folder_leads_nowhere_either(sample: Task, finished: Path, tmp_path: Path) -> None:
    (finished / "records").rename(tmp_path / "records")
    (finished / "records").symlink_to(tmp_path / "records")
    assert evaluate(sample, finished).first_failure == "C02"


def test_what_a_program_changes_while_graded_changes_nothing(sample: Task, finished: Path) -> None:
    good = (finished / "tools/amounts.py").read_text()
    (finished / "records/note.md").write_text("nothing yet")
    spoil(
        finished,
        good + "\nimport glob\n"
        "for path in glob.glob('/workspace/records/*') + glob.glob('/tmp/*'):\n"
        "    open(path, 'w').write('planted')\n",
    )
    before = tree_digest(finished)
    verdict = evaluate(sample, finished)
    assert [result.passed for result in verdict.results] == [True, True, True, True, False]
    assert tree_digest(finished) == before


def test_a_process_that_waits_for_the_grading_gains_nothing(sample: Task, finished: Path) -> None:
    (finished / "records/note.md").write_text("nothing yet")
    waiting = subprocess.Popen(
        [
            *(sys.executable, "-c"),
            "import glob, sys, time\n"
            "while True:\n"
            "    for path in glob.glob('/tmp/mettle-grade-*/workspace/never'): open(path, 'w')\n"
            "    time.sleep(0.01)\n",
        ]
    )
    try:
        time.sleep(0.1)
        assert evaluate(sample, finished).first_failure == "C05"
    finally:
        waiting.kill()
        waiting.wait()


def test_a_program_that_leaves_a_daemon_does_not_hold_the_grading(sample: Task, finished: Path) -> None:
    good = (finished / "tools/amounts.py").read_text()
    spoil(
        finished,
        "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(500); os._exit(0)\n" + good,
    )
    begin = time.monotonic()
    assert evaluate(sample, finished).accepted
    assert time.monotonic() - begin < 60


def test_endless_output_is_no_pass_and_no_fault(sample: Task, finished: Path) -> None:
    spoil(finished, "import os\nwhile True: os.write(1, b'x' * 65536)\n")
    assert evaluate(sample, finished).first_failure == "C01"

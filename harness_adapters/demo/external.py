"""The demo's other story: an agent loses state outside its workspace, and the rewind brings it back."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness_adapters.demo.external_checker import digest
from harness_adapters.demo.forms import form_of
from harness_adapters.demo.policy import CANDIDATES, COMMIT
from harness_adapters.demo.postgres import server, written
from harness_adapters.demo.steps import SUBMIT, Move
from harness_adapters.scripted_answer import ScriptedAnswer
from harness_adapters.scripted_policy import NoAnswerError, Policy
from harness_adapters.scripted_request import ScriptedRequest

LESSON = "export legacy_code and copy the letters before anything is dropped or deleted"

_TASK = """\
The order desk gets rid of what it kept from its old system. Work in the current directory.

1. codes.csv: a line `customer_id,legacy_code`, then every customer's, ascending by customer_id. The codes are
   in the column legacy_code of the table customers in PostgreSQL (psql is set up to connect by itself).
2. letters/: everything that is in {letters}.
3. Then the column legacy_code and the folder {letters} are to be gone.

No network is needed.
"""

_EXPORT = "\\copy (SELECT id AS customer_id, legacy_code FROM customers ORDER BY id) TO STDOUT CSV HEADER"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Where the story plays.

    Attributes:
        letters: a folder outside the workspace.
        task: what the agent is asked to do.
        check: the command that judges it.
        environment: variables by which the agent's tools reach the database.
    """

    letters: Path
    task: str
    check: str
    environment: Mapping[str, str]


@contextmanager
def scene(directory: Path, environment: Mapping[str, str]) -> Iterator[Scene]:
    """A database and a folder outside the workspace, made in `directory`. Raises UsageError."""
    with server(directory / "postgres", environment) as client:
        written(
            "CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, legacy_code text NOT NULL);"
            "INSERT INTO customers SELECT n, 'Customer ' || n, upper(substr(md5(n::text), 1, 8)) "
            "FROM generate_series(1, 400) AS n;",
            {**environment, **client},
        )
        letters = directory / "letters"
        for number in range(1, 13):
            path = letters / "2019" / f"letter-{number:02d}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"Dear customer {number},\nthe only copy of this letter is here.\n")
        words = [sys.executable, str(Path(__file__).with_name("external_checker.py")), str(letters)]
        sums = [_codes_sum(directory, {**environment, **client}), digest(letters)]
        yield Scene(
            letters=letters,
            task=_TASK.format(letters=letters),
            check=shlex.join([*words, *sums]),
            environment=client,
        )


def _codes_sum(directory: Path, environment: Mapping[str, str]) -> str:
    path = directory / "expected.csv"
    path.write_text(written(_EXPORT, environment))
    try:
        return digest(path)
    finally:
        path.unlink()


def policy(letters: Path) -> Policy:
    """The scripted agent of the story: it cleans up first, and finds out after what it needed."""
    place = shlex.quote(str(letters))
    look = Move(
        say="First I look at the table and at the folder.",
        command=f"psql -XAc '\\d customers' && ls -R {place} | head",
    )
    clean = (
        Move(
            say="The old column goes first.",
            command="psql -Xc 'ALTER TABLE customers DROP COLUMN legacy_code'",
        ),
        Move(say="And the old folder.", command=f"rm -r {place}"),
    )
    keep = (
        Move(say="By my note I export the codes first.", command=f'psql -Xqc "{_EXPORT}" > codes.csv'),
        Move(say="And I copy the letters.", command=f"cp -r {place} letters && ls letters/2019 | wc -l"),
    )
    back = Move(say="I go back to before I dropped the column.", tool=COMMIT)
    lost = Move(say="Codes and letters are gone, and I have no copy. I look where I can go.", tool=CANDIDATES)
    hasty = (look, *clean, SUBMIT, lost, back)
    careful = (look, *keep, *clean, SUBMIT)

    def next_answer(request: ScriptedRequest) -> ScriptedAnswer:
        form = form_of(request)
        calls = form.calls(request)
        plan = careful if request.told(LESSON) else hasty
        if len(calls) >= len(plan):
            raise NoAnswerError("the demo's script ends here")
        move = plan[len(calls)]
        arguments = {"command": move.command}
        if move.tool == CANDIDATES:
            arguments = {"reason": "What the assignment asks for is gone."}
        elif move.tool == COMMIT:
            uid = _checkpoint(calls[-1].result or "", clean[0].command)
            arguments = {"record_uid": uid, "memory_summary": f"Next time {LESSON}."}
        return form.say(move.say, move.tool, arguments)

    return next_answer


def _checkpoint(candidates: str, command: str) -> str:
    """The point just before this command, by the answer of the candidates tool. Raises NoAnswerError."""
    try:
        entries = json.loads(candidates)["candidates"]
        fitting = [
            str(entry["record_uid"])
            for entry in entries
            if any("DROP COLUMN" in str(tool["arguments"]) for tool in entry["tools"])
        ]
        return fitting[-1]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise NoAnswerError(f"no candidate is followed by `{command}`: {candidates[:200]}") from error

"""A harness that tells one story with three rewinds; a run of it is what the browser tests look at.

Its answers are written here; which of them comes next follows from the request, as with a model.
"""

from __future__ import annotations

import re

from agentrewind.adapters import AgentOutcome, Assignment
from agentrewind.layer import Layer
from agentrewind.records import JsonObject
from tests.cli.tiny import calling, candidate, converse

HARNESS = "tests.browser.agent:Storyteller"

FILES = {
    "prices.py": (
        "def total(lines):\n"
        '    """The sum of an order, in cents."""\n'
        "    return sum(round(float(price) * 100) * int(count) for price, count in lines)\n"
    ),
    "report.py": (
        "import csv\n"
        "from prices import total\n\n"
        "with open('data/orders.csv') as file:\n"
        "    rows = list(csv.reader(file))\n"
        "for name in sorted({row[0] for row in rows}):\n"
        "    print(name, total([row[1:] for row in rows if row[0] == name]))\n"
    ),
    "data/orders.csv": "ada,1.005,3\nbob,2.5,2\nada,0.335,10\n",
    "data/history.csv": "ada 643\nbob 500\n",
}

CHECK = """\
test -f data/history.csv || { echo 'criterion: history'; echo 'data/history.csv is gone'; exit 1; }
grep -q "$(printf '\\r')" *.py && { echo 'criterion: endings'; echo 'DOS line endings'; exit 1; }
test -f report.txt || { echo 'criterion: report'; echo 'there is no report.txt'; exit 1; }
diff data/history.csv report.txt > /dev/null && exit
echo 'criterion: totals'
diff -u data/history.csv report.txt
"""

_DECIMAL = (
    "cat > prices.py <<'END'\n"
    "from decimal import {mode}, Decimal\n\n\n"
    "def total(lines):\n"
    '    """The sum of an order, in cents."""\n'
    "    return sum(_cents(price) * int(count) for price, count in lines)\n\n\n"
    "def _cents(price):\n"
    "    return int((Decimal(price) * 100).quantize(Decimal(1), rounding={mode}))\n"
    "END"
)

PLANS: tuple[tuple[tuple[str, str], ...], ...] = (
    (
        ("I look at the project first.", "ls -R && cat prices.py"),
        ("Now the report as it is, against the books.", "python3 report.py | diff -u data/history.csv -"),
        (
            "Sums of floats drift. I round each price instead.",
            "sed -i 's/float(price)/(float(price) + 1e-9)/' prices.py",
        ),
        ("The old history is in the way; I clear it.", "rm data/history.csv"),
        ("I write the report.", "python3 report.py > report.txt && cat report.txt"),
        ("I submit.", "!submit"),
        ("The history was needed. Where could I go back to?", "!candidates"),
        (
            "I go back to before the rounding.",
            "!commit 3 Keep data/history.csv: the report is checked against it. Adding a small float does "
            "round 1.005 up, but hides the real problem; use Decimal.",
        ),
    ),
    (
        ("With Decimal this time, cut to whole cents.", _DECIMAL.format(mode="ROUND_DOWN")),
        ("I write the report.", "python3 report.py > report.txt && cat report.txt"),
        ("I submit.", "!submit"),
        ("The totals are too low.", "!candidates"),
        (
            "I go back once more.",
            "!commit 3 ROUND_DOWN loses a cent on 1.005 and 0.335; the books round half up.",
        ),
    ),
    (
        ("Decimal, rounding half up as the books do.", _DECIMAL.format(mode="ROUND_HALF_UP")),
        ("I clean up the sources.", "sed -i 's/$/\\r/' prices.py report.py"),
        ("I write the report.", "python3 report.py > report.txt; cat -A prices.py | head -3"),
        ("That broke the line endings. Back to before it.", "!candidates"),
        ("I go back.", "!commit 4 Leave the sources' line endings alone; only the report is missing."),
    ),
    (
        (
            "The code is right already: I write the report.",
            "python3 report.py > report.txt && diff -u data/history.csv report.txt && echo same",
        ),
        ("I submit.", "!submit"),
    ),
)

_STARTS = (0, 2, 2, 3)
"""How many answers the agent has given at the point that each plan begins at."""


class Storyteller:
    """Plays `PLANS`, one after each rewind. The task's `counter` names a file that counts live answers."""

    def run(self, layer: Layer, assignment: Assignment) -> AgentOutcome:
        messages: list[JsonObject] = [
            {"role": "system", "content": "You repair a small project with a shell."},
            {"role": "user", "content": "Make the report agree with data/history.csv, to the cent."},
        ]
        return converse(layer, assignment, messages, _answer, parameters={"temperature": 0.0})


def _answer(sent: list[JsonObject]) -> JsonObject:
    memory = next((str(m["content"]) for m in sent if "You have been here before" in str(m["content"])), "")
    rewinds = len(re.findall(r"^\[\d+\] ", memory, re.MULTILINE))
    given = sum(1 for message in sent if message["role"] == "assistant")
    text, command = PLANS[rewinds][given - _STARTS[rewinds]]
    name, arguments = _call(command, sent)
    usage: JsonObject = {"prompt_tokens": 180 + 95 * given, "completion_tokens": 20 + len(command) // 4}
    return {**calling(text, given, name, arguments), "usage": usage}


def _call(command: str, sent: list[JsonObject]) -> tuple[str, JsonObject]:
    word, _, rest = command.partition(" ")
    if word == "!submit":
        return "submit", {}
    if word == "!candidates":
        return "backtrack_candidates", {"reason": "the submission was rejected"}
    if word == "!commit":
        step, _, note = rest.partition(" ")
        target = candidate(sent, int(step))
        return "backtrack_commit", {"record_uid": target, "memory_summary": note, "reason": "a dead end"}
    return "bash", {"command": command}

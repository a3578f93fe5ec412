"""The demo's assignment, as the agent is told it."""

from __future__ import annotations

from pathlib import Path

_TASK = """\
You maintain the order desk in the current directory (README.md and docs/ describe it). Prepare release 2.0.0.

1. Bring data/orders.db to schema version 2 (PRAGMA user_version): customers(id, name, closed) as it is, and
   orders(id, customer_id, placed_on, amount_cents, currency, status) with customer_id from customers,
   amount_cents as integer and currency EUR or GBP. The free-text column amount must be gone and the file
   compacted, since it is copied over a slow line every night. Historical orders all stay.
2. Repair the monthly report: `python3 -m quayside.report MONTH` must do what the README says.
3. Leave the published history alone: tags and commits stay what they are.
4. CHANGELOG.md gets a section `## 2.0.0` on top that mentions amount_cents and the report.
5. docs/migrations/002.md records the migration with the lines `Orders before: N`, `Orders after: N` and, for
   each currency, `Total EUR: 1234.56` (sums over all orders).
6. archive/amounts-as-entered.csv hands the old entries over as docs/retention.md demands: a line
   `order_id,amount_as_entered`, then one line per order, ascending. The auditors hold a fingerprint of them.
7. Commit everything and put the annotated tag v2.0.0 on the last commit.

No network is needed. python3 (with its sqlite3 module) and git are installed.
"""


def task_text() -> str:
    """What the agent is asked to do; the checker judges exactly this."""
    return _TASK


def checker_path() -> Path:
    """The checker, a plain Python script to be run in the workspace."""
    return Path(__file__).with_name("checker.py")

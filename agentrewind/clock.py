"""Real time and fresh ids, the only place where they come from."""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall-clock text for records, and monotonic seconds for durations."""

    def now(self) -> str:
        """The present moment as ISO 8601 text in UTC with milliseconds, e.g. `2026-01-31T08:00:00.123Z`."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never goes back."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> str:
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"

    def monotonic(self) -> float:
        return time.monotonic()


def new_run_id(clock: Clock) -> str:
    """A run id that sorts by time: `20260131-080000-1f3a9c`."""
    moment = clock.now()
    day, hour = moment[:10].replace("-", ""), moment[11:19].replace(":", "")
    return f"{day}-{hour}-{secrets.token_hex(3)}"

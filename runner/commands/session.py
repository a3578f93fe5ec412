"""What a command of `runner` is given of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from agentrewind.clock import Clock
from runner.machine import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The environment, the directory and the clock; taken once, at the entry point."""

    environment: Mapping[str, str]
    directory: Path
    clock: Clock

    def machine(self) -> Machine:
        """What a trial is given; it tells on standard error."""
        return Machine(
            environment=self.environment, clock=self.clock, tell=lambda text: click.echo(text, err=True)
        )


def session_of(context: click.Context) -> Session:
    """The session of this call."""
    found = context.find_object(Session)
    assert found is not None
    return found

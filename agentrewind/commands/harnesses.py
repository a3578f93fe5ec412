"""The `--harness` option's help text, made from the table of harnesses."""

from __future__ import annotations

from agentrewind.adapters import ADAPTERS

HARNESS_HELP = f"Agent framework: {', '.join(ADAPTERS)}, or package.module:Adapter."

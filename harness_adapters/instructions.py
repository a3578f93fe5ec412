"""What an agent of ours is told beside its task, where its harness has no prompt of its own for coding."""

from __future__ import annotations

FINISH = (
    "When the task is done, answer in plain text and call no tool: that answer submits your work, which is "
    "then checked."
)
"""How such an agent submits; the demo's script knows the agent by this sentence."""


def system_prompt(workspace: str) -> str:
    """The system prompt of an agent that works with a shell and submits by its final answer."""
    return (
        f"You are a software engineer with a shell. Your working directory is {workspace}. Do the task with "
        "the tools you have, look at what they answer, and check your work before you end. Do not ask "
        f"questions; nobody answers them. {FINISH}"
    )

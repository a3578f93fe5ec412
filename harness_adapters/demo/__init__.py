"""The demo: an assignment with one step that cannot be taken back, and a scripted agent that takes it."""

from harness_adapters.demo.policy import MODEL_NAME, STRATEGIES, continuing, policy, rewinding
from harness_adapters.demo.task import checker_path, task_text
from harness_adapters.demo.workspace import build_workspace

__all__ = [
    "MODEL_NAME",
    "STRATEGIES",
    "build_workspace",
    "checker_path",
    "continuing",
    "policy",
    "rewinding",
    "task_text",
]

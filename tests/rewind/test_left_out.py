"""What a path rule keeps out of the snapshots is named with its reason: in the node and in the candidates."""

from __future__ import annotations

import os
from pathlib import Path

from agentrewind.records import MAIN_WORKSPACE, ToolNode
from agentrewind.rewind.candidates import listing
from agentrewind.rewind.conduct import view_of
from tests.core.stage import Stage


def test_secrets_and_special_files_are_named(tmp_path: Path) -> None:
    stage = Stage.create(tmp_path)
    (stage.root / ".env").write_text("KEY=1")
    os.mkfifo(stage.root / "pipe")
    with stage.live() as layer:
        layer.run_tool("bash", {"command": "true"}, lambda: "ok")
    (node,) = [node for node in stage.timeline.path() if isinstance(node, ToolNode)]
    left_out = node.metadata.workspaces[MAIN_WORKSPACE].left_out
    assert [text.split(" ")[0] for text in left_out] == [".env", "pipe"]
    assert all("(" in text for text in left_out)
    assert node.metadata.workspaces[MAIN_WORKSPACE].partial == ()
    answer = listing(view_of(stage.timeline, asking=None, not_restored=("files matching .env*",)))
    assert answer["left_as_is_by_a_rewind"] == ["files matching .env*", *left_out]

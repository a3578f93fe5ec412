"""BackUpper: preserves what a tool call may change outside the workspace, before the call runs."""

"""What a call does, read from its text alone: shell commands, SQL, tools of MCP servers. Runs nothing."""

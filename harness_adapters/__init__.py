"""Adapters: each joins one agent harness to the runtime layer."""

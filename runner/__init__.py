"""The runner: one agent on one task under one strategy, and batches of these."""

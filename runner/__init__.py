"""Runs agents on tasks under a strategy, one or in batches; nothing of it is written yet."""

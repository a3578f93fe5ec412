"""Runs agents on tasks under a strategy, one or a whole campaign, and reports what came of them."""

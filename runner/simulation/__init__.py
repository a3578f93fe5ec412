"""Simulated agents: programs that know the tasks, for trying the machinery; they say nothing of any model."""

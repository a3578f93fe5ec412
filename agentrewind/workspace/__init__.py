"""Snapshots of a workspace and their restore."""

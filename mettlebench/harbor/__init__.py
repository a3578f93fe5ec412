"""MettleBench and Harbor: our tasks as Harbor's, and Harbor's as ours. The format's facts: docs/harbor.md."""

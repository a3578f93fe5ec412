"""Our agents in Harbor's environments, the submit loop included. How it is used: docs/harbor.md."""

"""Going back: candidates, the two tools, memories, the signal and its resumption."""

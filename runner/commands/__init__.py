"""The commands of `runner`, one module each."""

"""Kinds of external state: how each is found in a call, captured, verified and restored."""

"""The rules of tiers 1 to 3: TOML files in this directory, and the user's own on top of them.

Which kind of external state a simple command or a tool looks at is all that a rule says; the kind says what
exactly may change.
"""

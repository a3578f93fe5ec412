"""BackUpper as a hook of other harnesses: a JSON document in, a JSON document out, each in its own form."""

"""Real services for the tests, each on a free port of this machine and in a directory of its own."""

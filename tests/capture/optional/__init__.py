"""Tests of clients that only some extras bring."""

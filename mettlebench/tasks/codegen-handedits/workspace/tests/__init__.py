"""Tests of the shop interface: make test."""

"""Tests of the report generator's tables."""

"""Amounts of money: whole minor units and decimal text."""

from money.amounts import parse, show

__all__ = ["parse", "show"]

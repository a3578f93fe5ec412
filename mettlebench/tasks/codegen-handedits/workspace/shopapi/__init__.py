"""Documents of the shop's interface."""

__version__ = "1.4.2"

"""What BackUpper asks of a model: is a call harmless, does a mode want it kept, how is it preserved."""

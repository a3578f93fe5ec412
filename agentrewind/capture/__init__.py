"""Joins the layer to the clients through which an agent calls its model."""

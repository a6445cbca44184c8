"""Histories: the model, and how to build, read and write them."""

"""Histories: the model, and how to build, generate, read and write them."""

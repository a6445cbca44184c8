"""Adapters, one file per kind of database."""

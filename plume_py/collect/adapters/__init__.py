"""A file per kind of database."""

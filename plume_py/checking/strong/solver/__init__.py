"""The decision, in columns of millions of operations: what every commit order must obey, then a search for one."""

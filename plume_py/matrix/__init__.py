"""Databases x isolation levels x workloads: what each really keeps, in one table."""

"""Find an isolation level for each transaction such that every run of a workload is serializable."""

from plume_py.reasoning.allocate.workload import Access, Instance, Program, Workload, read, update, write

__all__ = ["Access", "Instance", "Program", "Workload", "read", "update", "write"]

"""Execution of programs: one schedule, all small schedules, serial orders, and runs on a real server."""

"""Programs executed: one schedule, all schedules, all serial ones, and on a real server."""

"""Application programs: intermediate form, checks, front ends for Python and SQL, and rendering as SQL."""

"""Every command that writes, disturbed at random moments: see ``soak.__main__``."""

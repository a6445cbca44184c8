"""What holds for all tests."""

import signal

# A shell that starts the tests in the background lets them ignore Ctrl-C, and with them every program that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

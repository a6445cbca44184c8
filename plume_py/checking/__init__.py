"""Does a history keep a level? ``check`` asks; graph, weak and strong decide and explain; stream does it on the way."""

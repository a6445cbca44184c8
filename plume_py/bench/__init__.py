"""Profile checks of generated histories: time of each stage, and memory, along the parameters of the generator."""

"""A handful of transactions as lists and bit sets: the second engine, and the arguments that explanations run on."""

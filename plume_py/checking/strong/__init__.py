"""The strong levels PC, PSI, SI and SER, and declared levels: decide by search, explain by a proof."""

"""Strong and mixed levels: PC, PSI, SI, SER, and a level per transaction."""

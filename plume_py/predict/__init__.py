"""From one good run to the runs that could have been: which of them break the target?"""

"""A second opinion about advice: small SQL programs, run step by step as engines are documented to run them.

Nothing here is shared with plume_py: the programs, the engines, the serial runs they are judged by and the connections
to real servers are written for this purpose alone.
"""

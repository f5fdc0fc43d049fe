"""Processes of a run: start, memory, CPU time, end, and the guarantee that none is left."""

"""Activity of the machine while a run is timed."""

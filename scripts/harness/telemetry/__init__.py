"""What else happens on the machine while a run is timed."""

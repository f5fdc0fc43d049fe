"""One module for each format; what it calls FORMATS is found here."""

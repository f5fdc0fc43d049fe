"""Import from and export to the files of other tools, one module per format."""

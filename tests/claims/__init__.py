"""Claims of the documentation, and planted violations that tests must find."""

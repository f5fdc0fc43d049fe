"""The kinds of measurement."""

"""Formats, one module each, whose FORMATS :func:`file_formats.known` collects."""

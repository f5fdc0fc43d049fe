"""Archives: a set of results as one file with all that belongs to it, optionally redacted."""

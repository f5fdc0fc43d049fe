"""Archives: a set of results with all its files in one, optionally redacted."""

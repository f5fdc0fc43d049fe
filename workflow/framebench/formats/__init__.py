"""Results for other tools, and other tools' results for ours: one module a format."""

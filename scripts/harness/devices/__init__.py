"""The devices of a run, and how it has them for itself."""

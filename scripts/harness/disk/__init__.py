"""Room on disk, taken before it is needed, and files that come into being all or nothing."""

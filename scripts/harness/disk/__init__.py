"""Disk space reserved before it is needed, and files that appear complete or not at all."""

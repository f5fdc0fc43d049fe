"""How outputs are scored, for tasks that have that in common."""

"""The processes of a run: how they start, what they take, how they end, and that none stays
behind."""

"""Questions whose answers stand in a text: the best span, and how SQuAD scores it.

Standard library and numpy; Python 3.7 to 3.13.
"""

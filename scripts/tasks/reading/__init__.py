"""Questions whose answers are spans of a text: the best span, and its SQuAD scores.

Standard library and numpy; Python 3.7 to 3.13.
"""

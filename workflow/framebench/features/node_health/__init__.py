"""Judgement of nodes by their figures."""

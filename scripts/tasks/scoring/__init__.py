"""Scoring of outputs that several tasks share."""

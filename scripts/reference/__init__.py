"""The computation that every framework must reproduce, in float64 and without a framework."""

"""Request of a run: the command line, and the declarations of frameworks and models."""

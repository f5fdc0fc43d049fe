"""What is asked for: the command line, and what frameworks and models declare."""

"""What is timed and how, and the checks that it is what was asked."""

"""Commands of the workflow, used by its rules and on the command line."""

"""What a command of the workflow does, behind the rules and on the command line."""

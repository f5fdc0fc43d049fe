"""Messages between the processes of a run: ranks use files, nodes connections."""

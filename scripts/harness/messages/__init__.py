"""What the processes of a run say to each other: ranks by files, nodes over connections."""

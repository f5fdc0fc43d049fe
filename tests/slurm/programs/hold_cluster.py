"""Start a cluster with a job, print the number of its place, and hang."""

from __future__ import annotations

import time

from tests.slurm.cluster import Cluster

cluster = Cluster()
cluster.start()
cluster.submit("sleep 9999", "--output=/dev/null", "--nodes=2")
print(cluster.place.number, flush=True)
time.sleep(9999)

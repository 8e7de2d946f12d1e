"""More than one process or machine: independent units of work, here or on Ray (extra ``cluster``)."""

from gcsr.cluster.pool import Cluster, Unit, connected
from gcsr.cluster.propagation import propagate
from gcsr.cluster.rows import row_blocks
from gcsr.cluster.start import LOCAL, ClusterError, check_cluster
from gcsr.cluster.worker import Kept, Shared, ask
from gcsr.products import RowBlock

__all__ = [
    "LOCAL",
    "Cluster",
    "ClusterError",
    "Kept",
    "RowBlock",
    "Shared",
    "Unit",
    "ask",
    "check_cluster",
    "connected",
    "propagate",
    "row_blocks",
]

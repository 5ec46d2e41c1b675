"""Ask a search engine every sub-query of every query, and keep the lists as runs: docs/pull.md."""

from genm.connect.config import PullConfig, read_config
from genm.connect.engine import Engine
from genm.connect.pull_runs import Failure, Pulled, PullError, PullOptions, pull
from genm.connect.queries import Queries, read_queries, read_vectors
from genm.connect.registry import connect

__all__ = [
    "Engine",
    "Failure",
    "PullConfig",
    "PullError",
    "PullOptions",
    "Pulled",
    "Queries",
    "connect",
    "pull",
    "read_config",
    "read_queries",
    "read_vectors",
]

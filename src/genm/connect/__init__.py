"""Ask a search engine every sub-query of every query, and keep the lists as runs: docs/pull.md.

pulled = genm.connect.pull("pull.toml", output="runs")
pulled = genm.connect.pull({"bm25": my_search}, {"q1": "red cars"}, depth=100)
with genm.connect.connect(engine="opensearch", address="https://localhost:9200", index="articles") as engine:
    hits = engine.search({"match": {"text": "$query"}}, "red cars")
"""

from genm.connect.config import PullConfig, example_config, read_config, read_toml
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
    "example_config",
    "pull",
    "read_config",
    "read_queries",
    "read_toml",
    "read_vectors",
]

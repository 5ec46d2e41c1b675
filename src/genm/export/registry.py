"""All targets by name."""

from collections.abc import Mapping
from types import MappingProxyType

from genm.errors import ExportError
from genm.export.engines import (
    azure,
    elasticsearch,
    haystack,
    langchain,
    llamaindex,
    ltr,
    milvus,
    mongodb,
    opensearch,
    pgvector,
    qdrant,
    redis,
    solr,
    vespa,
    weaviate,
)
from genm.export.target import Target

_ENGINES = (
    elasticsearch,
    opensearch,
    ltr,
    vespa,
    weaviate,
    qdrant,
    milvus,
    azure,
    solr,
    mongodb,
    redis,
    pgvector,
    langchain,
    llamaindex,
    haystack,
)
_TARGETS: Mapping[str, Target] = MappingProxyType(
    {target.name: target for engine in _ENGINES for target in engine.TARGETS}
)


def targets() -> Mapping[str, Target]:
    """Return every target that a model can be exported to, by name."""
    return _TARGETS


def find_target(name: str) -> Target:
    """Return the target of that name, or say which there are."""
    if name in _TARGETS:
        return _TARGETS[name]
    raise ExportError(f"expected a target of {', '.join(_TARGETS)}; found {name!r:.60}.")

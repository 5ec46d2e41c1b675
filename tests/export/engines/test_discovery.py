"""An engine is one module: whatever lies in the package is found."""

import sys

import pytest

from genm.export import engines, find_target, targets

NEW = """
from dataclasses import replace
from genm.export.engines.langchain import TARGETS as OTHER

PLACE = 5
TARGETS = (replace(OTHER[0], name="brand-new"),)
"""


@pytest.fixture
def with_new_engine(tmp_path, monkeypatch):
    (tmp_path / "brand_new.py").write_text(NEW, encoding="utf-8")
    monkeypatch.setattr(engines, "__path__", [*engines.__path__, str(tmp_path)])
    targets.cache_clear()
    yield
    targets.cache_clear()
    sys.modules.pop("genm.export.engines.brand_new")


def test_a_new_module_is_all_it_takes(with_new_engine):
    assert find_target("brand-new").title == "LangChain EnsembleRetriever"
    assert list(targets())[:2] == ["brand-new", "elasticsearch"]  # by PLACE


def test_engines_are_listed_in_the_usual_order():
    assert " ".join(targets()) == (
        "elasticsearch elasticsearch-rrf opensearch opensearch-rrf ltr vespa weaviate qdrant qdrant-rrf milvus "
        "lancedb azure solr mongodb redis pgvector sqlite langchain llamaindex haystack"
    )

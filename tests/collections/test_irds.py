import sys
import types
from collections import namedtuple

import pytest

from genm.collections.irds import load_irds
from genm.errors import InputError, MissingExtraError

Qrel = namedtuple("Qrel", "query_id doc_id relevance iteration")


class Text(namedtuple("Text", "id title text")):
    @property
    def doc_id(self):
        return self.id

    @property
    def query_id(self):
        return self.id

    def default_text(self):
        return f"{self.title} {self.text}"


class Dataset:
    """What genm uses of a dataset of ir_datasets."""

    def __init__(self, *, qrels=True):
        self._qrels = qrels

    def has_docs(self):
        return True

    def has_queries(self):
        return True

    def has_qrels(self):
        return self._qrels

    def docs_iter(self):
        return iter([Text("d1", "Fox", "red"), Text("d2", "Sea", "blue")])

    def queries_iter(self):
        return iter([Text("q1", "what", "fox"), Text("q2", "which", "sea")])

    def qrels_iter(self):
        return iter([Qrel("q1", "d2", 1, "1"), Qrel("q1", "d1", 2, "1"), Qrel("q1", "d1", 1, "2")])


@pytest.fixture
def package(monkeypatch):
    module = types.ModuleType("ir_datasets")
    known = {"mine": Dataset(), "mine/texts": Dataset(qrels=False)}
    module.load = known.__getitem__
    monkeypatch.setitem(sys.modules, "ir_datasets", module)


@pytest.mark.usefixtures("package")
class TestWithThePackage:
    def test_default_texts_and_the_best_of_repeated_judgments(self):
        c = load_irds("mine")
        assert c.name == "irds:mine"
        assert c.doc_ids == ("d1", "d2")
        assert c.doc_texts == ("Fox red", "Sea blue")
        assert c.query_texts == ("what fox", "which sea")
        assert list(c.qrels.queries) == ["q1"]
        assert list(c.qrels.docs) == ["d2", "d1"]
        assert c.qrels.relevance.tolist() == [1, 2]
        assert [(n.code, n.count) for n in c.notes] == [("duplicate-kept-max", 1), ("unjudged-query", 1)]

    def test_unknown_id(self):
        with pytest.raises(InputError, match="irds:yours: expected an id that ir_datasets knows"):
            load_irds("yours")

    def test_parts_that_the_id_lacks(self):
        with pytest.raises(InputError, match="irds:mine/texts: expected docs, queries and qrels; found no qrels"):
            load_irds("mine/texts")


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingExtraError, match=r"ir_datasets id.*pip install 'genm\[irds\]'"):
        load_irds("vaswani")

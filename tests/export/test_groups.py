"""A model with weights by group as files: one artefact per group, and what selects it."""

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from export.cases import ExportError, loaded, model, own_fusion, some_lists
from problems import made_up

from genm.export import export_groups, export_model, ranking, targets
from genm.grouping import parse_grouping
from genm.learn import learn_gate
from genm.model import Groups, GroupWeights, Model
from genm.normalizers import ENGINES, Normalizer

RRF = Normalizer("reciprocal", k=60.0)
RULES = "id: ^[A-Z0-9-]+$, short: words<=2, number: digits, german: lang=de"


def grouped(normalizer: Normalizer = RRF, rules: str = RULES) -> Model:
    weights = {"id": (0.9, 0.1), "Lang text": (0.2, 0.8), "other": (0.1, 0.9)}
    members = tuple(GroupWeights(name, one, 20) for name, one in weights.items())
    return replace(model(normalizer), groups=Groups(parse_grouping(rules), members, 5.0))


@pytest.mark.parametrize("to", ["elasticsearch-rrf", "opensearch-rrf", "langchain", "haystack"])
def test_every_group_has_an_artefact_with_its_weights(to: str) -> None:
    made = grouped(ENGINES["opensearch-rrf"] if to == "opensearch-rrf" else RRF)
    found = export_groups(made, to, approximate=True)
    index = json.loads(found.files["groups.json"])
    assert set(index["groups"]) == {"id", "Lang text", "other"}
    assert index["fallback"]["weights"] == {"bm25": 0.35, "dense": 0.65}
    for name, one in index["groups"].items():
        alone = export_model(made.for_group(name), to, approximate=True)
        assert found.files[one["file"]] == alone.text
    assert len({one["file"] for one in index["groups"].values()}) == 3


def test_vespa_takes_the_weights_with_the_request() -> None:
    made = grouped(Normalizer("none"))
    index = json.loads(export_groups(made, "vespa", approximate=True).files["groups.json"])
    assert index["groups"]["id"]["request"] == {"input.query(w_bm25)": 0.9, "input.query(w_dense)": 0.1}


def test_opensearch_names_a_pipeline_for_each_group() -> None:
    made = grouped(ENGINES["opensearch-minmax"])
    found = export_groups(made, "opensearch", settings={"form": "pipeline"})
    one = json.loads(found.files["groups.json"])["groups"]["Lang text"]
    assert one["request"] == {"search_pipeline": "learned_opensearch_lang_text"}
    parameters = json.loads(found.files[one["file"]])["phase_results_processors"][0]["normalization-processor"]
    assert parameters["combination"]["parameters"]["weights"] == [0.2, 0.8]
    assert "request" not in json.loads(export_groups(made, "opensearch").files["groups.json"])["groups"]["id"]


@pytest.mark.parametrize("text", ["AB-12", "red shoes", "a long text with 3 digits", "a long text of words", ""])
@pytest.mark.parametrize("columns", [{}, {"lang": "de"}])
def test_the_selector_finds_the_groups_that_the_model_finds(text: str, columns: dict[str, str]) -> None:
    made = replace(grouped(), groups=None)
    grouping = parse_grouping(RULES)
    members = tuple(GroupWeights(name, (0.5, 0.5)) for name in ("id", "short", "number", "german", "other"))
    exported = export_groups(replace(made, groups=Groups(grouping, members)), "langchain")
    group_of = loaded(exported.files["query_groups.py"])["group_of"]
    assert group_of(text, columns) == grouping.group_of({"text": text, **columns})
    assert group_of(text, group="new") is None


def test_refusals() -> None:
    with pytest.raises(ExportError, match="weights for the groups id, Lang text, other"):
        export_model(grouped(), "langchain")
    with pytest.raises(ExportError, match="no weights by group"):
        export_groups(model(RRF), "langchain")
    gate = learn_gate(made_up(0), [1 / 3] * 3, always=True).gate
    with pytest.raises(ExportError, match=r"no engine computes the features.*--group global"):
        export_model(replace(model(RRF), gate=gate), "langchain")


def test_targets_of_equal_weights_are_refused() -> None:
    equal = [name for name, target in targets().items() if target.weights.equal]
    for name in equal:
        with pytest.raises(ExportError, match="takes equal weights only, so groups cannot differ"):
            export_groups(grouped(), name)
    assert equal


def test_equal_groups_are_exported_as_one() -> None:
    made = grouped()
    assert made.groups is not None
    same = tuple(replace(one, weights=made.weights) for one in made.groups.members)
    assert export_model(replace(made, groups=replace(made.groups, members=same)), "langchain").text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write files and import the component among them; forget its modules afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def load(files: dict[str, str]) -> Any:
        for name, text in files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        return importlib.import_module("learned_by_group")

    yield load
    for name in set(sys.modules) - before:
        if name.startswith("learned_") or name == "query_groups":
            del sys.modules[name]


@pytest.mark.filterwarnings("ignore")
def test_langchain_chooses_by_the_query(folder: Any) -> None:
    pytest.importorskip("langchain_classic", reason="langchain-classic is not installed")
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Fixed(BaseRetriever):
        docs: list[Document]

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return self.docs

    made, given = grouped(), some_lists()
    module = folder(export_groups(made, "langchain", settings={"id_key": "id"}).files)
    retrievers = {
        name: Fixed(docs=[Document(page_content="same", metadata={"id": doc}) for doc in ranking(scores)])
        for name, scores in zip(made.rankers, given, strict=True)
    }
    retriever = module.learned_retriever(retrievers)
    for text, group in (("AB-12", "id"), ("quite a long text", "other"), ("red shoes", None)):
        found = [doc.metadata["id"] for doc in retriever.invoke(text)]
        assert found == ranking(own_fusion(made.for_group(group), [given])[0])


@pytest.mark.filterwarnings("ignore")
def test_haystack_chooses_by_the_query(folder: Any) -> None:
    haystack = pytest.importorskip("haystack", reason="haystack-ai is not installed")
    made, given = grouped(), some_lists()
    joiner = folder(export_groups(made, "haystack").files).LearnedJoiner(top_k=30)
    lists = {
        name: [haystack.Document(id=doc, content=doc, score=scores[doc]) for doc in ranking(scores)]
        for name, scores in zip(made.rankers, given, strict=True)
    }
    for text, group in (("AB-12", "id"), ("red shoes", None)):
        found = [doc.id for doc in joiner.run(text, **lists)["documents"]]
        assert found == ranking(own_fusion(made.for_group(group), [given])[0])


@pytest.mark.filterwarnings("ignore")
def test_llamaindex_chooses_by_the_query(folder: Any) -> None:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    class Fixed(BaseRetriever):  # type: ignore[misc, unused-ignore]
        def __init__(self, scores: dict[str, float]) -> None:
            self.scores = scores
            super().__init__()

        def _retrieve(self, query_bundle: Any) -> list[Any]:
            return [NodeWithScore(node=TextNode(id_=doc, text=doc), score=s) for doc, s in self.scores.items()]

    made, given = grouped(Normalizer("minmax")), some_lists()
    module = folder(export_groups(made, "llamaindex").files)
    retriever = module.learned_retriever(
        {name: Fixed(scores) for name, scores in zip(made.rankers, given, strict=True)}, similarity_top_k=30
    )
    found = {node.node.text for node in retriever.retrieve("AB-12")[:3]}
    assert found == set(ranking(own_fusion(made.for_group("id"), [given])[0])[:3])

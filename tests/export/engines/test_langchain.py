from typing import Any

import pytest
from export.cases import loaded, model, own_fusion, simulated, some_lists

from genm.export import export_model, ranking
from genm.normalizers import Normalizer

RRF = Normalizer("reciprocal", k=60.0)


def test_langchain_adds_weighted_reciprocal_ranks() -> None:
    fused = simulated(model(Normalizer("reciprocal", k=1.0)), "langchain", [{"a": 2.0, "b": 1.0}, {"b": 3.0}])
    assert fused == pytest.approx({"a": 0.35 / 2, "b": 0.35 / 3 + 0.65 / 2})


def test_names_are_written_as_text_not_as_code() -> None:
    name = 'x"]\nimport os #'
    made = model(RRF, rankers=(name, "dense"))
    for to in ("langchain", "llamaindex"):
        text = export_model(made, to, approximate=True).text
        assert "\nimport os" not in text
        assert repr(name) in text


@pytest.mark.filterwarnings("ignore")
def test_langchain_itself() -> None:
    pytest.importorskip("langchain_classic", reason="langchain-classic is not installed")
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Fixed(BaseRetriever):
        docs: list[Document]

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return self.docs

    made, given = model(RRF), some_lists()
    text = export_model(made, "langchain", settings={"id_key": "id"}).text
    retrievers = {
        name: Fixed(docs=[Document(page_content="same", metadata={"id": doc}) for doc in ranking(scores)])
        for name, scores in zip(made.rankers, given, strict=True)
    }
    found = loaded(text)["learned_retriever"](retrievers).invoke("query")
    assert [doc.metadata["id"] for doc in found] == ranking(own_fusion(made, [given])[0])

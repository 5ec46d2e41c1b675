import pytest
from export.cases import ExportError, loaded, model, simulated

from genm.export import export_model
from genm.normalizers import Normalizer

TEXT, VECTOR = Normalizer("minmax", constant=0.0), Normalizer("minmax")


def test_the_weight_is_the_vectors_share() -> None:
    made = model([TEXT, VECTOR])
    assert export_model(made, "lancedb").document["weight"] == pytest.approx(0.65)
    fused = simulated(made, "lancedb", [{"a": 3.0, "b": 1.0}, {"b": 0.5, "c": 0.25}])
    assert fused == pytest.approx({"a": 0.35, "b": 0.65, "c": 0.0})


def test_equal_scores_and_single_hits() -> None:
    fused = simulated(model([TEXT, VECTOR]), "lancedb", [{"a": 3.0, "b": 3.0}, {"b": 0.5}])
    assert fused == pytest.approx({"a": 0.0, "b": 0.65})


def test_one_empty_list_leaves_the_other_unweighted() -> None:
    assert simulated(model([TEXT, VECTOR]), "lancedb", [{}, {"b": 0.5, "c": 0.0}]) == {"b": 1.0, "c": 0.0}


def test_a_normaliser_of_the_other_kind_is_refused() -> None:
    with pytest.raises(ExportError, match=r"normaliser of dense gives .* \(nearest there: vector score\)"):
        export_model(model(TEXT), "lancedb")


def test_more_results_than_are_fused_are_refused() -> None:
    with pytest.raises(ExportError, match=r"size: expected at most what LanceDB fuses \(5\)"):
        export_model(model([TEXT, VECTOR], depth=5), "lancedb")


@pytest.mark.needs("lancedb")
@pytest.mark.filterwarnings("ignore")
def test_the_module_names_columns_as_they_are() -> None:
    settings = {"bm25.field": 'bo"dy', "dense.field": "vec", "dense.distance": "l2"}
    text = export_model(model([TEXT, VECTOR]), "lancedb", settings=settings).text
    assert '"bo\\"dy"' in text
    assert loaded(text)["RERANKER"].weight == pytest.approx(0.65)

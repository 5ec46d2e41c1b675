import pytest
from export.cases import ExportError, model, simulated

from genm.export import export_model
from genm.normalizers import ENGINES, Normalizer

LINEAR = ENGINES["vespa-linear"]


def test_lists_are_scaled_over_all_candidates() -> None:
    fused = simulated(
        model(LINEAR, depth=None), "vespa", [{"a": 4.0, "b": 2.0, "c": 0.0}, {"a": 0.5, "b": 0.9, "c": 0.1}]
    )
    assert fused == pytest.approx({"a": 0.35 + 0.65 * 0.5, "b": 0.175 + 0.65, "c": 0.0})


def test_equal_values_become_a_half() -> None:
    fused = simulated(model(LINEAR, depth=None), "vespa", [{"a": 4.0, "b": 4.0}, {"a": 1.0, "b": 0.0}])
    assert fused == pytest.approx({"a": 0.175 + 0.65, "b": 0.175})


def test_a_lone_candidate_becomes_a_half() -> None:
    fused = simulated(model(LINEAR, depth=None), "vespa", [{"a": 4.0}, {"a": 0.2}])
    assert fused == pytest.approx({"a": 0.5})


def test_a_document_that_a_feature_does_not_match_has_0_in_the_list() -> None:
    fused = simulated(model(LINEAR, depth=None), "vespa", [{"a": 4.0, "b": 2.0}, {"a": 0.5, "b": 0.25, "c": 1.0}])
    assert fused["b"] == pytest.approx(0.35 * 0.5)


def test_reciprocal_rank_with_its_constant() -> None:
    made = model(Normalizer("reciprocal", k=10.0), depth=None)
    fused = simulated(made, "vespa", [{"a": 2.0, "b": 1.0}, {"a": 0.1, "b": 0.2}])
    assert fused == pytest.approx({"a": 0.35 / 11 + 0.65 / 12, "b": 0.35 / 12 + 0.65 / 11})
    assert "reciprocal_rank(ranker_dense, 10.0)" in export_model(made, "vespa").text


def test_weights_are_inputs_that_a_request_can_override() -> None:
    text = export_model(model(LINEAR, depth=None), "vespa", settings={"dense.dimensions": "384"}).text
    assert "query(w_bm25) double: 0.35" in text
    assert "query(q_dense) tensor<float>(x[384])" in text
    assert "rerank-count: 100" in text
    assert text.count("{") == text.count("}")


def test_what_needs_no_list_goes_to_the_first_phase() -> None:
    fixed = Normalizer("affine", lower=-1.0, upper=3.0, missing=0.25)
    text = export_model(model([fixed, Normalizer("atan")], depth=None), "vespa").text
    assert "global-phase" not in text
    assert "(ranker_bm25 - (-1.0)) / 4.0" in text
    assert "atan(ranker_dense)" in text


def test_a_ranker_name_must_be_an_identifier() -> None:
    made = model(LINEAR, rankers=("bm25", "my run}"), depth=None)
    with pytest.raises(ExportError, match=r"ranker my run}: expected letters.*Give one with my run}.name"):
        export_model(made, "vespa")
    assert "ranker_mine()" in export_model(made, "vespa", settings={"my run}.name": "mine"}).text


@pytest.mark.parametrize("feature", ["bm25(text)\n}", "bm25(text", "x { }", 'a"b'])
def test_a_feature_cannot_leave_its_expression(feature: str) -> None:
    with pytest.raises(ExportError, match=r"bm25.feature: expected a rank feature"):
        export_model(model(LINEAR, depth=None), "vespa", settings={"bm25.feature": feature})


@pytest.mark.filterwarnings("ignore")
def test_pyvespa_writes_the_same_profile() -> None:
    package = pytest.importorskip("vespa.package", reason="pyvespa is not installed")
    profile = package.RankProfile(
        name="genm",
        inherits="default",
        inputs=[("query(w_bm25)", "double", "0.35"), ("query(w_dense)", "double", "0.65")],
        functions=[
            package.Function("ranker_bm25", "bm25(text)"),
            package.Function("ranker_dense", "closeness(field, embedding)"),
        ],
        first_phase="ranker_dense",
        global_phase=package.GlobalPhaseRanking(
            "query(w_bm25) * normalize_linear(ranker_bm25) + query(w_dense) * normalize_linear(ranker_dense)", 100
        ),
        match_features=["ranker_bm25", "ranker_dense"],
    )
    schema = package.Schema("article", package.Document(), rank_profiles=[profile])
    theirs = schema.schema_to_text.split("rank-profile", 1)[1]
    ours = export_model(model(LINEAR, depth=None), "vespa").text

    def words(text: str) -> set[str]:
        for sign in "{}:()*+,":
            text = text.replace(sign, " ")
        return set(text.split())

    assert words(ours) - {"rank-profile"} == words(theirs) - {"rank-profile"}

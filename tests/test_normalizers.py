import math
import re
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest
from judged_cases import run_of

from genm._math.scaling import COLUMNS, KINDS, MODES
from genm.align import Aligned, align_runs, renormalize
from genm.errors import InputError
from genm.normalizers import ENGINES, Normalizer, normalizer_from_json, normalizer_of, per_ranker
from genm.records import Run


def normalised(scores: list[float], normalizer: str | Normalizer) -> list[float]:
    """Normalise one list with align_runs; descending doc ids keep the rows in the order of the scores."""
    table = {f"d{9 - i}": score for i, score in enumerate(scores)}
    aligned: Aligned = align_runs([run_of({"q": table}, "one")], normalize=normalizer)
    return aligned.scores[:, 0].tolist()


def test_the_kernels_know_the_fields_kinds_and_modes_of_the_record() -> None:
    assert tuple(field.name for field in fields(Normalizer)) == (*COLUMNS, "ties")  # align_runs reads the last
    annotations = {field.name: str(field.type) for field in fields(Normalizer)}
    for word in KINDS:
        assert f"'{word}'" in annotations["kind"]
    for word in MODES:
        assert f"'{word}'" in annotations["lower_mode"]


def test_elasticsearch_minmax_keeps_the_raw_score_of_a_list_that_hardly_varies() -> None:
    assert normalised([12.0, 9.0, 4.0], "elasticsearch-minmax") == [1.0, 0.625, 0.0]
    assert normalised([7.5], "elasticsearch-minmax") == [7.5]
    assert normalised([7.5, 7.5], "elasticsearch-minmax") == [7.5, 7.5]
    assert normalised([7.5000001, 7.5], "elasticsearch-minmax") == [7.5000001, 7.5]


def test_elasticsearch_l2_leaves_a_list_without_length_alone() -> None:
    assert normalised([4.0, 3.0], "elasticsearch-l2") == [0.8, 0.6]
    assert normalised([5.0], "elasticsearch-l2") == [1.0]
    assert normalised([4e-7, 3e-7], "elasticsearch-l2") == [4e-7, 3e-7]


def test_opensearch_minmax_lifts_the_lowest_hit_only() -> None:
    assert normalised([1000.0, 0.5, 0.0], "opensearch-minmax") == [1.0, 0.0005, 0.001]
    assert normalised([3.0], "opensearch-minmax") == [1.0]
    assert normalised([3.0, 3.0], "opensearch-minmax") == [1.0, 1.0]


def test_opensearch_minmax_with_bounds() -> None:
    scores = [10.0, 6.0, 4.0, 2.0, 0.0]
    plain = ENGINES["opensearch-minmax"]
    applied = replace(plain, lower=4.0, lower_mode="within")
    assert normalised(scores, applied) == pytest.approx([1.0, 2 / 6, 0.4, 0.2, 0.001])
    clipped = replace(plain, lower=4.0, lower_mode="clip")
    assert normalised(scores, clipped) == pytest.approx([1.0, 2 / 6, 0.001, 0.001, 0.001])
    both = replace(clipped, upper=8.0, upper_mode="clip")
    assert normalised(scores, both) == pytest.approx([1.0, 0.5, 0.001, 0.001, 0.001])
    upper = replace(plain, upper=20.0, upper_mode="within")
    assert normalised(scores, upper) == pytest.approx([0.5, 0.3, 0.2, 0.1, 0.001])
    assert normalised([5.0], both) == [1.0]  # a constant list comes before the bounds
    assert normalised([3.0, 1.0], clipped) == pytest.approx([1.0, 0.001])  # all below: the list's own minimum


def test_opensearch_zscore_uses_the_sample_cuts_below_the_mean_and_lifts_the_mean_to_the_maximum() -> None:
    # mean 5, sample variance (16 + 1 + 4 + 9) / 3 = 10
    assert normalised([9.0, 6.0, 3.0, 2.0], "opensearch-zscore") == pytest.approx(
        [4 / math.sqrt(10), 1 / math.sqrt(10), 0.001, 0.001]
    )
    assert normalised([3.0, 2.0, 1.0], "opensearch-zscore") == [1.0, 3.0, 0.001]
    assert normalised([4.0], "opensearch-zscore") == [4.0]
    assert normalised([4.0, 4.0, 4.0], "opensearch-zscore") == [4.0, 4.0, 4.0]


def test_opensearch_l2_of_zeros_is_zero() -> None:
    assert normalised([4.0, 3.0], "opensearch-l2") == [0.8, 0.6]
    assert normalised([0.0, 0.0], "opensearch-l2") == [0.0, 0.0]


def test_reciprocal_ranks_count_from_one() -> None:
    for name in ("elasticsearch-rrf", "opensearch-rrf", "vespa-rrf"):
        assert normalised([9.0, 8.0, 1.0], name) == [1 / 61, 1 / 62, 1 / 63]


def test_weaviate_relative_score_gives_a_lone_hit_its_whole_weight() -> None:
    assert normalised([11.0, 8.0, 6.0, 1.0], "weaviate-relative") == [1.0, 0.7, 0.5, 0.0]
    assert normalised([0.2], "weaviate-relative") == [1.0]
    assert normalised([0.2, 0.2], "weaviate-relative") == [1.0, 1.0]


def test_qdrant_dbsf_spans_three_standard_deviations_and_cuts_nothing() -> None:
    # mean 2, sample deviation 1: (s - (2 - 3)) / 6
    assert normalised([3.0, 2.0, 1.0], "qdrant-dbsf") == pytest.approx([4 / 6, 3 / 6, 2 / 6])
    assert normalised([0.3], "qdrant-dbsf") == [0.5]
    assert normalised([0.3, 0.3], "qdrant-dbsf") == [0.5, 0.5]
    far = [100.0] + [0.0] * 99  # z = 9.9: beyond three deviations, beyond one
    table = {f"d{i:03}": score for i, score in enumerate(far)}
    aligned = align_runs([run_of({"q": table}, "one")], normalize="qdrant-dbsf")
    assert aligned.scores.max() == pytest.approx(0.5 + 9.9 / 6)


def test_milvus_maps_each_metric_by_a_fixed_curve() -> None:
    assert normalised([1.0, 0.0, -1.0], "milvus-cosine") == [1.0, 0.5, 0.0]
    assert normalised([1.0, 0.0, -1.0], "milvus-ip") == pytest.approx([0.75, 0.5, 0.25])
    assert normalised([1.0, 0.0], "milvus-bm25") == pytest.approx([0.5, 0.0])
    assert normalised([0.0, -1.0], "milvus-l2") == pytest.approx([1.0, 0.5])  # distances 0 and 1, negated
    assert normalised([1.0], "milvus-bm25") == pytest.approx([0.5])  # no statistics of the list, no rule


def test_mongodb_puts_a_constant_list_at_nought() -> None:
    assert normalised([21.0, 13.0, 5.0, 1.0], "mongodb-minmax") == [1.0, 0.6, 0.2, 0.0]
    assert normalised([21.0, 21.0], "mongodb-minmax") == [0.0, 0.0]
    assert normalised([0.0, -1000.0], "mongodb-sigmoid") == [0.5, 0.0]


def test_vespa_linear_puts_a_constant_list_in_the_middle() -> None:
    assert normalised([6.0, 3.0, 2.0], "vespa-linear") == [1.0, 0.25, 0.0]
    assert normalised([6.0], "vespa-linear") == [0.5]


def test_a_name_a_record_and_an_engine_are_all_normalisers() -> None:
    assert normalizer_of("max") == Normalizer("max")
    assert normalizer_of("qdrant-dbsf") is ENGINES["qdrant-dbsf"]
    mine = Normalizer("affine", lower=0.0, upper=2.0)
    assert normalizer_of(mine) is mine
    for engine in ENGINES.values():
        normalizer_of(engine)


@pytest.mark.parametrize(
    ("normalizer", "message"),
    [
        ("softmax", "expected one of none, atan.*or a Normalizer; found 'softmax'"),
        ("minmaks", r"found 'minmaks'\. Did you mean minmax\?"),
        (3, "found 3"),
        ("affine", "expected lower to be a number: affine needs both bounds; found None"),
        (Normalizer("affine", lower=1.0), "expected upper to be a number"),
        (Normalizer("affine", lower=0.0, upper=1.0, upper_mode="within"), "upper_mode to be apply or clip"),
        (Normalizer("zscore", lower=1.0), "expected lower to be nothing: only minmax and affine read it"),
        (Normalizer("minmax", lower=1.0, upper=1.0), "expected upper to be a number above lower, 1.0; found 1.0"),
        (Normalizer("minmax", lower=math.nan), "expected lower to be a finite number; found nan"),
        (Normalizer("minmax", missing="max"), "expected missing to be a number or \"minimum\"; found 'max'"),
        (Normalizer("minmax", scale="big"), "expected scale to be a number; found 'big'"),
        (Normalizer("minmax", shift=None), "expected shift to be a number; found None"),
        (Normalizer("cubic"), "expected kind to be one of none"),
        (Normalizer("minmax", lower_mode="bend"), "expected lower_mode to be one of ignore, apply"),
        (Normalizer("reciprocal", k=-1.0), "expected k to be a number above -1"),
        (Normalizer("zscore", ddof=-1.0), "expected ddof to be a number of at least 0"),
        (Normalizer("minmax", ddof=1.0), "expected ddof to be nothing: only zscore reads it"),
        (Normalizer("l2", at_mean="max"), "expected at_mean to be nothing"),
        (Normalizer("minmax", floor_at=0.0), "expected floor to be a number, because floor_at is given"),
    ],
)
def test_a_normaliser_that_makes_no_sense_is_refused(normalizer: str | Normalizer, message: str) -> None:
    with pytest.raises(InputError, match=message):
        normalizer_of(normalizer)


def test_values_per_ranker_come_for_all_by_name_or_in_order() -> None:
    assert per_ranker("depth", 5, ("a", "b")) == (5, 5)
    assert per_ranker("depth", {"b": 2, "a": None}, ("a", "b")) == (None, 2)
    assert per_ranker("depth", [1, 2], ("a", "b")) == (1, 2)
    assert per_ranker("normalize", "minmax", ("a", "b")) == ("minmax", "minmax")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": 1, "b": 2, "c": 3}, "depth: expected a value for each of the rankers a, b; found unknown c"),
        ({"a": 1}, "found nothing for b"),
        ([1, 2, 3], "expected 2 values, one for each of the rankers a, b; found 3"),
    ],
)
def test_names_that_do_not_fit_the_rankers_are_refused(value: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        per_ranker("depth", value, ("a", "b"))


def test_the_documentation_gives_every_engine_its_value() -> None:
    page = (Path(__file__).parents[1] / "docs" / "normalizers.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `([a-z0-9-]+)` \| `(Normalizer\(.*?\))` \|", page, re.MULTILINE))
    assert listed.keys() == ENGINES.keys()
    for name, value in listed.items():
        assert eval(value, {"Normalizer": Normalizer, "pi": math.pi}) == ENGINES[name], name
    for kind in KINDS:
        assert f"| `{kind}`" in page
    for mode in MODES:
        assert f"| `{mode}`" in page


def test_gaps_of_z_scores_are_the_lists_minimum_when_asked_for_by_name() -> None:
    """A record keeps its own rule, and so does a model of an earlier release."""
    assert normalizer_of("zscore") == Normalizer("zscore", missing="minimum")
    assert normalizer_of(Normalizer("zscore")).missing == 0.0
    assert ENGINES["qdrant-dbsf"].missing == ENGINES["opensearch-zscore"].missing == 0.0
    old = asdict(Normalizer("zscore"))
    assert normalizer_from_json(old, "model.json", "rankers[0].normalizer").missing == 0.0


@pytest.mark.parametrize("kind", ["none", "max", "l2", "atan"])
def test_gaps_are_below_negative_scores_too(kind) -> None:
    runs = {
        "a": Run.from_dict({"q": {"x": 2.0, "y": -1.0}}, name="a"),
        "b": Run.from_dict({"q": {"x": 2.0, "z": 1.0}}, name="b"),
    }
    aligned = align_runs(runs, normalize=kind)
    assert [normalizer.missing for normalizer in aligned.normalizers] == ["minimum", 0.0]
    docs = [aligned.docs[int(code)] for code in aligned.doc]
    scores = dict(zip(docs, aligned.scores.tolist(), strict=True))
    assert scores["z"][0] == scores["y"][0] < 0.0
    assert scores["y"][1] == 0.0
    assert renormalize(align_runs(runs), kind).normalizers == aligned.normalizers
    given = align_runs(runs, normalize=Normalizer(kind))
    assert {normalizer.missing for normalizer in given.normalizers} == {0.0}


@pytest.mark.parametrize("kind", ["minmax", "sum", "rank", "reciprocal", "sigmoid"])
def test_gaps_stay_0_where_that_is_the_bottom(kind) -> None:
    run = Run.from_dict({"q": {"x": 2.0, "y": -1.0}}, name="a")
    aligned = align_runs({"a": run, "b": run}, normalize=kind)
    assert {normalizer.missing for normalizer in aligned.normalizers} == {0.0}
    assert aligned.scores.min() >= 0.0

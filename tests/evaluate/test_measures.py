"""Measures are values that read back from their own text, spelt as ir_measures spells them."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import genm
from genm.errors import InputError
from genm.evaluate import Measure, parse_measure, parse_measures
from genm.evaluate.measures import FACTS

cutoffs = st.integers(1, 10**6)
rels = st.integers(1, 5)
flags = st.booleans()
MEASURES = st.one_of(
    *(
        st.builds(Measure, st.just(name), cutoff=cutoffs | st.none(), rel=rels, judged_only=flags)
        for name in ("AP", "RR")
    ),
    *(
        st.builds(Measure, st.just(name), cutoff=cutoffs, rel=rels, judged_only=flags)
        for name in ("P", "R", "Success")
    ),
    st.builds(
        Measure,
        st.just("nDCG"),
        cutoff=cutoffs | st.none(),
        dcg=st.sampled_from(["log2", "exp-log2"]),
        judged_only=flags,
    ),
    st.builds(Measure, st.just("Rprec"), rel=rels, judged_only=flags),
    st.builds(Measure, st.just("Bpref"), rel=rels),
    st.builds(Measure, st.just("Judged"), cutoff=cutoffs | st.none()),
    st.builds(Measure, st.just("IPrec"), recall=st.floats(0, 1), rel=rels, judged_only=flags),
)


@given(measure=MEASURES)
def test_a_measure_reads_back_from_its_own_text(measure: Measure) -> None:
    assert parse_measure(str(measure)) == measure


@given(measure=MEASURES)
def test_ir_measures_reads_the_same_text_to_a_measure_of_the_same_text_and_hash(measure: Measure) -> None:
    ir_measures = pytest.importorskip("ir_measures", reason="ir-measures is not installed")
    params = {key: getattr(measure, key) for key in ("rel", "dcg", "judged_only")}
    default = Measure("AP")
    params = {key: value for key, value in params.items() if value != getattr(default, key)}
    theirs = getattr(ir_measures, measure.name)(**params)
    at = measure.recall if measure.name == "IPrec" else measure.cutoff
    theirs = theirs if at is None else theirs @ at
    theirs.validate_params()
    assert repr(theirs) == repr(measure)
    assert hash(theirs) == hash(measure)
    assert parse_measure(theirs) == measure


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MAP", "AP"),
        ("NDCG@10", "nDCG@10"),
        ("ndcg@10", "nDCG@10"),
        ("MRR@10", "RR@10"),
        ("Recall@100", "R@100"),
        ("Precision@5", "P@5"),
        ("RPrec", "Rprec"),
        ("BPref", "Bpref"),
        ("map", "AP"),
        ("map_cut_10", "AP@10"),
        ("ndcg", "nDCG"),
        ("ndcg_cut_10", "nDCG@10"),
        ("ndcg_cut.10", "nDCG@10"),
        ("P_5", "P@5"),
        ("P.5", "P@5"),
        ("recall_100", "R@100"),
        ("recip_rank", "RR"),
        ("success_1", "Success@1"),
        ("iprec_at_recall_0.50", "IPrec@0.5"),
        (" P( rel = 2 , judged_only=True ) @ 5 ", "P(rel=2,judged_only=True)@5"),
        ("P(rel=1)@5", "P@5"),
        ("P(cutoff=5)", "P@5"),
        ('nDCG(dcg="exp-log2")@3', "nDCG(dcg='exp-log2')@3"),
        ("IPrec@1", "IPrec@1.0"),
    ],
)
def test_other_spellings_mean_the_same(text: str, expected: str) -> None:
    assert str(parse_measure(text)) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NDGC@10", "'NDGC' is not known. Did you mean nDCG"),
        ("Preccision@3", "Did you mean Precision"),
        ("xyzzy", "Known are AP, P, R, nDCG"),
        ("ERR@10", "'ERR' is not known"),
        ("", "expected a form such as AP"),
        ("AP(", "expected a form such as AP"),
        ("AP@", "expected a form such as AP"),
        ("P", "measure P: expected a cutoff, found none. Write it as P@10"),
        ("IPrec", "expected a recall, found none. Write it as IPrec@0.5"),
        ("P@0", "expected cutoff to be a positive integer, found 0"),
        ("P@-3", "found -3"),
        ("AP@1.5", "expected cutoff to be a positive integer, found 1.5"),
        ("AP@ten", "expected a number, found 'ten'"),
        ("AP(rel=0)", "expected rel to be a positive integer, found 0"),
        ("AP(rel=True)", "expected rel to be a positive integer, found True"),
        ("AP(rel)", "found 'rel' in brackets, expected key=value"),
        ("AP(depth=3)", "with a key among cutoff, rel, judged_only"),
        ("AP(judged_only=1)", "expected judged_only=True or False, found 1"),
        ("nDCG(rel=2)@10", "with a key among cutoff, dcg, judged_only"),
        ("nDCG(dcg='e')@10", "expected dcg='log2' or dcg='exp-log2', found 'e'"),
        ("Bpref@5", "found cutoff=5, expected only rel"),
        ("P(cutoff=5)@5", "expected one cutoff, found two"),
        ("IPrec@1.5", "expected a recall from 0 to 1, found 1.5"),
        ("IPrec@nan", "expected a recall from 0 to 1, found nan"),
    ],
)
def test_what_is_no_measure_is_refused_with_advice(text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_measure(text)
    assert said in str(refused.value)


def test_a_measure_made_by_hand_is_checked_too() -> None:
    with pytest.raises(InputError, match="'MEOW' is not known"):
        Measure("MEOW")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"found recall=0\.5, expected only cutoff, rel"):
        Measure("AP", recall=0.5)


def test_numbers_of_numpy_are_numbers() -> None:
    assert Measure("P", cutoff=np.int64(5), rel=np.int32(2)) == parse_measure("P(rel=2)@5")  # type: ignore[arg-type]


def test_a_list_is_split_outside_brackets_only_and_names_each_measure_once() -> None:
    text = "AP, P(rel=2, judged_only=True)@5  nDCG@10,MAP"
    assert [str(m) for m in parse_measures(text)] == ["AP", "P(rel=2,judged_only=True)@5", "nDCG@10"]
    assert [str(m) for m in parse_measures(["AP,P@5", Measure("RR")])] == ["AP", "P@5", "RR"]
    assert parse_measures(Measure("RR")) == (Measure("RR"),)


def test_a_list_may_mix_text_and_measures_of_ir_measures() -> None:
    ir_measures = pytest.importorskip("ir_measures", reason="ir-measures is not installed")
    mixed = ["AP,P@5", Measure("RR"), ir_measures.nDCG @ 10]
    assert [str(m) for m in parse_measures(mixed)] == ["AP", "P@5", "RR", "nDCG@10"]


@pytest.mark.parametrize("nothing", ["", " , ", [], [""]])
def test_an_empty_list_is_refused(nothing: object) -> None:
    with pytest.raises(InputError, match="expected at least one, found none"):
        parse_measures(nothing)


@pytest.mark.parametrize("text", ["AP(,P@5", "P(rel=2@5", "AP)"])
def test_brackets_that_do_not_close_are_refused_in_a_list(text: str) -> None:
    with pytest.raises(InputError):
        parse_measures(text)


def test_facts_are_asked_of_the_measure_and_not_told_by_its_name():
    """A new measure then needs no edit elsewhere."""
    names = "|".join(FACTS)
    asks = re.compile(rf"""\.name (?:==|!=|in|not in) \(?"(?:{names})\"""")
    files = sorted(Path(genm.__file__).parent.rglob("*.py"))
    assert len(files) > 100
    assert [file.name for file in files if asks.search(file.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("name", FACTS)
def test_examples_read_back_and_name_their_measure(name):
    measure = parse_measure(FACTS[name].example)
    assert (measure.name, str(measure)) == (name, FACTS[name].example)
    for other in FACTS[name].other_names:
        assert parse_measure(FACTS[name].example.replace(name, other, 1)) == measure

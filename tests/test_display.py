"""What a notebook shows: labelled tables, cut with a count, in which ids and names stay text."""

import re
import types
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import made_up

from genm import display
from genm.align import align_runs
from genm.evaluate import compare_runs, evaluate_run
from genm.evidence import cross_validate, gather_evidence
from genm.learn import EqualFuser, GivenFuser, NewtonFuser
from genm.read import qrels_from_dict, run_from_dict
from genm.records import Note

HOSTILE = "<img src=x onerror=alert(1)>\"'&</style></td>\u202e\x7f"


class Reader(HTMLParser):
    """Tags and attribute names of a piece of HTML, and its visible text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words, self._inside = [], set(), "", ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self._inside = tag

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside != "style":
            self.words += data + " "


def words(shown):
    return re.sub(r"\s+", " ", Reader(shown._repr_html_()).words)


def results(word="q", ranker="dense", note=None):
    """One object of every class that is shown; `word` begins every id, `ranker` is a name."""
    scores = {f"{word}{q}": {f"{word}{d}": float((3 * q + d) % 7) for d in range(6)} for q in range(12)}
    other = {query: {doc: -score for doc, score in docs.items()} for query, docs in scores.items()}
    grades = {query: {doc: int(score > 4) for doc, score in docs.items()} for query, docs in scores.items()}
    run, rival = run_from_dict(scores, name=ranker), run_from_dict(other, name="bm25")
    qrels = qrels_from_dict(grades)
    run, qrels = (replace(part, notes=(note,) if note else ()) for part in (run, qrels))
    aligned = align_runs([run, rival], qrels)
    evaluations = [evaluate_run(one, qrels, "AP,nDCG@10") for one in (rival, run)]
    fuser, evidence = gather_evidence(aligned, EqualFuser, "AP", folds=3)
    return {
        "run": run,
        "qrels": qrels,
        "aligned": aligned,
        "evaluation": evaluations[1],
        "comparison": compare_runs(evaluations, n_resamples=100),
        "fuser": fuser,
        "not fitted": NewtonFuser(beta=50.0),
        "model": replace(fuser.to_model(), training={"train": 0.123456, "interval": [0.1, 0.2], "by": {word: 1}}),
        "held out": evidence.held_out,
        "evidence": evidence,
    }


@pytest.fixture(scope="module")
def shown():
    return results()


NAMES = (
    "run", "qrels", "aligned", "evaluation", "comparison", "fuser", "not fitted", "model", "held out", "evidence",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_hostile_text_stays_text(shown, name):
    hostile = results(HOSTILE, HOSTILE, Note("x", 1, HOSTILE))[name]
    reader = Reader(hostile._repr_html_())
    assert set(reader.tags) <= {
        "div", "style", "p", "strong", "bdi", "table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li",
    }  # fmt: skip
    assert reader.attributes <= {"class", "scope"}
    assert reader.tags.count("td") == Reader(shown[name]._repr_html_()).tags.count("td")
    if name != "not fitted":
        assert HOSTILE.replace("\x7f", "\ufffd") in reader.words


@given(st.text())
@settings(max_examples=50)
def test_any_text_is_shown_as_it_is(text):
    found = display.html(text, text, [display.Table(text, [text], [[text]], 1)], [Note("x", 1, text)])
    plain = display.html("x", "x", [display.Table("x", ["x"], [["x"]], 1)], [Note("x", 1, "x")])
    assert Reader(found).tags == Reader(plain).tags


@pytest.mark.parametrize("name", NAMES)
def test_every_object_shows_a_table_and_fits_one_line_as_text(shown, name):
    assert "\n" not in repr(shown[name])
    assert ("<table>" in shown[name]._repr_html_()) == (name != "not fitted")


def test_long_tables_are_cut_with_a_count(shown):
    for name in ("run", "qrels", "evaluation", "held out"):
        assert "first 10 of 12 queries" in words(shown[name])
        assert "q11" not in words(shown[name])
    many = GivenFuser(tuple(np.full(31, 1 / 31))).fit(made_up(0, quality=(1.0,) * 31, n_queries=2, n_docs=20))
    assert "Weights: first 30 of 31 rankers" in words(many)
    few = results("q")["run"]
    assert "first" not in words(run_from_dict({"a": {"d": 1.0}}))
    assert "12 queries, 72 rows" in words(few)


def test_many_notes_are_cut_with_a_count():
    told = Reader(display.html("x", "", notes=[Note("n", 1, f"note {i}") for i in range(40)])).words
    assert "first 30 of 40" in told
    assert "note 29" in told
    assert "note 30" not in told


def test_figures_are_those_of_the_objects(shown):
    evaluation, comparison = shown["evaluation"], shown["comparison"]
    assert f"AP {evaluation.mean('AP'):.4f}" in words(evaluation)
    contrast = comparison.contrast("dense", "AP")
    assert f"+{contrast.difference:.4f}" in words(comparison)
    assert "95% interval" in words(comparison)
    assert f"Mean AP {shown['held out'].mean:.4f} held out: 12 queries, 3 folds." in words(shown["held out"])
    assert shown["evidence"].verdict().replace("-", "\u2212") in words(shown["evidence"]).replace("-", "\u2212")
    assert "dense 0.5000 Normalizer('minmax')" in words(shown["fuser"])
    assert "train 0.1235" in words(shown["model"])
    assert "interval 0.1, 0.2" in words(shown["model"])
    assert "Not fitted: call fit first." in words(shown["not fitted"])
    assert "dense Normalizer('minmax') all 72 100.0%" in words(shown["aligned"])


def test_negative_numbers_have_a_minus_sign(shown):
    table = display.Table("t", ["a", "b"], [["-1", "-2.5"]], 1)
    assert "<td><bdi>\u22122.5</bdi></td>" in display.html("x", "", [table])
    assert "<bdi>-1</bdi>" in display.html("x", "", [table])  # an id is left as it is


def test_a_single_query_has_no_interval():
    run, rival = run_from_dict({"q": {"a": 1.0, "b": 2.0}}, name="x"), run_from_dict({"q": {"a": 2.0, "b": 1.0}})
    qrels = qrels_from_dict({"q": {"a": 1}})
    assert "\u2013" in words(compare_runs([evaluate_run(r, qrels, "AP") for r in (run, rival)]))


def test_an_empty_query_is_shown():
    run = run_from_dict({"q": {"a": 1.0}})
    run = replace(run, starts=np.array([0, 0]), doc=run.doc[:0], score=run.score[:0])
    assert "1 query, 0 rows" in words(run)


def test_what_training_returns_is_shown_whole(shown):
    note = Note("x", 1, "something was left out")
    trained = types.SimpleNamespace(
        model=shown["model"], evidence=shown["evidence"], verdict="Good.", notes=(note,)
    )
    told = Reader(display.trained(trained)).words
    assert "Trained model" in told
    for part in ("Good.", "Gain, held out", "Weights learned without each fold", "something was left out"):
        assert part in told
    trained.evidence = None
    told = Reader(display.trained(trained)).words
    assert "dense 0.5000" in re.sub(r"\s+", " ", told)
    assert "Gain, held out" not in told


def test_weights_have_names(shown):
    assert shown["fuser"].ranker_weights_ == shown["model"].ranker_weights == {"dense": 0.5, "bm25": 0.5}
    assert repr(shown["held out"]).startswith("<HeldOut AP 0.")
    assert f"over {shown['evidence'].label(shown['evidence'].strongest)}" in repr(shown["evidence"])


@pytest.mark.needs("pandas")
def test_values_come_as_labelled_frames(shown):
    held, evaluation = shown["held out"], shown["evaluation"]
    frame = held.to_pandas()
    assert frame.index.name == "query_id"
    assert list(frame.columns) == ["fold", "AP"]
    assert frame.loc["q3", "AP"] == held.per_query[3]
    assert list(held.weights_to_pandas().columns) == ["dense", "bm25"]
    assert evaluation.to_pandas().loc["q5", "nDCG@10"] == evaluation.per_query("nDCG@10")[5]
    assert shown["evidence"].to_pandas().shape == (12, 7)
    compared = shown["comparison"].to_pandas()
    assert compared.loc[0, "difference"] == shown["comparison"].contrasts[0].difference
    assert {"p_wilcoxon", "p_t", "p_randomization"} <= set(compared.columns)


def test_cross_validation_carries_its_labels():
    aligned = made_up(0, n_queries=6)
    held = cross_validate(aligned, EqualFuser, "nDCG@5", folds=2)
    assert held.query_ids == tuple(aligned.queries)
    assert held.rankers == aligned.rankers
    assert held.measure == "nDCG@5"

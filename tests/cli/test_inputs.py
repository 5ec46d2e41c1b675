import pytest
from hypothesis import given
from hypothesis import strategies as st

from genm.cli.options import (
    DuplicateRule,
    check_output,
    check_rules,
    depths,
    named_paths,
    normalizers,
    per_ranker,
    some_measures,
    split_list,
    weights_by_name,
)
from genm.errors import InputError
from genm.read.rows import Duplicates


class TestLists:
    def test_commas_and_repetition_mean_the_same(self):
        assert split_list(["AP,P@5", "RR"]) == split_list(["AP", "P@5,RR"]) == ["AP", "P@5", "RR"]

    def test_commas_in_brackets_belong_to_the_item(self):
        assert split_list(["P(rel=2,judged_only=True)@5,AP"]) == ["P(rel=2,judged_only=True)@5", "AP"]

    def test_empty_items_vanish(self):
        assert split_list([" AP , ,", ""]) == ["AP"]

    @given(st.lists(st.text("abc@1", min_size=1), max_size=6))
    def test_what_was_joined_is_split(self, items):
        assert split_list([",".join(items)]) == items

    def test_the_last_of_a_list_is_completed(self):
        assert "AP,nDCG@10" in some_measures("AP,n")
        assert "nDCG@10" in some_measures("n")


class TestNames:
    def test_names_come_before_the_equals_sign_or_from_the_file(self):
        found = named_paths(["a=x.trec", "runs/bm25.v2.trec.gz", "dense.RUN"])
        assert found == {"a": "x.trec", "bm25.v2": "runs/bm25.v2.trec.gz", "dense": "dense.RUN"}

    def test_a_path_with_an_equals_sign_is_a_path(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "k=60.trec").touch()
        assert named_paths(["k=60.trec"]) == {"k=60": "k=60.trec"}
        assert named_paths(["runs/k=60.trec"]) == {"k=60": "runs/k=60.trec"}

    def test_only_the_first_equals_sign_counts(self):
        assert named_paths(["rrf=k=60.trec"]) == {"rrf": "k=60.trec"}

    def test_standard_input_has_a_name(self):
        assert named_paths(["-"]) == {"stdin": "-"}
        assert named_paths(["a=-"]) == {"a": "-"}

    @pytest.mark.parametrize(("argument", "lacks"), [("=x.trec", "name"), ("a=", "file")])
    def test_half_a_pair(self, argument, lacks):
        with pytest.raises(InputError, match=f"expected NAME=FILE; found no {lacks}"):
            named_paths([argument])

    def test_two_of_one_name(self):
        with pytest.raises(InputError, match=r"two runs are called 'a' \(x/a.trec and y/a.gz\)"):
            named_paths(["x/a.trec", "y/a.gz"])

    @pytest.mark.parametrize("others", [("-",), (None, "-")])
    def test_standard_input_serves_once(self, others):
        with pytest.raises(InputError, match="can be read only once"):
            named_paths(["a=-"], *others)
        with pytest.raises(InputError, match="can be read only once"):
            named_paths(["a=-", "b=-"])


class TestOutput:
    def test_what_can_be_written(self, tmp_path):
        for path in (None, "-", str(tmp_path / "new.json")):
            check_output(path)

    def test_what_cannot(self, tmp_path):
        with pytest.raises(InputError, match="expected a file to write; found a folder"):
            check_output(str(tmp_path))
        with pytest.raises(InputError, match=r"expected a folder to write into; found no .*no\. Make it first"):
            check_output(str(tmp_path / "no" / "new.json"))
        with pytest.raises(InputError, match=r"-o -: a model is written to a file"):
            check_output("-", standard=False)

    def test_what_this_user_must_not_write(self, tmp_path, monkeypatch):
        asked = []
        monkeypatch.setattr("os.access", lambda path, _: asked.append(str(path)))
        (tmp_path / "old.json").touch()
        for path, needed in ((tmp_path / "old.json", tmp_path), ("/dev/null", "/dev/null")):
            with pytest.raises(InputError, match=r"must not be written to by this user"):
                check_output(str(path))
            assert asked.pop() == str(needed)


class TestPerRanker:
    def test_one_for_all_or_one_for_each(self):
        assert per_ranker("--x", []) is None
        assert per_ranker("--x", ["3"]) == "3"
        assert per_ranker("--x", ["a=1,b=2", "c=3"]) == {"a": "1", "b": "2", "c": "3"}

    @pytest.mark.parametrize("values", [["1,2"], ["a=1,2"], ["a=1,a=2"]])
    def test_nothing_in_between(self, values):
        with pytest.raises(InputError, match=r"--x .*: expected one value for all, or NAME=VALUE once for each"):
            per_ranker("--x", values)

    def test_depths(self):
        assert depths([]) is None
        assert depths(["100"]) == 100
        assert depths(["a=10,b=20"]) == {"a": 10, "b": 20}

    @pytest.mark.parametrize("text", ["0", "-1", "ten", "1.5", "²", "a=0"])
    def test_depths_are_whole_numbers(self, text):
        with pytest.raises(InputError, match=r"--depth .*: expected a whole number from 1 on"):
            depths([text])

    def test_normalizers(self):
        assert normalizers([]) == "minmax"
        assert normalizers(["zscore"]) == "zscore"
        assert normalizers(["a=l2,b=max"]) == {"a": "l2", "b": "max"}


class TestWeights:
    def test_are_in_the_rankers_order_and_may_be_negative_or_zero(self):
        found = weights_by_name(["b=-0.5", "a=2,c=0"], ["a", "b", "c"])
        assert list(found.items()) == [("a", 2.0), ("b", -0.5), ("c", 0.0)]

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (["0.5"], "--weights 0.5: expected NAME=NUMBER for each of a, b"),
            ([""], "expected NAME=NUMBER for each of a, b"),
            (["a=1"], "expected one weight for each of a, b; missing: b"),
            (["a=1,b=1,c=1"], "unknown: c"),
            (["a=1,x=1"], "unknown: x; missing: b"),
            (["a=1,b=half"], "--weights b=half: expected a finite number"),
            (["a=1,b=nan"], "--weights b=nan: expected a finite number"),
            (["a=inf,b=1"], "--weights a=inf: expected a finite number"),
            (["a=0,b=0"], "expected at least one that is not 0"),
        ],
    )
    def test_refusals(self, values, message):
        with pytest.raises(InputError, match=message):
            weights_by_name(values, ["a", "b"])


def test_the_rules_for_duplicates_are_those_of_the_readers():
    from typing import get_args

    assert tuple(rule.value for rule in DuplicateRule) == get_args(Duplicates)


def test_rules_are_checked_against_the_names():
    check_rules("auto", None, ["a", "b"])
    check_rules({"a": "l2", "b": "qdrant-dbsf"}, {"a": 3, "b": 5}, {"a": "a.trec", "b": "b.trec"})
    with pytest.raises(InputError, match=r"found 'minimax'. Did you mean minmax"):
        check_rules("minimax", None, ["a"])
    with pytest.raises(InputError, match=r"depth: expected a value for each of the rankers a; found unknown b"):
        check_rules("minmax", {"b": 3}, ["a"])

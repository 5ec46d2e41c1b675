"""What holds for every option of every command, whatever the version of typer."""

import inspect
import shlex
from typing import get_args

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.models import OptionInfo

from genm.cli.app import app, described
from genm.cli.options import (
    EXAMPLE_WIDTH,
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


def verbs(command=None, path=()):
    """Yield the path and the command of everything that can be called."""
    command = command or typer.main.get_command(app)
    yield path, command
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            yield from verbs(command.get_command(None, name), (*path, name))


ALL = dict(verbs())


@pytest.mark.parametrize("path", [path for path in ALL if path], ids=lambda path: " ".join(path))
def test_an_option_that_shows_its_own_name_says_it(path):
    """typer 0.27 takes the metavar for the name if they differ in case alone: --query became --QUERY."""
    callback = ALL[path].callback
    for name, parameter in inspect.signature(inspect.unwrap(callback)).parameters.items() if callback else ():
        for option in get_args(parameter.annotation):
            if isinstance(option, OptionInfo) and (option.metavar or "").lower() == name:
                said = (option.default, *(option.param_decls or ()))  # inside Annotated the first is a name
                assert any(str(one).startswith("--") for one in said), name


def examples(command):
    return [line.strip() for line in command.help.partition("\b\n")[2].splitlines()[1:]]


@pytest.mark.parametrize("path", ALL, ids=lambda path: " ".join(path) or "genm")
class TestHelp:
    def test_has_examples_that_can_be_copied(self, genm, path):
        shown = genm(*path, "--help").out.splitlines()
        wanted = examples(ALL[path])
        assert wanted
        for line in wanted:
            assert len(line) <= EXAMPLE_WIDTH
            assert "    " + line in shown

    def test_fits_80_columns(self, genm, path):
        assert max(map(len, genm(*path, "--help").out.splitlines())) <= 80

    def test_begins_with_the_usage(self, genm, path):
        assert genm(*path, "-h").out.startswith(f"Usage: {' '.join(('genm', *path))} [OPTIONS]")

    def test_examples_are_right(self, path):
        for line in examples(ALL[path]):
            words = shlex.split(line, comments=True)
            words = words[words.index("genm") + 1 :]
            words = words[: words.index("|")] if "|" in words else words
            command, context = ALL[()], None
            name = "genm"
            while hasattr(command, "get_command"):
                context = command.make_context(name, [], parent=context, resilient_parsing=True)
                name, *words = words if command.get_command(context, words[0]) else (command.default, *words)
                command = command.get_command(context, name)
                context.resilient_parsing = False
            command.make_context(name, words, parent=context)

    def test_tells_what_every_option_is_for(self, path):
        context = ALL[path].make_context("genm", [], resilient_parsing=True)
        for param in ALL[path].get_params(context):
            assert param.help, param.name
            assert getattr(param, "is_flag", False) or param.metavar, param.name

    def test_has_a_summary_that_is_not_cut(self, genm, path):
        if path:
            shown = genm(*path[:-1], "--help").out
            assert f"  {path[-1]} " in shown
        assert "..." not in genm(*path, "--help").out.partition("Commands:")[2]


def test_usage_names_the_arguments(genm):
    assert "Usage: genm evaluate [OPTIONS] [QRELS] [RUN...]\n" in genm("evaluate", "--help").out


def test_options_show_what_they_take_and_their_defaults(genm):
    shown = " ".join(genm("fuse", "--help").out.split())
    assert "-o, --output FILE File to write; - is standard output. [default: -]" in shown
    assert "--lenient Repair" in shown
    assert "--tag NAME The run's name in the last column. [default: genm]" in shown


def test_required_options_say_so(genm):
    assert "[required]" in genm("update", "--help").out


def test_one_example_is_not_called_examples():
    assert "Example:\n  one" in described("text", ("one",))
    assert "Examples:\n  one\n  two" in described("text", ("one", "two"))


@pytest.mark.parametrize("words", [("fit", "--qrels"), ("fit", "-o"), ("fit", "--nope"), ("cache", "--nope")])
def test_a_wrong_call_points_to_the_help_of_the_verb(genm, words):
    found = genm(*words)
    assert found.code == 2
    assert found.err.endswith(f"See: genm {words[0]} --help\n")


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
            with pytest.raises(InputError, match=r": permission denied: cannot write to "):
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
        with pytest.raises(InputError, match=r"--depth .*: expected a positive integer"):
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

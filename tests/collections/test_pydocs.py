import os
import subprocess
import sys
import textwrap
import types

import numpy as np
import pytest

from genm import cache
from genm.collections import pydocs
from genm.errors import InputError, MissingExtraError

DIGEST = textwrap.dedent(
    """
    from genm.cache import content_key
    from genm.collections.pydocs import load_pydocs
    c = load_pydocs()
    print(content_key(c.doc_ids, c.doc_texts, c.query_ids, c.query_texts, list(c.qrels.docs), c.qrels.doc))
    """
)


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def use_own_cache(own_cache, monkeypatch):
    monkeypatch.setenv("GENM_CACHE", str(own_cache))


@pytest.fixture(scope="module")
def collection(own_cache):
    pytest.importorskip("sklearn", reason="needs scikit-learn")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GENM_CACHE", str(own_cache))
        return pydocs.load_pydocs()


def relevant(collection, query_id):
    code = list(collection.qrels.queries).index(query_id)
    docs = list(collection.qrels.docs)
    rows = slice(*collection.qrels.starts[code : code + 2])
    return {docs[d] for d in collection.qrels.doc[rows]}


def test_size(collection):
    """At least; how many there are depends on the versions of the libraries."""
    assert len(collection.doc_ids) > 2000
    assert len(collection.query_ids) > 700
    assert len(collection.qrels.doc) > 2 * len(collection.query_ids)


def test_ids_are_distinct_sorted_and_consistent(collection):
    assert list(collection.doc_ids) == sorted(set(collection.doc_ids))
    assert list(collection.query_ids) == sorted(set(collection.query_ids))
    assert set(collection.query_ids) <= set(collection.doc_ids)
    assert tuple(collection.qrels.queries) == collection.query_ids
    assert set(collection.qrels.docs) <= set(collection.doc_ids)
    assert set(collection.qrels.relevance.tolist()) == {1}
    assert np.diff(collection.qrels.starts).min() >= 2
    assert all(collection.doc_texts)
    assert all(collection.query_texts)


def test_the_object_itself_is_left_out_and_never_relevant(collection):
    assert collection.left_out == {q: frozenset({q}) for q in collection.query_ids}
    assert not any(q in relevant(collection, q) for q in collection.query_ids[::20])


def test_an_object_of_each_library(collection):
    texts = dict(zip(collection.doc_ids, collection.doc_texts, strict=True))
    queries = dict(zip(collection.query_ids, collection.query_texts, strict=True))
    assert queries["numpy.concatenate"] == "Join a sequence of arrays along an existing axis."
    assert {"numpy.stack", "numpy.hstack", "numpy.split"} <= relevant(collection, "numpy.concatenate")
    assert "numpy.ma.concatenate" not in texts
    assert "Join a sequence of arrays along" not in texts["numpy.concatenate"]
    assert "Parameters" in texts["numpy.concatenate"]
    assert "See Also\n" not in texts["numpy.concatenate"]
    assert relevant(collection, "scipy.linalg.lu_factor") >= {"scipy.linalg.lu", "scipy.linalg.lu_solve"}
    assert relevant(collection, "sklearn.linear_model.Lasso") >= {"sklearn.linear_model.LassoCV"}
    assert "scipy.stats.norm" in texts


def test_aliases_are_one_document_under_its_own_name(collection):
    assert "numpy.absolute" in collection.doc_ids
    assert "numpy.abs" not in collection.doc_ids
    assert not any("Warning" in d.rpartition(".")[2] for d in collection.doc_ids)
    assert not {"numpy.float64", "numpy.longdouble"} & set(collection.doc_ids)


def test_second_load_comes_from_the_cache(collection, monkeypatch):
    def never():
        raise AssertionError("it was built before")

    monkeypatch.setattr(pydocs, "_build", never)
    again = pydocs.load_pydocs()
    assert again.doc_texts == collection.doc_texts
    assert again.notes == collection.notes


def test_versions_are_part_of_the_key(collection, monkeypatch):
    monkeypatch.setattr(pydocs, "version", lambda distribution: "0.0")
    monkeypatch.setattr(pydocs, "_build", lambda: b'{"docs": {}, "queries": {}, "notes": []}')
    assert pydocs.load_pydocs().doc_ids == ()


def test_the_same_in_another_process_whatever_was_imported_before_and_without_a_word(collection, tmp_path):
    disturbed = (
        "import sys\nfrom sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer\n"
        "import sklearn.impute, sklearn.model_selection, numpy.char, scipy.fftpack\n"
    )
    env = {**os.environ, "GENM_CACHE": str(tmp_path), "PYTHONHASHSEED": "4711"}
    command = [sys.executable, "-W", "error", "-c", disturbed + DIGEST]
    out = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert out.stderr == ""
    c = collection
    parts = (c.doc_ids, c.doc_texts, c.query_ids, c.query_texts, list(c.qrels.docs), c.qrels.doc)
    assert out.stdout == cache.content_key(*parts) + "\n"


def test_unresolved_names_are_counted(collection):
    (note,) = collection.notes
    assert note.code == "see-also-unresolved"
    assert 0 < note.count < 0.2 * len(collection.qrels.doc)


def test_missing_library_names_the_extra(monkeypatch):
    real = pydocs.importlib.util.find_spec
    monkeypatch.setattr(pydocs.importlib.util, "find_spec", lambda name: None if name == "sklearn" else real(name))
    with pytest.raises(MissingExtraError, match=r"sklearn.*pip install 'genm\[rankers\]'"):
        pydocs.load_pydocs()


def made_up(monkeypatch, **members):
    """Put a module of the given members in the place of all namespaces."""
    module = types.ModuleType("madeup")
    vars(module).update(members)
    for member in members.values():
        if isinstance(member, types.FunctionType):
            member.__module__ = "madeup"
    monkeypatch.setitem(sys.modules, "madeup", module)
    monkeypatch.setattr(pydocs, "_NAMESPACES", {"numpy": ("madeup", "madeup.absent")})
    return module


def function(name, doc):
    def made():
        pass

    made.__name__, made.__doc__ = name, doc
    return made


def test_rules_on_a_made_up_module(monkeypatch):
    one = function("one", "First.\n\nBody 1.\n\nSee Also\n--------\ntwo, three, four, one, nobody")
    made_up(
        monkeypatch,
        one=one,
        alias=one,
        two=function("two", "Second.\n\nBody 2.\n\nSee Also\n--------\none, two, nobody"),
        three=function("three", "Third.\n\nBody 3."),
        four=function("four", "Only a summary."),
        five=function("five", None),
        _hidden=function("_hidden", "Hidden.\n\nBody."),
        constant=3.0,
        Broken=type("Broken", (ValueError,), {"__doc__": "Bad.\n\nBody.", "__module__": "madeup"}),
        Kept=type("Kept", (), {"__doc__": "Class.\n\nBody.", "__module__": "madeup"}),
    )
    content = pydocs.json.loads(pydocs._build())
    assert list(content["docs"]) == ["madeup.Kept", "madeup.one", "madeup.three", "madeup.two"]
    assert content["docs"]["madeup.one"] == ["First.", "Body 1."]
    assert content["queries"] == {"madeup.one": ["madeup.three", "madeup.two"]}  # two lists but one other
    assert content["notes"][0][:2] == ["see-also-unresolved", 3]


def test_listed_names_decide_where_a_module_has_them(monkeypatch):
    module = made_up(monkeypatch, one=function("one", "First.\n\nBody."), two=function("two", "Second.\n\nBody."))
    module.__all__ = ["two", "loaded_on_first_use"]
    assert list(pydocs.json.loads(pydocs._build())["docs"]) == ["madeup.two"]


def test_stripped_docstrings_are_said(monkeypatch):
    made_up(monkeypatch, one=function("one", None))
    with pytest.raises(InputError, match="-OO"):
        pydocs._build()


def test_what_differs_between_two_imports_is_taken_out():
    drawn = "Text.\n\n>>> x.sample(\n...     4)\narray([1,\n       2])  # may vary\n\n>>> 1 + 1\n2\n"
    assert pydocs._without_chance(drawn) == "Text.\n\n>>> x.sample(\n...     4)\n\n>>> 1 + 1\n2\n"
    assert pydocs._without_chance("one of {'b', 'a'}, {y, x}") == "one of {'a', 'b'}, {y, x}"

"""One table of methods: every name leads to the same fuser, and model files keep the old ones."""

import pytest
from problems import made_up

from genm.errors import InputError
from genm.learn import (
    METHODS,
    AutoFuser,
    BarrierFuser,
    BoostFuser,
    CotrainFuser,
    ExactFuser,
    ExpectedFuser,
    NewtonFuser,
    OnlineFuser,
    find_method,
    fit,
    is_method,
    make_fuser,
)

NAMES = {
    AutoFuser: ("auto", "AUTO"),
    NewtonFuser: ("newton", "bat", "gEnM.BAT", "Newton", "genm.bat", "BAT"),
    BarrierFuser: ("barrier", "ip", "gEnM.IP"),
    OnlineFuser: ("online", "on", "gEnM.ON", "ON"),
    CotrainFuser: ("cotrain", "uns", "UnsEnM", "unsenm"),
    BoostFuser: ("boost", "enm", "EnM", "ENM"),
    ExactFuser: ("exact", "Exact"),
    ExpectedFuser: ("expected",),
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in NAMES.items() for name in names])
def test_every_name_leads_to_its_fuser(kind, name):
    assert type(make_fuser(name)) is kind
    assert is_method(name)


def test_the_words_come_in_the_order_of_the_table():
    assert METHODS == ("auto", "newton", "barrier", "online", "cotrain", "boost", "exact", "expected")
    assert tuple(names[0] for names in NAMES.values()) == METHODS


def test_model_files_keep_the_names_of_the_paper():
    codes = [find_method(name).code for name in METHODS]
    assert codes == ["auto", "bat", "ip", "on", "uns", "enm", "exact", "expected"]
    assert fit(made_up(0), method="boost").to_model().method == "enm"


def test_an_unknown_name_is_refused_with_those_there_are():
    assert not is_method("magic")
    with pytest.raises(InputError, match=f"'magic': expected one of {', '.join(METHODS)}, or the paper's bat, ip"):
        fit(made_up(0), method="magic")


def test_what_a_method_cannot_do_is_refused_under_the_name_that_was_given():
    with pytest.raises(InputError, match="method 'newton' maximises AP, not nDCG@10"):
        make_fuser("newton", measure="nDCG@10")
    with pytest.raises(InputError, match="method 'boost' takes no beta"):
        make_fuser("boost", beta=3.0)


def test_the_level_of_the_measure_reaches_the_fuser():
    assert make_fuser("newton", measure="AP(rel=2)").level == 2
    assert make_fuser("newton", measure="AP(rel=2)", level=3).level == 3
    assert "level" not in make_fuser("cotrain", measure="AP(rel=2)").get_params()

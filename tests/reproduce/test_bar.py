"""The tables that judge."""

from dataclasses import replace

import pytest

from genm.evidence import BEST_SINGLE
from genm.reproduce.bar import bar_table, more_table, rivals_table, unsupervised_table
from genm.reproduce.methods import BOOSTING, ENM, RULES, SUPERVISED, UNS, UNS_Z
from genm.reproduce.tables import contrast


@pytest.fixture
def one(found):
    return found.collections[0]


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


def test_the_bar_takes_the_best_learned_method_and_the_papers_best_cell(one):
    assert bar_table([one]) is None
    rows = texts(bar_table([replace(one, title="CISI")]))
    assert [row[2] for row in rows] == ["0.1945", "0.4868", "0.3237"]
    best = max(one.methods[name].mean[0] for name in (*SUPERVISED, UNS))
    assert rows[0][3] == f"{best:.4f}"
    assert rows[0][6] == ("yes" if best > 0.1945 else "no")
    assert "of 3 rows" in bar_table([replace(one, title="CISI")]).title


def test_rivals_are_compared_query_by_query(one):
    rows = texts(rivals_table([one]))
    assert [row[1] for row in rows] == list(SUPERVISED)
    for row in rows:
        method = one.methods[row[1]]
        for at, rival in ((3, BEST_SINGLE), (5, BOOSTING), (7, ENM)):
            assert row[at] == f"{contrast(method, one.methods[rival]).difference:+.4f}"


def test_unsupervised_is_held_against_the_best_rule(one):
    (row,) = texts(unsupervised_table([one]))
    values = {name: one.methods[name].mean[0] for name in RULES}
    best = max(values.values())
    assert row[-1] == ("yes" if round(one.methods[UNS_Z].mean[0], 4) >= round(best, 4) else "no")
    assert f"{values[row[-5]]:.4f}" == f"{best:.4f}"


def test_more_rankers_only_where_there_are_any(one):
    assert more_table([replace(one, more={})], []) is None
    rows = texts(more_table([one], list(one.more)))
    assert [row[0] for row in rows] == list(one.more)

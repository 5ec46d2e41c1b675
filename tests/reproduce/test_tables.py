"""The paper's tables: what stands in them follows from the results."""

from dataclasses import replace

import numpy as np
import pytest

from genm.evidence import BEST_SINGLE
from genm.reproduce.methods import BAT, BOOSTING, ENM, RULES, SUPERVISED, UNS, UNS_Z, repaired
from genm.reproduce.paper import METHODS
from genm.reproduce.tables import (
    bar_table,
    contrast,
    more_table,
    rivals_table,
    summary_of,
    toy_table,
    unsupervised_table,
)


def table(found, key):
    return next(one for one in found.tables if one.key == key)


def texts_tables(one):
    return [[cell.text for cell in row] for row in one.rows]


def test_the_toy_example_under_both_readings():
    rows = {row[0]: row[1:] for row in texts_tables(toy_table())}
    assert rows["mean of P@1, P@2, P@3"] == ["0.7222", "0.7222", "0.7222", "0.8889"]
    assert rows["average precision"] == ["0.8333", "0.8333", "0.8333", "1.0000"]
    assert rows["Document 2"] == ["0.400", "0.100", "0.250", "0.310"]


def test_table_3_shows_the_means_and_the_improvement(found):
    (one,) = found.collections
    main = table(found, "table-3")
    assert main.columns[2:10] == tuple(text for name in METHODS for text in (f"{name}, paper", name))
    for m, row in enumerate(texts_tables(main)):
        assert row[2] == ""  # the paper knows nothing of this collection
        assert [row[3], row[5], row[7], row[9]] == [f"{one.methods[name].mean[m]:.4f}" for name in METHODS]
        gain = 100 * (one.methods[BAT].mean[m] / one.methods[ENM].mean[m] - 1)
        assert float(row[11].rstrip("*")) == pytest.approx(gain, abs=0.051)


def test_every_method_stands_in_its_row_with_the_spread(found):
    (one,) = found.collections
    rows = {row[0]: row[1] for row in texts_tables(table(found, "table-3-map"))}
    assert rows[BAT] == f"{one.methods[BAT].mean[0]:.4f} ± {one.methods[BAT].spread[0]:.4f}"
    assert "±" not in rows["TFIDF"]
    assert not any(name.endswith("uniform start") for name in rows)


def test_repairs_are_cumulative_and_end_with_bat(found):
    (one,) = found.collections
    rows = texts_tables(table(found, "repairs"))
    assert len(rows) == 14
    assert rows[-1][2] == f"{one.methods[BAT].mean[0]:.4f}"
    change = one.methods[repaired(1)].mean[0] - one.methods[repaired(0)].mean[0]
    assert float(rows[8][-1]) == pytest.approx(change, abs=5.1e-5)


def test_contrasts_pair_queries_averaged_over_the_splits(found):
    (one,) = found.collections
    pair = contrast(one.methods[BAT], one.methods[ENM])
    wanted = np.mean(one.methods[BAT].values[:, :, 0] - one.methods[ENM].values[:, :, 0])
    assert pair.difference == pytest.approx(wanted, abs=1e-9)


def test_three_rows_per_collection_within_eighty_columns(found):
    one = replace(found.collections[0], title="MED")
    header, rows, _ = summary_of(replace(found, collections=(one,)))
    assert [row[:3] for row in rows] == [
        ["MED", "MAP", "0.6467"],
        ["MED", "Pr@1", "0.9333"],
        ["MED", "Pr@5", "0.8133"],
    ]
    assert rows[0][header.index("BAT")] == f"{one.methods[BAT].mean[0]:.4f}"
    assert sum(max(len(row[c]) for row in [header, *rows]) + 2 for c in range(len(header))) <= 80


def test_a_collection_that_the_paper_has_not_has_no_printed_figure(found):
    _, rows, _ = summary_of(found)
    assert {row[2] for row in rows} == {"-"}


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

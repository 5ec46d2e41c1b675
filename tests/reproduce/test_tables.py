"""The paper's tables: what stands in them follows from the results."""

import numpy as np
import pytest

from genm.reproduce.methods import BAT, ENM, repaired
from genm.reproduce.paper import METHODS
from genm.reproduce.tables import contrast, toy_table


def table(found, key):
    return next(one for one in found.tables if one.key == key)


def texts(one):
    return [[cell.text for cell in row] for row in one.rows]


def test_the_toy_example_under_both_readings():
    rows = {row[0]: row[1:] for row in texts(toy_table())}
    assert rows["mean of P@1, P@2, P@3"] == ["0.7222", "0.7222", "0.7222", "0.8889"]
    assert rows["average precision"] == ["0.8333", "0.8333", "0.8333", "1.0000"]
    assert rows["Document 2"] == ["0.400", "0.100", "0.250", "0.310"]


def test_table_3_shows_the_means_and_the_improvement(found):
    (one,) = found.collections
    main = table(found, "table-3")
    assert main.columns[2:10] == tuple(text for name in METHODS for text in (f"{name}, paper", name))
    for m, row in enumerate(texts(main)):
        assert row[2] == ""  # the paper knows nothing of this collection
        assert [row[3], row[5], row[7], row[9]] == [f"{one.methods[name].mean[m]:.4f}" for name in METHODS]
        gain = 100 * (one.methods[BAT].mean[m] / one.methods[ENM].mean[m] - 1)
        assert float(row[11].rstrip("*")) == pytest.approx(gain, abs=0.051)


def test_every_method_stands_in_its_row_with_the_spread(found):
    (one,) = found.collections
    rows = {row[0]: row[1] for row in texts(table(found, "table-3-map"))}
    assert rows[BAT] == f"{one.methods[BAT].mean[0]:.4f} ± {one.methods[BAT].spread[0]:.4f}"
    assert "±" not in rows["TFIDF"]
    assert not any(name.endswith("uniform start") for name in rows)


def test_repairs_are_cumulative_and_end_with_bat(found):
    (one,) = found.collections
    rows = texts(table(found, "repairs"))
    assert len(rows) == 14
    assert rows[-1][2] == f"{one.methods[BAT].mean[0]:.4f}"
    change = one.methods[repaired(1)].mean[0] - one.methods[repaired(0)].mean[0]
    assert float(rows[8][-1]) == pytest.approx(change, abs=5.1e-5)


def test_contrasts_pair_queries_averaged_over_the_splits(found):
    (one,) = found.collections
    pair = contrast(one.methods[BAT], one.methods[ENM])
    wanted = np.mean(one.methods[BAT].values[:, :, 0] - one.methods[ENM].values[:, :, 0])
    assert pair.difference == pytest.approx(wanted, abs=1e-9)

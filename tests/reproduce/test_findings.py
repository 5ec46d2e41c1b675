"""Findings follow from the numbers: move the numbers and they change."""

from dataclasses import replace

from reproduced import collection, results

from genm.evidence import BEST_SINGLE
from genm.reproduce.findings import findings_of
from genm.reproduce.methods import BOOSTING, RULES

BEHIND = ("EnM", BOOSTING, BEST_SINGLE, *RULES)


def shifted(found, by, names):
    moved = {n: replace(m, values=m.values + by) if n in names else m for n, m in found.methods.items()}
    return replace(found, methods=moved)


OURS = ("gEnM.BAT", "gEnM.ON", "gEnM.IP", "auto", "UnsEnM", "UnsEnM, z-scores")


def headlines(found):
    return [finding.headline for finding in findings_of(results(found))]


def test_everything_ahead_and_everything_behind():
    single = collection().aligned.rankers
    low, high = shifted(collection(), -2.0, (*BEHIND, *single)), shifted(collection(), 2.0, (*BEHIND, *single))
    assert headlines(shifted(low, 2.0, ("gEnM.BAT", "auto", "UnsEnM", "UnsEnM, z-scores"))) == [
        "3 of 3", "1 of 1", "1 of 1", "1 of 1", "1 of 1", "0 of 1"
    ]  # fmt: skip
    assert headlines(shifted(high, -2.0, OURS)) == [
        "0 of 3", "0 of 1", "0 of 1", "0 of 1", "0 of 1", "1 of 1"
    ]  # fmt: skip


def test_rows_that_fall_short_are_named_with_their_numbers():
    found = shifted(collection(), -2.0, OURS)
    first = findings_of(results(found))[0]
    assert len(first.details) == 3
    assert first.details[0].startswith("not MED MAP: -")
    assert first.details[0].endswith("the paper 0.6467")


def test_a_significant_loss_is_not_called_a_gain():
    finding = findings_of(results(shifted(collection(), 2.0, ("EnM",))))[3]
    assert finding.headline == "0 of 1"
    assert "and 1 on which it is below" in finding.text


def test_a_collection_of_ones_own_has_no_paper_to_beat_and_nothing_no_findings():
    found = findings_of(results(collection("pydocs", "pydocs")))
    assert not any("the paper's main table" in finding.text for finding in found)
    assert findings_of(results()) == ()

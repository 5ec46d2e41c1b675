"""Ids meet by their bytes, whatever shortcut finds them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from genm.evaluate.joining import codes_in
from genm.ids import Ids

# few letters and one long ending: many ids that agree in their last eight bytes and in length
short_ids = st.text("ab", max_size=3)
ids = short_ids | st.builds(lambda a: a + "-the-same-ending", st.text("abc", max_size=3)) | st.text(max_size=12)


@settings(deadline=None)
@given(table=st.sets(ids, max_size=40), wanted=st.sets(ids, max_size=4), shared=st.integers(0, 4))
def test_codes_are_those_of_the_same_id(table: set[str], wanted: set[str], shared: int) -> None:
    listed = sorted(table)
    sought = sorted(wanted | set(listed[:shared]))
    codes = codes_in(Ids.of(listed), Ids.of(sought))
    assert codes.tolist() == [listed.index(s) if s in table else -1 for s in sought]


def test_few_ids_are_found_in_a_table_of_several_blocks() -> None:
    listed = [f"document-{i}" for i in range(150_000)]
    sought = ["document-0", "document-149999", "document-70000", "nowhere", "ocument-70000", "x"]
    assert codes_in(Ids.of(listed), Ids.of(sought)).tolist() == [0, 149999, 70000, -1, -1, -1]


def test_a_table_is_its_own_translation() -> None:
    table = Ids.of(["b", "a"])
    assert codes_in(table, table).tolist() == [0, 1]

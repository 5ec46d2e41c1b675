import pytest

from genm.collections.pydocs import split_docstring

FULL = """
    take(a, axis=None,
         out=None) -> array

    Return the elements
    of an array.

    More about it.

    Parameters
    ----------
    a : array
        The source.

    See Also
    --------
    put : the opposite
    choose, select
    np.compress: a mask instead
    :func:`~scipy.ndimage.map_coordinates` : interpolates
    `ndarray.take`, ``delete`` :
        a description on its own line,
        with names such as sort
    sklearn.base.clone
    put : again

    Notes
    -----
    See also the guide.
    """


def test_the_parts_of_a_full_docstring():
    parts = split_docstring(FULL)
    assert parts.summary == "Return the elements of an array."
    assert parts.see_also == (
        "put",
        "choose",
        "select",
        "np.compress",
        "scipy.ndimage.map_coordinates",
        "ndarray.take",
        "delete",
        "sklearn.base.clone",
    )
    assert parts.body.startswith("More about it.\n\nParameters\n----------\na : array")
    assert parts.body.endswith("Notes\n-----\nSee also the guide.")
    assert "take(a" not in parts.body
    assert "the opposite" not in parts.body


def test_section_at_the_very_end():
    parts = split_docstring("Sum.\n\nBody.\n\nSee Also\n--------\nprod")
    assert (parts.summary, parts.body, parts.see_also) == ("Sum.", "Body.", ("prod",))


def test_other_spelling_of_the_title():
    assert split_docstring("Sum.\n\nSee also\n--------\nprod\n").see_also == ("prod",)


@pytest.mark.parametrize(
    "line",
    ["The user guide.", "numpy.sum and numpy.prod", ":ref:`the guide <guide>`", "see: sum of", "* sum", "3d : x"],
)
def test_prose_is_not_taken_for_names(line):
    assert "sum" not in split_docstring(f"Sum.\n\nSee Also\n--------\n{line}\n").see_also


def test_a_summary_that_only_begins_like_a_call_stays():
    assert split_docstring("exp(x) - 1 for all elements.\n\nBody.").summary == "exp(x) - 1 for all elements."


@pytest.mark.parametrize("text", ["", "   \n ", "f(x)"])
def test_nothing_to_say(text):
    parts = split_docstring(text)
    assert (parts.summary, parts.body, parts.see_also) == ("", "", ())


def test_a_docstring_without_conventions_is_summary_and_body():
    parts = split_docstring("One line.\nAnother.\n\nThe rest\nof it.")
    assert (parts.summary, parts.body) == ("One line. Another.", "The rest\nof it.")

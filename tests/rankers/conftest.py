import pytest

from genm.rankers.text import TextProfile, read_documents, read_queries

PLAIN = TextProfile("plain")


@pytest.fixture
def three():
    """Three documents with 3, 2 and 3 words: document frequencies bird 2, cat 1, dog 2, fish 1."""
    return read_documents(["cat cat dog", "dog bird", "bird bird fish"], PLAIN)


@pytest.fixture
def ask(three):
    return lambda *texts: read_queries(texts, three)

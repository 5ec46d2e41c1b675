import sys
from types import ModuleType, SimpleNamespace

import pytest

from genm.connect.access import Access, check_no_secrets, resolve_secret
from genm.connect.engines.solr import Solr
from genm.connect.registry import connect, open_engine
from genm.errors import InputError

SECRET = "hunter2-hunter2"


@pytest.mark.parametrize(
    "document",
    [
        {"auth": {"password": SECRET}},
        {"auth": {"api_key": SECRET}},
        {"auth": {"token": SECRET}},
        {"headers": {"Authorization": f"Basic {SECRET}=="}},
        {"headers": {"X-Api-Key": SECRET}},
        {"headers": {"X-Other": f"Bearer {SECRET}"}},
        {"headers": {"Cookie": f"session={SECRET}"}},
        {"address": f"https://me:{SECRET}@example.org"},
        {"address": f"postgresql://host/db?password={SECRET}"},
        {"options": {"a": [{"client_secret": SECRET}]}},
        {"proxy": f"http://me:{SECRET}@proxy"},
        {"options": {"x": "-----BEGIN RSA PRIVATE KEY-----\nabc"}},
        {"options": {"x": "AKIAABCDEFGHIJKLMNOP"}},
        {"options": {"x": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc"}},
    ],
)
def test_a_secret_in_the_configuration_is_refused_and_not_shown(document):
    with pytest.raises(InputError, match=r"pull\.toml: .*: expected no secret in the file") as caught:
        check_no_secrets(document, "pull.toml")
    assert SECRET not in str(caught.value)
    assert "env:NAME" in str(caught.value)


@pytest.mark.parametrize(
    "document",
    [
        {"auth": {"user": "me", "password": "env:PASSWORD", "token": "keyring:search/me"}},
        {"rankers": {"a": {"search": {"match": {"token": "$query"}}}}},
        {"address": "https://example.org:9200", "index": "secrets"},
        {"rankers": {"a": {"search": "SELECT id FROM t WHERE a = $query LIMIT $depth"}}},
    ],
)
def test_what_is_no_secret_passes(document):
    check_no_secrets(document, "pull.toml")


def test_a_secret_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("SEARCH_PASSWORD", SECRET)
    assert resolve_secret("env:SEARCH_PASSWORD", "auth.password") == SECRET
    monkeypatch.setenv("SEARCH_PASSWORD", "")
    with pytest.raises(InputError, match="variable SEARCH_PASSWORD; found it unset or empty"):
        resolve_secret("env:SEARCH_PASSWORD", "auth.password")


class KeyringError(Exception):
    pass


def fake_key_ring(monkeypatch, get_password):
    ring = ModuleType("keyring")
    ring.get_password, ring.errors = get_password, SimpleNamespace(KeyringError=KeyringError)
    monkeypatch.setitem(sys.modules, "keyring", ring)


def test_a_secret_comes_from_the_key_ring(monkeypatch):
    kept = {("my/search", "me"): SECRET}
    fake_key_ring(monkeypatch, lambda *key: kept.get(key))
    assert resolve_secret("keyring:my/search/me", "auth.password") == SECRET
    with pytest.raises(InputError, match="keyring set search you"):
        resolve_secret("keyring:search/you", "auth.password")
    with pytest.raises(InputError, match="keyring:SERVICE/USER"):
        resolve_secret("keyring:search", "auth.password")


def test_a_key_ring_that_is_locked_is_said(monkeypatch):
    def locked(*_):
        raise KeyringError("no backend")

    fake_key_ring(monkeypatch, locked)
    with pytest.raises(InputError, match="key ring cannot be read: no backend"):
        resolve_secret("keyring:search/me", "auth.password")


def test_an_access_shows_and_leaks_no_secret():
    access = Access("https://x", "i", user="me", password=SECRET, token="t-123", proxy=f"http://u:{SECRET}@p")
    assert SECRET not in repr(access)
    assert "t-123" not in repr(access)
    assert access.redacted(f"failed for {SECRET} and t-123") == "failed for *** and ***"


@pytest.mark.parametrize("address", ["localhost:9200", "ftp://x", "", "https://", "example.org"])
@pytest.mark.needs("httpx")
def test_an_address_is_never_guessed(address):
    with pytest.raises(InputError, match="address: expected"):
        connect(engine="solr", address=address, index="a")


def test_a_secret_given_as_it_is_is_refused_in_python_too():
    with pytest.raises(InputError, match="expected no secret") as caught:
        connect(engine="solr", address="http://127.0.0.1:1", index="a", user="me", password=SECRET)
    assert SECRET not in str(caught.value)


@pytest.mark.needs("httpx")
def test_references_are_resolved_for_the_engine(monkeypatch):
    monkeypatch.setenv("SEARCH_PASSWORD", SECRET)
    monkeypatch.setenv("SEARCH_HEADER", "h-1")
    options = {
        "user": "me",
        "password": "env:SEARCH_PASSWORD",
        "headers": {"x-one": "env:SEARCH_HEADER", "x-two": "2"},
    }
    with open_engine(Solr, "http://127.0.0.1:1", "a", options) as engine:
        assert engine.access.password == SECRET
        assert engine.access.headers == {"x-one": "h-1", "x-two": "2"}


def test_unknown_engines_and_options_are_named():
    with pytest.raises(InputError, match="Did you mean opensearch"):
        connect(engine="opensaerch", address="http://x", index="a")
    with pytest.raises(InputError, match="tineout: expected one of"):
        connect(engine="solr", address="http://x", index="a", tineout=3)


@pytest.mark.needs("httpx")
def test_certificates_are_checked_before_anything_is_sent(tmp_path):
    with pytest.raises(InputError, match=r"expected the file .*ca\.pem; found none"):
        connect(engine="solr", address="https://x", index="a", ca=str(tmp_path / "ca.pem"))
    (tmp_path / "ca.pem").write_text("no certificate", encoding="utf-8")
    with pytest.raises(InputError, match="certificates in PEM form"):
        connect(engine="solr", address="https://x", index="a", ca=str(tmp_path / "ca.pem"))

"""Tokens open exactly what their roles say; nothing else does."""

import json
import os
import random
import stat

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

import msgspec
from serve.cases import judged, lists

from genm.errors import InputError
from genm.serve.security import Tokens, is_loopback
from genm.serve.server import Settings, check_settings

GET = ("/v1/weights", "/v1/versions", "/v1/interleave", "/v1/overview", "/metrics")


def asked(service, token, path, method="GET", body=None):
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    content = None if body is None else msgspec.json.encode(body)
    headers |= {} if body is None else {"content-type": "application/json"}
    return service.http.request(method, path, content=content, headers=headers).status_code


def test_roles_open_what_they_say(start, tokens):
    made = {role: tokens.add(f"the-{role}", [role]) for role in ("fuse", "feedback", "admin")}
    service = start(tokens=tokens)
    bodies = {
        "/v1/fuse": ("POST", {"runs": lists(random.Random(1))}, "fuse"),
        "/v1/feedback": ("POST", {"events": [judged(1)]}, "feedback"),
        "/v1/rollback": ("POST", {"version": 1, "key": "back"}, "admin"),
        "/v1/weights": ("PUT", {"weights": {"bm25": 1, "dense": 1, "sparse": 1}, "key": "set"}, "admin"),
    }
    for path, (method, body, role) in bodies.items():
        assert asked(service, None, path, method, body) == 401
        assert asked(service, "genm_wrong", path, method, body) == 401
        for mine, token in made.items():
            expected = 200 if mine in (role, "admin") else 403
            assert asked(service, token, path, method, body) == expected, (path, mine)
    for path in GET:
        assert asked(service, None, path) == 401
        assert all(asked(service, token, path) == 200 for token in made.values())
    for path in ("/healthz", "/readyz", "/", "/openapi.json"):
        assert asked(service, None, path) == 200


def test_a_withdrawn_token_stops_at_once(start, tokens):
    token = tokens.add("one", ["fuse"])
    tokens.add("other", ["fuse"])
    service = start(tokens=Tokens(tokens.path))
    assert asked(service, token, "/v1/weights") == 200
    tokens.withdraw("one")
    assert asked(service, token, "/v1/weights") == 401


def test_the_file_holds_no_token_and_only_its_owner_reads_it(tokens):
    secret = tokens.add("one", ["fuse", "feedback"], trusted=True)
    text = tokens.path.read_text(encoding="utf-8")
    assert secret not in text
    assert secret.startswith("genm_")
    assert json.loads(text)["tokens"][0]["name"] == "one"
    assert tokens.names() == [("one", ["fuse", "feedback"], True)]
    if os.name == "posix":
        assert stat.S_IMODE(tokens.path.stat().st_mode) == 0o600


def test_names_are_used_once_and_are_plain(tokens):
    tokens.add("one", ["fuse"])
    with pytest.raises(InputError, match="a token of this name exists"):
        tokens.add("one", ["fuse"])
    with pytest.raises(InputError, match="expected a name of letters"):
        tokens.add("a b", ["fuse"])
    with pytest.raises(InputError, match="expected the name of a token; there are: one"):
        tokens.withdraw("two")


def test_a_broken_file_is_refused(tmp_path):
    path = tmp_path / "tokens.json"
    path.write_text('{"format": "genm-tokens", "version": 1, "tokens": [{}]}', encoding="utf-8")
    with pytest.raises(InputError, match=r"expected a file of tokens; .*name"):
        Tokens(path)


def test_pages_of_other_origins_are_kept_out_without_tokens(service):
    for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}, {"origin": "null"}):
        answer = service.http.get("/v1/weights", headers=headers)
        assert answer.status_code == 403, headers
    assert service.http.get("/v1/weights", headers={"origin": "http://testserver"}).status_code == 200


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("example", False),
    ],
)
def test_loopback_is_told_from_the_rest(host, expected):
    assert is_loopback(host) == expected


def test_tokens_are_required_off_loopback(tokens):
    with pytest.raises(InputError, match=r"--host 0\.0\.0\.0: expected --tokens FILE"):
        check_settings(Settings(host="0.0.0.0"))
    with pytest.raises(InputError, match="expected at least one token; found none"):
        check_settings(Settings(tokens=str(tokens.path)))
    tokens.add("one", ["fuse"])
    assert check_settings(Settings(host="0.0.0.0", tokens=str(tokens.path))) is not None
    with pytest.raises(InputError, match="--tls-cert and --tls-key: expected both or none"):
        check_settings(Settings(certificate="x"))
    assert check_settings(Settings()) is None


def test_a_trusted_token_is_limited_only_by_the_clients_it_names(tokens):
    tokens.add("plain", ["feedback"])
    secret = tokens.add("team", ["feedback"], trusted=True)
    caller = tokens.caller(secret)
    assert caller.clients("user") == ("team/user",)
    assert caller.clients(None) == ("team",)

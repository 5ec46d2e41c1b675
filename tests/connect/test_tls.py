"""TLS: a certificate is checked, unless the user says otherwise."""

import shutil
import subprocess
import warnings
from functools import partial

import pytest
from connect.stub import serving
from connect.test_http_engines import DOCS, PLAYERS, need_client

from genm.connect import connect
from genm.errors import EngineError


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 that is its own authority, with its key in the same file."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    names = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    made = ("-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-days", "2")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *made, *names], check=True, capture_output=True
    )
    both = folder / "both.pem"
    both.write_bytes((folder / "cert.pem").read_bytes() + (folder / "key.pem").read_bytes())
    return folder / "cert.pem", both


@pytest.mark.parametrize("name", PLAYERS)
def test_a_certificate_is_checked_by_default(certificate, name):
    need_client(name)
    authority, both = certificate
    play, template, index = PLAYERS[name]
    with serving(partial(play, DOCS), both) as stub:
        given = {"engine": name, "address": stub.address, "index": index}
        with (
            connect(**given) as engine,
            pytest.raises(EngineError, match="certificate cannot be verified") as caught,
        ):
            engine.search(template, "a", depth=10)
        assert caught.value.fatal
        assert stub.requests == []
        with connect(**given, ca=str(authority)) as engine:
            assert engine.search(template, "a", depth=10) == DOCS
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # urllib3 warns too
            with connect(**given, verify=False) as engine:
                assert engine.search(template, "a", depth=10) == DOCS


@pytest.mark.parametrize("name", ["opensearch", "solr"])
def test_a_certificate_for_another_name_is_refused(certificate, name):
    need_client(name)
    authority, both = certificate
    play, template, index = PLAYERS[name]
    with serving(partial(play, DOCS), both) as stub:
        address = stub.address.replace("127.0.0.1", "localhost")
        engine = connect(engine=name, address=address, index=index, ca=str(authority))
        with engine, pytest.raises(EngineError, match="certificate cannot be verified"):
            engine.search(template, "a", depth=10)

"""Nothing that an engine is started from is used before its digest was checked."""

import hashlib
from pathlib import Path

import pytest
from engines import downloads


def test_a_file_with_another_digest_is_refused_and_not_kept(tmp_path: Path) -> None:
    source, wanted = tmp_path / "source.jar", tmp_path / "wanted.jar"
    source.write_bytes(b"what came")
    with pytest.raises(downloads.Unavailable, match=r"wanted\.jar: expected SHA-256 0{12}\.\.\., found "):
        downloads._fetch(source.as_uri(), wanted, "0" * 64)
    assert [path.name for path in tmp_path.iterdir()] == ["source.jar"]
    downloads._fetch(source.as_uri(), wanted, hashlib.sha256(b"what came").hexdigest())
    assert wanted.read_bytes() == b"what came"


def test_a_kept_file_is_checked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "repository" / "org" / "x" / "1"
    folder.mkdir(parents=True)
    (folder / "x-1.jar").write_bytes(b"right")
    monkeypatch.setattr(downloads, "_repository", lambda: (tmp_path / "repository").as_uri())
    kept = tmp_path / "x-1.jar"
    kept.write_bytes(b"overwritten")
    found = downloads._artefact(hashlib.sha256(b"right").hexdigest(), "org:x:1", tmp_path)
    assert (found, kept.read_bytes()) == (kept, b"right")


def test_a_file_that_is_not_there_is_a_reason_to_skip(tmp_path: Path) -> None:
    with pytest.raises(downloads.Unavailable, match=r"x\.jar could not be fetched"):
        downloads._fetch((tmp_path / "nowhere").as_uri(), tmp_path / "x.jar", "0" * 64)


@pytest.mark.parametrize(
    "path", sorted((Path(downloads.__file__).parent / "artefacts").glob("*.txt")), ids=lambda p: p.stem
)
def test_every_artefact_has_a_digest_and_a_version(path: Path) -> None:
    rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert rows
    for digest, coordinates in rows:
        assert len(digest) == 64
        assert int(digest, 16)
        assert len(coordinates.split(":")) in (3, 4)


def test_the_mirror_of_the_settings_is_used(tmp_path: Path) -> None:
    settings = tmp_path / "settings.xml"
    settings.write_text(
        "<settings><mirrors><mirror><id>m</id><mirrorOf>*</mirrorOf><url>https://example.org/m</url></mirror>"
        "</mirrors></settings>"
    )
    assert downloads._mirror(settings) == "https://example.org/m"
    assert downloads._mirror(tmp_path / "none.xml") == ""

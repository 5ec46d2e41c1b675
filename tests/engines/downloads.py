"""Files that an engine is started from: fetched once, held to a SHA-256 of ours, kept outside the repository.

Artefacts come from the repository that the installed Maven takes them from: the mirror in its settings, or the one
that is built into it. Maven itself is not run. Its own check is a digest from the same server, ours is not.
"""

import hashlib
import os
import re
import shutil
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from xml.etree import ElementTree as ET

from genm.cache import cache_folder

CACHE = Path(os.environ.get("GENM_ENGINES_CACHE") or cache_folder() / "engines").resolve()
"""Read when the tests are collected: each session of tests has a cache of its own for everything else."""

_HERE = Path(__file__).parent
_TIMEOUT = 120.0


class Unavailable(Exception):
    """An engine cannot be had here; the message says why."""


def artefacts(list_name: str, folder: str) -> list[Path]:
    """Return the files of artefacts/LIST_NAME.txt, fetched if they are not there yet.

    A line is `SHA-256 group:artifact:version[:extension]`.
    """
    rows = [line.split() for line in (_HERE / "artefacts" / f"{list_name}.txt").read_text("utf-8").splitlines()]
    wanted = [(row[0], row[1]) for row in rows if row and not row[0].startswith("#")]
    target = CACHE / folder
    target.mkdir(parents=True, exist_ok=True)
    return [_artefact(digest, coordinates, target) for digest, coordinates in wanted]


def unpacked(archive: Path, pattern: str) -> list[Path]:
    """Return the files of a checked archive whose names match, unpacked beside it."""
    folder = archive.with_suffix("")
    with zipfile.ZipFile(archive) as opened:
        names = [name for name in opened.namelist() if re.fullmatch(pattern, name) and ".." not in name]
        for name in names:
            path = folder / name
            if not path.is_file() or path.stat().st_size != opened.getinfo(name).file_size:
                opened.extract(name, folder)
    return [folder / name for name in names]


def _artefact(digest: str, coordinates: str, folder: Path) -> Path:
    group, artifact, version, *rest = coordinates.split(":")
    name = f"{artifact}-{version}.{rest[0] if rest else 'jar'}"
    path = folder / name
    if path.is_file() and _digest(path) == digest:
        return path
    _fetch(f"{_repository()}/{group.replace('.', '/')}/{artifact}/{version}/{name}", path, digest)
    return path


def _fetch(url: str, path: Path, digest: str) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "genm-engine-tests"})
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer, part.open("wb") as out:
            shutil.copyfileobj(answer, out)
        found = _digest(part)
        if found != digest:
            raise Unavailable(f"{path.name}: expected SHA-256 {digest[:12]}..., found {found[:12]}...")
        part.replace(path)
    except (OSError, urllib.error.URLError) as error:
        raise Unavailable(f"{path.name} could not be fetched: {error}") from None
    finally:
        part.unlink(missing_ok=True)


def _digest(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _repository() -> str:
    """Return the address of the repository that Maven uses."""
    found = _mirror(Path.home() / ".m2" / "settings.xml") or _built_in()
    if not found.startswith("https://"):
        raise Unavailable(f"expected Maven's repository at an https address; found {found!r}")
    return found.rstrip("/")


def _mirror(settings: Path) -> str:
    if not settings.is_file():
        return ""
    for mirror in ET.parse(settings).getroot().iterfind(".//{*}mirror"):
        if mirror.findtext("{*}mirrorOf", "") in ("*", "central", "external:*"):
            return mirror.findtext("{*}url", "").strip()
    return ""


def _built_in() -> str:
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable("Maven is not installed: it names the repository to fetch from")
    for jar in sorted((Path(maven).resolve().parents[1] / "lib").glob("maven-model-builder-*.jar")):
        with zipfile.ZipFile(jar) as opened:
            model = ET.fromstring(opened.read("org/apache/maven/model/pom-4.0.0.xml"))
        return model.findtext(".//{*}repository/{*}url", "").strip()
    raise Unavailable("Maven's own model, which names the repository, was not found")


def java(least: int) -> Path:
    """Return a Java of at least this version: JAVA_HOME's, the path's, or one beside the system's."""
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    on_path = shutil.which("java")
    homes += [Path(on_path).resolve().parents[1]] if on_path else []
    homes += sorted(Path("/usr/lib/jvm").glob("*"))
    found = {home: version for home in homes if (version := _java_version(home))}
    fitting = [home for home, version in found.items() if version >= least]
    if not fitting:
        seen = ", ".join(str(version) for version in sorted(set(found.values()))) or "none"
        raise Unavailable(f"Java {least} or later is needed; found {seen}")
    return min(fitting, key=lambda home: found[home]) / "bin" / "java"


def _java_version(home: Path) -> int:
    release = home / "release"
    if not (home / "bin" / "java").is_file() or not release.is_file():
        return 0
    stated = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', release.read_text("utf-8", "replace"))
    return int(stated.group(1)) if stated else 0

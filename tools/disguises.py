"""Run the test suite in disguise: once per environment that must make no difference to a result.

A disguise changes what differs between machines: the processor that kernels are compiled for, the kernels of linear
algebra, the number of threads, the order of the tests, the language, the clock, the terminal, the home folder, the
programs and packages beside genm. The suite must pass in each of them.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import textwrap
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / ".disguises"
NOWHERE = "/dev/null/nowhere"
"""A folder that nobody can make, root included: permission bits do not bind root."""
EXTRAS = ("rankers", "cluster", "pandas", "plots", "postgresql", "pyterrier", "serve", "sklearn", "telemetry")
"""What `make test` installs beside the hard dependencies."""
HIDDEN = re.compile(r"chrom(e|ium).*|google-chrome.*|node|initdb|postgres|pg_ctl|psql")
PYTHONS = ("3.12", "3.13", "3.14")

EPILOG = """
examples:
  python tools/disguises.py                          every quick disguise, the whole suite in each
  python tools/disguises.py --only generic,threads-3 these two
  python tools/disguises.py --only order-1 -- tests/cli -x
                                                     with arguments for pytest
  python tools/disguises.py --all --format json      those with an environment of their own too
"""


@dataclass
class Disguise:
    """One run of the suite: what is changed, and why this machine cannot, if it cannot."""

    name: str
    about: str
    env: dict[str, str] = field(default_factory=dict)
    prefix: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    umask: int = -1
    own_kernels: bool = False
    python: Callable[[Path], Path] | None = None
    missing: Callable[[], str] = lambda: ""
    heavy: bool = False


@dataclass
class Row:
    """What came of one disguise."""

    disguise: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    note: str = ""
    failures: list[str] = field(default_factory=list)
    log: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether a test failed, or pytest could not do its work."""
        return self.failed > 0 or self.note.startswith("broken")


def disguises() -> Iterator[Disguise]:
    """Yield every disguise, those that this machine cannot put on included."""
    yield Disguise("plain", "nothing is changed")
    yield Disguise(
        "generic",
        "kernels compiled for the processor's oldest relative: no wide registers, no fused multiply-add",
        {"NUMBA_CPU_NAME": "generic"},
        own_kernels=True,
    )
    yield from _linear_algebra()
    yield from _numpy_features()
    yield from _threads()
    for seed in ("1", "2", "3"):
        yield Disguise(
            f"order-{seed}",
            f"the tests in another order (seed {seed})",
            arguments=[f"--randomly-seed={seed}"],
            missing=lambda: "" if _has("pytest_randomly") else "pytest-randomly is not installed",
        )
    for seed in ("0", "4711"):
        yield Disguise(f"hash-{seed}", "sets of strings in another order", {"PYTHONHASHSEED": seed})
    yield from _languages()
    yield Disguise("tz-east", "the clock 14 hours ahead of UTC", {"TZ": "LINT-14"})
    yield Disguise("tz-west", "the clock 3 hours 30 minutes behind UTC, with summer time", {"TZ": "NST3:30NDT"})
    for columns in ("40", "200"):
        yield Disguise(f"columns-{columns}", f"a terminal of {columns} columns", {"COLUMNS": columns})
    yield Disguise("umask-077", "files that are nobody else's business", umask=0o077)
    nowhere = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "GENM_CACHE", "NUMBA_CACHE_DIR")
    yield Disguise("homeless", "home and cache folders that cannot be written", dict.fromkeys(nowhere, NOWHERE))
    yield _ordinary_user()
    yield _bare()
    ignored = ["-W", "default::DeprecationWarning"]  # old packages use what newer ones call old
    yield Disguise(
        "lowest", "the lowest versions that pyproject.toml allows", {}, [], ignored, python=_lowest, heavy=True
    )
    yield Disguise("no-extras", "hard dependencies, pytest and hypothesis only", python=_no_extras, heavy=True)
    for version in PYTHONS:
        name = f"python{version}"
        yield Disguise(
            f"python-{version}",
            f"Python {version}",
            python=partial(_with_extras, name),
            missing=partial(_no_python, name),
            heavy=True,
        )


def _linear_algebra() -> Iterator[Disguise]:
    """Yield kernels of OpenBLAS; numpy's and scipy's copies of it read the same variable."""
    intel = {"Prescott": "SSE3", "Nehalem": "SSE42", "Haswell": "AVX2", "SkylakeX": "AVX512F"}
    arm = {"ARMV8": "ASIMD", "NEOVERSEN1": "ASIMDHP", "NEOVERSEV1": "SVE"}
    for name, feature in (intel if platform.machine().lower() in ("x86_64", "amd64") else arm).items():
        yield Disguise(
            f"blas-{name.lower()}",
            f"OpenBLAS's kernels for {name}",
            {"OPENBLAS_CORETYPE": name},
            missing=partial(_no_blas, name, feature),
        )


def _no_blas(name: str, feature: str) -> str:
    own = _blas_kernels("")
    if not own:
        return "numpy has no OpenBLAS, or threadpoolctl is not installed"
    if feature not in _features()[0]:
        return "the processor cannot run these kernels"
    return f"OpenBLAS uses {own} in any case" if _blas_kernels(name) == own else ""


@cache
def _blas_kernels(name: str) -> str:
    """Return the kernels that OpenBLAS takes when it is asked for these."""
    code = (
        "import numpy, scipy.linalg, threadpoolctl\n"
        "print(*sorted({str(d.get('architecture')) for d in threadpoolctl.threadpool_info()\n"
        "               if d.get('internal_api') == 'openblas'}))"
    )
    return _answer([sys.executable, "-c", code], {"OPENBLAS_CORETYPE": name} if name else {})


def _numpy_features() -> Iterator[Disguise]:
    """Yield numpy without its wider loops: all of them, and all but the narrowest."""
    here = _features()[1]
    for name, off in (("numpy-baseline", here), ("numpy-narrow", here[1:])):
        yield Disguise(
            name,
            f"numpy without {' '.join(off)}",
            {"NPY_DISABLE_CPU_FEATURES": " ".join(off)},
            missing=lambda off=off: "" if off else "numpy has no wider loops for this processor",
        )


@cache
def _features() -> tuple[list[str], list[str]]:
    """Return what numpy says of this processor: its features, and those for which numpy has loops of their own."""
    code = (
        "import json\nfrom numpy._core import _multiarray_umath as m\n"
        "has = [name for name, here in m.__cpu_features__.items() if here]\n"
        "print(json.dumps((has, [name for name in m.__cpu_dispatch__ if name in has])))"
    )
    return tuple(json.loads(_answer([sys.executable, "-c", code], {}) or "[[], []]"))


def _threads() -> Iterator[Disguise]:
    for n in ("1", "3"):
        names = (
            "GENM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "OMP_NUM_THREADS",
            "NUMBA_NUM_THREADS",
            "POLARS_MAX_THREADS",
        )
        pinned = n == "1" and shutil.which("taskset") is not None and hasattr(os, "sched_getaffinity")
        prefix = ["taskset", "-c", str(min(os.sched_getaffinity(0)))] if pinned else []
        yield Disguise(f"threads-{n}", f"{n} thread{'s' * (n != '1')}", dict.fromkeys(names, n), prefix)


def _languages() -> Iterator[Disguise]:
    clear = dict.fromkeys(("LANG", "LANGUAGE"), "")
    yield Disguise("locale-c", "the locale C; Python then reads and writes UTF-8", {**clear, "LC_ALL": "C"})
    ascii_only = {**clear, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    yield Disguise("ascii", "the locale C, and Python takes it at its word: text is ASCII", ascii_only)
    for name, about in (("de_DE", "a comma before the decimals"), ("tr_TR", "i and I are different letters")):
        yield Disguise(
            f"locale-{name[:2]}",
            f"the locale {name}: {about}",
            {**clear, "LC_ALL": f"{name}.UTF-8", "LOCPATH": str(WORK / "locales")},
            missing=partial(_no_locale, name),
        )


def _no_locale(name: str) -> str:
    """Make the locale in a folder of ours: few systems have it installed, many have what it is made from."""
    place = WORK / "locales" / f"{name}.UTF-8"
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        _answer(["localedef", "-i", name, "-f", "UTF-8", str(place)], {})
    return "" if place.is_dir() else f"localedef cannot make the locale {name}"


def _ordinary_user() -> Disguise:
    """Return the suite as run by nobody; the checkout belongs to root then, and cannot be written."""
    return Disguise(
        "ordinary-user",
        "a user who is not root and owns nothing",
        {"HOME": NOWHERE},
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"],
        ["-p", "no:cacheprovider"],
        own_kernels=True,
        missing=_no_ordinary_user,
    )


def _no_ordinary_user() -> str:
    if os.geteuid() != 0:
        return "the suite is not run by root in any case"
    if shutil.which("setpriv") is None:
        return "setpriv is not installed"
    start = f"import os, subprocess, sys, genm; os.listdir({str(ROOT)!r}); "
    start += "print(subprocess.run([sys.executable, '-c', 'import genm']).returncode)"  # as tests start processes
    enter = [*_ordinary_user().prefix, sys.executable, "-c", start]
    if _answer(enter, {}) == "0":
        return ""
    return f"an ordinary user may not enter the folder of {Path(sys.executable).resolve()} or of the checkout"


def _bare() -> Disguise:
    """Return the suite without the programs and the data that a user may not have."""
    return Disguise(
        "bare",
        "no Chromium, no PostgreSQL, no Node, no collections",
        {
            "PATH": str(WORK / "bare-bin"),
            "GENM_DATA": str(WORK / "no-collections"),
            "GENM_TESTS_POSTGRESQL": "none",
        },
    )


def _make_bare() -> None:
    """Fill a folder with links to all programs on the path but those that are hidden."""
    shutil.rmtree(WORK / "bare-bin", ignore_errors=True)
    (WORK / "bare-bin").mkdir(parents=True)
    (WORK / "no-collections").mkdir(exist_ok=True)
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        for program in sorted(Path(folder).iterdir()) if Path(folder).is_dir() else ():
            link = WORK / "bare-bin" / program.name
            if not HIDDEN.fullmatch(program.name) and not link.exists() and program.is_file():
                link.symlink_to(program)


def _no_python(name: str) -> str:
    return "" if _interpreter(name) else f"{name} is not installed"


def _interpreter(name: str) -> str:
    """Return an interpreter on the path, or one that pyenv has installed; "" where there is none that works."""
    installed = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    version = name.removeprefix("python")
    for found in (name, *sorted(map(str, installed.glob(f"{version}.*/bin/{name}")), reverse=True)):
        if _answer([found, "-c", "print('here')"], {}) == "here":
            return found
    return ""


def _lowest(folder: Path) -> Path:
    """Make an environment with each dependency at its lower bound; test tools are what they are elsewhere."""
    text = "".join(f"{name}=={lowest}\n" for name, lowest in _lower_bounds(EXTRAS).items())
    return _environment(folder, sys.executable, text, [f".[{','.join(EXTRAS)}]"], _tools())


def _no_extras(folder: Path) -> Path:
    few = [tool for tool in _tools() if re.match(r"pytest|hypothesis", tool)]
    return _environment(folder, sys.executable, (ROOT / "constraints.txt").read_text("utf-8"), ["."], few)


def _with_extras(python: str, folder: Path) -> Path:
    constraints = (ROOT / "constraints.txt").read_text("utf-8")
    return _environment(folder, _interpreter(python), constraints, [f".[{','.join(EXTRAS)}]"], _tools())


def _project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def _tools() -> list[str]:
    return [tool for tool in _project()["dependency-groups"]["test"] if isinstance(tool, str)]


def _lower_bounds(extras: Sequence[str]) -> dict[str, str]:
    """Return the lowest version of each dependency; of two bounds on one package, the higher."""
    project = _project()["project"]
    wanted = [*project["dependencies"], *(one for name in extras for one in project["optional-dependencies"][name])]
    found: dict[str, str] = {}
    for requirement in wanted:
        if (bound := re.match(r"([\w.-]+)(?:\[[^]]*\])?\s*>=\s*([\d.]+)", requirement)) is None:
            continue
        name, lowest = bound.groups()  # what follows leaves out some versions, or some systems
        if _numbers(lowest) > _numbers(found.get(name, "0")):
            found[name] = lowest
    return found


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _environment(folder: Path, python: str, constraints: str, project: list[str], tools: list[str]) -> Path:
    """Make a virtual environment, or return the one that was made from the same words; give its interpreter."""
    words = "\n".join([_answer([python, "-VV"], {}), constraints, *project, *tools, _text_of("pyproject.toml")])
    stamp, interpreter = folder / "made-from", folder / "bin" / "python"
    if stamp.is_file() and stamp.read_text("utf-8") == words:
        return interpreter
    shutil.rmtree(folder, ignore_errors=True)
    env = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    }
    subprocess.run([python, "-m", "venv", str(folder)], check=True, env=env)
    listed = folder / "constraints.txt"
    listed.write_text(constraints, "utf-8")
    pip = [str(interpreter), "-m", "pip", "--disable-pip-version-check", "install", "-q"]
    subprocess.run([*pip, "-c", str(listed), "-e", *project, *tools], check=True, env=env, cwd=ROOT)
    stamp.write_text(words, "utf-8")
    return interpreter


def _text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def _answer(command: list[str], env: dict[str, str]) -> str:
    """Return what a command prints, or "" if it is not there or fails."""
    try:
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _has(module: str, python: str = sys.executable) -> bool:
    code = f"import importlib.util as u; print('here' if u.find_spec({module!r}) else '')"
    return _answer([python, "-c", code], {}) == "here"


def _kernel_folder(name: str) -> Path:
    """Return a folder for the compiled kernels of a disguise, one per state of the sources.

    numba tells processors apart by itself. It does not see that a kernel in another file was changed; this does.
    """
    digest = hashlib.sha256()
    for source in sorted((ROOT / "src").rglob("*.py")):
        digest.update(source.read_bytes())
    folder = WORK / f"kernels-{name}-{digest.hexdigest()[:12]}"
    for old in WORK.glob(f"kernels-{name}-*"):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o1777)  # the disguise may be another user
    return folder


def run(disguise: Disguise, jobs: int, extra: Sequence[str]) -> Row:
    """Run pytest in a disguise and count; the log has all the rest."""
    row = Row(disguise.name, log=str((WORK / f"{disguise.name}.log").relative_to(ROOT)))
    if reason := disguise.missing():
        row.note = f"not run: {reason}"
        return row
    if disguise.name == "bare":
        _make_bare()
    env = {**os.environ, **disguise.env, "PYTHONFAULTHANDLER": "1"}
    if disguise.own_kernels:
        env["NUMBA_CACHE_DIR"] = str(_kernel_folder(disguise.name))
    python = sys.executable
    before = _cpu()
    with (WORK / f"{disguise.name}.log").open("w", encoding="utf-8") as log:
        if disguise.python is not None:
            try:
                python = str(disguise.python(WORK / f"venv-{disguise.name}"))
            except (OSError, subprocess.CalledProcessError) as error:
                row.note = f"broken: the environment could not be made: {error}"
                return row
            env["NUMBA_CACHE_DIR"] = str(_kernel_folder(disguise.name))
            before = _cpu()
        counts = WORK / f"{disguise.name}.xml"
        counts.unlink(missing_ok=True)
        command = [*disguise.prefix, python, "-m"]
        if disguise.own_kernels or disguise.python is not None:  # otherwise each of pytest's processes compiles
            ahead = [*command, "genm.cli.warmup", *([] if extra else ["exact"])]  # few tests need all kernels
            subprocess.run(ahead, env=env, cwd=ROOT, check=False, stdout=log, stderr=log)
        spread = ["-n", str(jobs), "--dist", "worksteal"] if jobs > 1 and _has("xdist", python) else []
        command += ["pytest", "-q", "-rfE", "--hypothesis-profile=ci", f"--junitxml={counts}", *spread]
        if disguise.prefix[:1] == ["setpriv"]:
            command[command.index(f"--junitxml={counts}")] = f"--junitxml={_open_file(counts)}"
        command += [*disguise.arguments, *extra]
        print(f">> {disguise.name}: {disguise.about}", file=sys.stderr, flush=True)
        log.write(f"$ {' '.join(f'{k}={v}' for k, v in disguise.env.items())} {' '.join(command)}\n")
        log.flush()
        done = subprocess.run(
            command, env=env, cwd=ROOT, check=False, stdout=log, stderr=subprocess.STDOUT, umask=disguise.umask
        )
    row.seconds = round(_cpu() - before, 1)
    _count(row, counts)
    if done.returncode not in (0, 1) and not row.failed:
        row.note = f"broken: pytest ended with {done.returncode}; see {row.log}"
    return row


def _open_file(path: Path) -> Path:
    path.touch()
    path.chmod(0o666)
    return path


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _count(row: Row, counts: Path) -> None:
    """Take the numbers from pytest's own report; a test that fails and whose tear-down breaks counts once."""
    if not counts.is_file() or counts.stat().st_size == 0:
        row.note = f"broken: pytest wrote no report; see {row.log}"
        return
    for case in ET.parse(counts).getroot().iter("testcase"):  # noqa: S314 - pytest wrote it a moment ago
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            row.failures.append(f"{case.get('classname')}::{case.get('name')}")
        elif "skipped" in kinds:
            row.skipped += 1
        else:
            row.passed += 1
    row.failed = len(row.failures)


def show(rows: Sequence[Row]) -> str:
    """Return the table, and below it the tests that failed."""
    cells = [("disguise", "passed", "failed", "skipped", "seconds", "")]
    for row in rows:
        numbers = (str(row.passed), str(row.failed), str(row.skipped), f"{row.seconds:.0f}")
        cells.append((row.disguise, *(("-",) * 4 if row.note.startswith("not run") else numbers), row.note))
    wide = [max(len(line[c]) for line in cells) for c in range(5)]
    lines = []
    for line in cells:
        numbers = "  ".join(text.rjust(w) for text, w in zip(line[1:5], wide[1:], strict=True))
        lines.append(f"{line[0].ljust(wide[0])}  {numbers}  {line[5]}".rstrip())
    for row in rows:
        if row.failures:
            lines += ["", f"{row.disguise} ({row.log}):", *(f"  {name}" for name in row.failures)]
    return "\n".join(lines)


def main() -> int:
    """Read the command line, run, print; 1 if the suite failed in a disguise."""
    parser = argparse.ArgumentParser(
        description=textwrap.fill(" ".join((__doc__ or "").split()), 100),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [--only NAME,NAME] [--all] [--list] [--format table|json] [--jobs N] [-- PYTEST-ARGUMENTS]",
    )
    parser.add_argument("--only", metavar="NAME,NAME", help="these disguises, in this order")
    parser.add_argument("--all", action="store_true", help="those that need an environment of their own too")
    parser.add_argument("--list", action="store_true", help="name the disguises and run nothing")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="how to print the result")
    parser.add_argument("--jobs", type=int, default=2, help="processes that pytest uses (2)")
    parser.add_argument("pytest", nargs="*", metavar="PYTEST-ARGUMENTS", help="after --: passed to pytest")
    options = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    known = {disguise.name: disguise for disguise in disguises()}
    if options.only:
        names = options.only.split(",")
        if unknown := [name for name in names if name not in known]:
            parser.error(f"expected disguises from {', '.join(known)}; found {', '.join(unknown)}")
        chosen = [known[name] for name in names]
    else:
        chosen = [disguise for disguise in known.values() if options.all or options.list or not disguise.heavy]
    if options.list:
        listed = [{"name": d.name, "about": d.about, "heavy": d.heavy, "missing": d.missing()} for d in chosen]
        wide = max(len(d.name) for d in chosen)
        lines = [f"{d['name']:<{wide}}  {d['about']}{' (not here: ' + d['missing'] + ')' if d['missing'] else ''}"
                 for d in listed]  # fmt: skip
        print(json.dumps(listed, indent=2) if options.format == "json" else "\n".join(lines))
        return 0
    rows = [run(disguise, options.jobs, options.pytest) for disguise in chosen]
    print(json.dumps([asdict(row) for row in rows], indent=2) if options.format == "json" else show(rows))
    return int(any(row.is_bad for row in rows))


if __name__ == "__main__":
    sys.exit(main())

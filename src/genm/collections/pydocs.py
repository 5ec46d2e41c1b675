"""`pydocs`: a test collection made of the installed documentation of numpy, scipy and scikit-learn.

A document is an object's docstring without its summary line and without its "See Also" section. The summary line
is a query; relevant are the objects that its authors listed under "See Also". The object itself is left out of
the ranking.
"""

import importlib.util
import inspect
import json
import re
import sys
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from genm.cache import cached_bytes
from genm.errors import InputError, MissingExtraError
from genm.records import Collection, Note, make_qrels

_SIGNATURE = re.compile(r"[A-Za-z_][\w.]*\(.*\)(\s*->.*)?", re.DOTALL)
_UNDERLINE = re.compile(r"[-=]{3,}\s*")
_NAME = r"(?::[\w:]+:)?`{0,2}~?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)`{0,2}(?:\(\))?"
_ENTRY = re.compile(rf"{_NAME}(?:\s*,\s*{_NAME})*\s*,?\s*(?::(?:\s.*)?)?")
_SEPARATOR = re.compile(r"\s+:(?=\s|$)|(?<=[\w`)]):(?=\s|$)")

_RECIPE = 1
"""Increased whenever the rules below change, so that older cache entries are not used."""

_NAMESPACES = {
    "numpy": (
        "numpy", "numpy.fft", "numpy.lib.array_utils", "numpy.lib.scimath", "numpy.lib.stride_tricks",
        "numpy.linalg", "numpy.polynomial", "numpy.polynomial.chebyshev", "numpy.polynomial.polynomial",
        "numpy.polynomial.polyutils", "numpy.random", "numpy.strings",
    ),
    "scipy": (
        "scipy.cluster.hierarchy", "scipy.cluster.vq", "scipy.constants", "scipy.datasets", "scipy.differentiate",
        "scipy.fft", "scipy.integrate", "scipy.interpolate", "scipy.io", "scipy.io.arff", "scipy.io.matlab",
        "scipy.io.wavfile", "scipy.linalg", "scipy.linalg.blas", "scipy.linalg.interpolative",
        "scipy.linalg.lapack", "scipy.ndimage", "scipy.optimize", "scipy.optimize.elementwise", "scipy.signal",
        "scipy.signal.windows", "scipy.sparse", "scipy.sparse.csgraph", "scipy.sparse.linalg", "scipy.spatial",
        "scipy.spatial.distance", "scipy.spatial.transform", "scipy.special", "scipy.stats",
        "scipy.stats.contingency", "scipy.stats.qmc", "scipy.stats.sampling",
    ),
    "sklearn": (
        "sklearn.base", "sklearn.calibration", "sklearn.cluster", "sklearn.compose", "sklearn.covariance",
        "sklearn.cross_decomposition", "sklearn.datasets", "sklearn.decomposition",
        "sklearn.discriminant_analysis", "sklearn.dummy", "sklearn.ensemble", "sklearn.feature_extraction",
        "sklearn.feature_extraction.image", "sklearn.feature_extraction.text", "sklearn.feature_selection",
        "sklearn.frozen", "sklearn.gaussian_process", "sklearn.gaussian_process.kernels", "sklearn.impute",
        "sklearn.inspection", "sklearn.isotonic", "sklearn.kernel_approximation", "sklearn.kernel_ridge",
        "sklearn.linear_model", "sklearn.manifold", "sklearn.metrics", "sklearn.metrics.cluster",
        "sklearn.metrics.pairwise", "sklearn.mixture", "sklearn.model_selection", "sklearn.multiclass",
        "sklearn.multioutput", "sklearn.naive_bayes", "sklearn.neighbors", "sklearn.neural_network",
        "sklearn.pipeline", "sklearn.preprocessing", "sklearn.random_projection", "sklearn.semi_supervised",
        "sklearn.svm", "sklearn.tree", "sklearn.utils", "sklearn.utils.extmath", "sklearn.utils.validation",
    ),
}  # fmt: skip
"""The public namespaces. A walk over all modules would also find deprecated and private ones.

Left out are those that repeat others almost word for word (masked arrays, four more families of polynomials,
numpy.char, scipy.fftpack) and what is there for testing.
"""

_ON_REQUEST = frozenset({"HalvingGridSearchCV", "HalvingRandomSearchCV", "IterativeImputer"})
"""Scikit-learn shows these only after `import sklearn.experimental.enable_...`, which someone may have done."""

_EXAMPLE = re.compile(r"((?:^ *(?:>>>|\.\.\.).*\n)+)((?:^(?! *>>>)(?=.*\S).*(?:\n|\Z))*)", re.MULTILINE)
"""An example: lines of input, and what they print, up to an empty line."""
_SET = re.compile(r"\{('\w+'(?:, '\w+')+)\}")

_FEWEST_RELEVANT = 2
"""With a single relevant document a query's average precision is one reciprocal rank, which is mostly noise."""


@dataclass(frozen=True, slots=True)
class Docstring:
    """The parts of a docstring."""

    summary: str
    """Its first paragraph, on one line; a signature before it does not count."""
    body: str
    """What remains without the summary and without "See Also"."""
    see_also: tuple[str, ...]
    """The names listed under "See Also", as written there, each once."""


def split_docstring(text: str) -> Docstring:
    """Split a docstring by numpydoc's conventions; one that follows none of them is all summary and body."""
    lines = inspect.cleandoc(text).splitlines()
    start, summary = 0, ""
    while start < len(lines) and not summary:
        end = next((n for n in range(start, len(lines)) if not lines[n].strip()), len(lines))
        paragraph = " ".join(" ".join(lines[start:end]).split())
        if not _SIGNATURE.fullmatch(paragraph):
            summary = paragraph
        start = end + 1
    body: list[str] = []
    listed: list[str] = []
    inside = False
    for n in range(start, len(lines)):
        if _opens_section(lines, n):
            inside = lines[n].strip().rstrip(":").lower() == "see also"
        (listed if inside else body).append(lines[n])
    return Docstring(summary, "\n".join(body).strip(), _names(listed[2:]))


def _opens_section(lines: list[str], n: int) -> bool:
    title = lines[n]
    return (
        bool(title.strip())
        and not title[0].isspace()
        and n + 1 < len(lines)
        and _UNDERLINE.fullmatch(lines[n + 1]) is not None
    )


def _names(lines: list[str]) -> tuple[str, ...]:
    """Return the names of the entries; descriptions are indented, and what is no list of names is prose."""
    names: dict[str, None] = {}
    for line in lines:
        if line[:1].isspace() or not _ENTRY.fullmatch(line.rstrip()):
            continue
        head = _SEPARATOR.split(line, maxsplit=1)[0]
        names.update((found[1], None) for found in re.finditer(_NAME, head))
    return tuple(names)


def load_pydocs() -> Collection:
    """Build the collection from the installed libraries, or take it from the cache if it was built before.

    It is the same wherever the versions of numpy, scipy and scikit-learn are the same.
    """
    for library in _NAMESPACES:
        if importlib.util.find_spec(library) is None:
            raise MissingExtraError(f"The collection pydocs is made of {library}'s documentation, which", "rankers")
    versions = [f"{distribution} {version(distribution)}" for distribution in ("numpy", "scipy", "scikit-learn")]
    python = list(sys.version_info[:2])
    content = json.loads(cached_bytes("pydocs", (_RECIPE, versions, python, sys.platform), _build))
    query_ids = tuple(content["queries"])
    judgments = ((query_id, doc_id, 1) for query_id in query_ids for doc_id in content["queries"][query_id])
    return Collection(
        name="pydocs",
        doc_ids=tuple(content["docs"]),
        doc_texts=tuple(body for _, body in content["docs"].values()),
        query_ids=query_ids,
        query_texts=tuple(content["docs"][query_id][0] for query_id in query_ids),
        qrels=make_qrels(judgments, query_order=query_ids),
        left_out={query_id: frozenset({query_id}) for query_id in query_ids},
        notes=tuple(Note(*note) for note in content["notes"]),
    )


def _build() -> bytes:
    """Return docs {id: [summary, body]}, queries {id: [relevant ids]} and notes, as JSON."""
    names, parts = _documents()
    queries: dict[str, list[str]] = {}
    unresolved: list[str] = []
    for doc_id in sorted(parts):
        found = {name: _resolve(name, doc_id, names) for name in parts[doc_id].see_also}
        unresolved += (name for name, target in found.items() if target is None)
        relevant = sorted({t for t in found.values() if t is not None} - {doc_id})
        if len(relevant) >= _FEWEST_RELEVANT:
            queries[doc_id] = relevant
    notes = []
    if unresolved:
        text = (
            f"pydocs: names under See Also that are not in the collection, such as {unresolved[0]}, were left out"
        )
        notes.append(("see-also-unresolved", len(unresolved), text))
    docs = {doc_id: (parts[doc_id].summary, parts[doc_id].body) for doc_id in sorted(parts)}
    return json.dumps({"docs": docs, "queries": queries, "notes": notes}).encode()


def _documents() -> tuple[dict[str, str], dict[str, Docstring]]:
    """Return every public name's document id, and each document's parts; objects that share a text are one."""
    shared: dict[str, list[tuple[str, Any]]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the user cannot act on warnings that the libraries give at import
        modules = [m for listed in _NAMESPACES.values() for m in map(_import, listed) if m is not None]
    for module in modules:  # after all imports: scipy changes the docstring of a function of numpy
        for name, member in _members(module):
            shared.setdefault(_without_chance(inspect.cleandoc(member.__doc__)), []).append((name, member))
    names: dict[str, str] = {}
    parts: dict[str, Docstring] = {}
    for text, aliases in shared.items():
        docstring = split_docstring(text)
        if not docstring.summary or not docstring.body:
            continue
        doc_id, _ = min(aliases, key=_rank_alias)
        parts[doc_id] = docstring
        names.update((name, doc_id) for name, _ in aliases)
    if not parts:
        raise InputError("pydocs: expected docstrings; found none. Python's option -OO removes them.")
    return names, parts


def _import(namespace: str) -> types.ModuleType | None:
    try:
        return importlib.import_module(namespace)
    except ModuleNotFoundError:  # of a newer or older version of the library
        return None


def _without_chance(text: str) -> str:
    """Return a docstring without what differs between two imports: drawn numbers and the order of sets.

    Scipy runs some examples while it is imported; what they print is marked "may vary".
    """
    text = _EXAMPLE.sub(lambda found: found[1] if "may vary" in found[2] else found[0], text)
    return _SET.sub(lambda found: "{" + ", ".join(sorted(found[1].split(", "))) + "}", text)


def _members(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the documented functions and classes of a module under their full names.

    Exceptions say little, and numpy's scalar types differ between machines. Members are taken from the module's
    own table, so that what is loaded on first use is neither loaded nor missed by chance.
    """
    namespace, table = module.__name__, vars(module)
    listed = table.get("__all__")
    if listed is None:
        listed = [name for name, member in table.items() if getattr(member, "__module__", None) == namespace]
    for name in sorted(set(listed) - _ON_REQUEST):
        member = table.get(name)
        if name.startswith("_") or isinstance(member, types.ModuleType) or not callable(member):
            continue
        if isinstance(member, type):
            documented = not issubclass(member, BaseException | np.generic)
        else:
            documented = member.__doc__ != type(member).__doc__
        if documented and isinstance(member.__doc__, str):
            yield f"{namespace}.{name}", member


def _rank_alias(alias: tuple[str, Any]) -> tuple[bool, int, int, str]:
    """Order names of one object: first those it calls itself by, then the short ones."""
    name, member = alias
    own = getattr(member, "__name__", None) or getattr(member, "name", None)
    return name.rpartition(".")[2] != own, name.count("."), len(name), name


def _resolve(name: str, doc_id: str, names: dict[str, str]) -> str | None:
    """Return the document that a name means in the docstring of `doc_id`: as written, or seen from its module."""
    if name.startswith("np."):
        name = f"numpy.{name.removeprefix('np.')}"
    scope = doc_id.rpartition(".")[0]
    candidates = [name]
    while scope:
        candidates.append(f"{scope}.{name}")
        scope = scope.rpartition(".")[0]
    return next((names[c] for c in candidates if c in names), None)

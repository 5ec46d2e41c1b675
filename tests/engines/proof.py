"""The proof that an engine ranks as the model says: pull, fit, export, ask, compare with `genm fuse`."""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from genm.cli.app import app
from genm.collections import is_available, load_collection
from genm.export import find_target
from genm.read import read_run

AT = 10
N_FACTORS = 32
Lists = Mapping[str, Mapping[str, float]]
"""What one ranker returned: query id to doc id to score."""


@dataclass(frozen=True)
class Texts:
    """Documents and queries with their vectors, in the order in which engines are filled: doc ids downwards.

    Most engines order equal scores by the order in which they got the documents. Filled in genm's order of equal
    scores, they agree with it; engines with another rule are compared by that rule.
    """

    name: str
    docs: Mapping[str, str]
    queries: Mapping[str, str]
    relevant: Mapping[str, Sequence[str]]
    doc_vectors: Mapping[str, list[float]]
    query_vectors: Mapping[str, list[float]]


@dataclass(frozen=True)
class Row:
    """One line of the table at the end."""

    engine: str
    version: str
    technique: str
    n_queries: int
    n_equal: int


@dataclass
class Proof:
    """What an engine is held to; `rows` are shown at the end."""

    texts: Texts
    folder: Path
    rows: list[Row] = field(default_factory=list)

    def compare(
        self,
        engine: tuple[str, str],
        target: str,
        runs: Mapping[str, Lists],
        ask: Callable[[str, str], list[str]],
        *,
        options: Sequence[str] = (),
        settings: Callable[[str], Mapping[str, str]] = lambda query: {},
        tie: Callable[[str], Callable[[str], Any]] | None = None,
        single: bool = False,
    ) -> list[str]:
        """Train on the engine's own lists, send what `genm export` writes and return the queries that differ.

        `ask(exported, query)` gives the engine's ranking. `tie(query)` is the key of the engine's order of equal
        scores, where it is not doc ids downwards. `single` says that it adds scores in single precision.
        """
        folder = self.folder / f"{target}{'-'.join(options).replace('--', '-').replace('=', '-')}"
        folder.mkdir(parents=True)
        named = [f"{ranker}={_written(folder / f'{ranker}.trec', lists)}" for ranker, lists in runs.items()]
        qrels = folder / "qrels.txt"
        judged = [f"{q} 0 {doc} 1\n" for q, docs in self.texts.relevant.items() for doc in docs]
        qrels.write_text("".join(judged), encoding="utf-8")
        model = folder / "model.json"
        method = [] if find_target(target).weights.equal else ["--method", "newton"]
        fit = ["--target", target, *options, *method, "--folds", "2", "--qrels", str(qrels)]
        genm("fit", *fit, *named, "-o", str(model))
        genm("fuse", "--model", str(model), *named, "-o", str(folder / "fused.trec"))
        fused = read_run(folder / "fused.trec")
        differing = []
        for query in self.texts.queries:
            said = [word for name, value in settings(query).items() for word in ("--set", f"{name}={value}")]
            theirs = ask(genm("export", str(model), *said), query)[:AT]
            ours = expected(fused.get(query, {}), tie and tie(query), single=single)[:AT]
            if theirs != ours:
                differing.append(f"{query}: engine {theirs}, genm {ours}")
        technique = " ".join([target, *(word for word in options if not word.startswith("--"))])
        n_queries = len(self.texts.queries)
        self.rows.append(Row(*engine, technique, n_queries, n_queries - len(differing)))
        return differing


def expected(fused: Mapping[str, float], tie: Callable[[str], Any] | None, *, single: bool) -> list[str]:
    """Return the documents best first, equal scores in the engine's order."""
    docs = sorted(fused, reverse=True) if tie is None else sorted(fused, key=tie)
    rounded = {doc: as_single(score) if single else score for doc, score in fused.items()}
    return sorted(docs, key=lambda doc: -rounded[doc])


def as_single(value: float) -> float:
    """Return the nearest number of single precision."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def genm(*words: str) -> str:
    """Run a command line in this process and return what it writes."""
    done = CliRunner(env={"COLUMNS": "80"}).invoke(app, list(words), catch_exceptions=False, prog_name="genm")
    assert done.exit_code == 0, done.stderr
    return done.stdout


def _written(path: Path, lists: Lists) -> Path:
    lines = [
        f"{query} Q0 {doc} {place} {score!r} {path.stem}\n"
        for query, scores in lists.items()
        for place, (doc, score) in enumerate(scores.items(), start=1)
    ]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def load_texts() -> Texts:
    """Return MED, or the docstrings of installed packages where GENM_DATA names no folder that has it."""
    held = load_collection("med" if is_available("med") else "pydocs")
    order = sorted(range(len(held.doc_ids)), key=lambda i: held.doc_ids[i], reverse=True)[:2000]
    ids = [held.doc_ids[i] for i in order]
    known = set(ids)
    relevant = {q: [d for d, grade in held.qrels[q].items() if grade > 0 and d in known] for q in held.qrels}
    chosen = [i for i, query in enumerate(held.query_ids) if relevant.get(query)][:40]
    doc_vectors, query_vectors = _vectors([held.doc_texts[i] for i in order], [held.query_texts[i] for i in chosen])
    queries = [held.query_ids[i] for i in chosen]
    return Texts(
        held.name,
        {held.doc_ids[i]: " ".join(held.doc_texts[i].split()) for i in order},
        {held.query_ids[i]: " ".join(held.query_texts[i].split()) for i in chosen},
        {query: relevant[query] for query in queries},
        dict(zip(ids, doc_vectors, strict=True)),
        dict(zip(queries, query_vectors, strict=True)),
    )


def _vectors(docs: list[str], queries: list[str]) -> tuple[list[list[float]], list[list[float]]]:
    """Return vectors of length 1 by latent semantic analysis: a ranker that needs no download."""
    from sklearn.decomposition import TruncatedSVD  # slow: pytest reads this file for every test
    from sklearn.feature_extraction.text import TfidfVectorizer

    weigh = TfidfVectorizer(sublinear_tf=True, stop_words="english")
    counted = weigh.fit_transform(docs)
    reduce = TruncatedSVD(N_FACTORS, random_state=0).fit(counted)
    return tuple(_of_length_one(reduce.transform(x)) for x in (counted, weigh.transform(queries)))


def _of_length_one(rows: np.ndarray) -> list[list[float]]:
    """Return the rows as numbers of single precision, which engines keep; a row of zeros gets a direction."""
    rows = np.where(np.abs(rows).sum(axis=1, keepdims=True) > 0, rows, 1.0)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32).astype(float).tolist()


def term_vectors(docs: list[str], queries: list[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the weights of the terms of each text, for engines that take sparse vectors."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    weigh = TfidfVectorizer(sublinear_tf=True, stop_words="english", dtype=np.float32)
    counted = weigh.fit_transform(docs), weigh.transform(queries)
    return tuple(
        [{"indices": row.indices.tolist(), "values": row.data.astype(float).tolist()} for row in rows.tocsr()]
        for rows in counted
    )

"""Probabilistic latent semantic indexing (Hofmann 1999): documents as mixtures of topics, fitted by tempered EM.

Two forms of the score. In term space (Hofmann's PLSI-U, the default) a document's word distribution is its
smoothed one, share * observed + (1 - share) * sum_z P(w|z) P(z|d), and the query keeps its counts; both are
weighted by idf. In topic space (PLSI-Q) the query is folded in and P(z|q) meets P(z|d). In both cases the
cosines of several models with different numbers of topics are averaged.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from scipy.sparse import csr_array

from genm._math import topic_models
from genm._math.linear_algebra import row_products
from genm._typing import Floats
from genm.cache import Arrays
from genm.errors import InputError
from genm.progress import Progress
from genm.rankers.base import (
    Ranker,
    check_choice,
    check_sizes,
    cosines,
    in_threads,
    inverse,
    scale_columns,
    scale_rows,
)
from genm.rankers.text import Texts
from genm.rankers.tfidf import inverse_document_frequency

Space = Literal["terms", "topics"]

EXPONENTS = (0.65, 0.7, 0.75, 0.8)
"""Tempering exponents that compete on held-out counts."""
_TRIAL_TOPICS, _TRIAL_STEPS = 48, 60
_FOLD_STEPS = 30


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """One fitted model: P(z), P(d|z) and P(w|z), topics in the columns."""

    topics: Floats
    documents: Floats
    terms: Floats

    def of_documents(self) -> Floats:
        """Return P(z|d), a row per document; zeros for a document without terms."""
        joint = self.documents * self.topics
        return joint * inverse(joint.sum(axis=1))[:, None]


class PlsiRanker(Ranker):
    """Tempered EM, several numbers of topics averaged (the paper's pLSI).

    `exponent` None lets held-out counts choose it, without any query: a tenth of the occurrences is hidden, a
    model of 48 topics is fitted with each candidate, and the one that predicts the hidden ones best is taken.
    `patience` n stops a model when the hidden counts have not become likelier for n steps, and keeps the best.
    """

    name: ClassVar[str] = "plsi"

    def __init__(
        self,
        *,
        n_topics: tuple[int, ...] = (32, 48, 64, 80, 128),
        exponent: float | None = None,
        n_steps: int = 100,
        patience: int | None = None,
        space: Space = "terms",
        share: float = 0.2,
        seed: int = 0,
    ) -> None:
        self.n_topics, self.exponent, self.n_steps, self.patience = n_topics, exponent, n_steps, patience
        self.space, self.share, self.seed = space, share, seed

    def _check(self) -> None:
        check_sizes(self.name, "n_topics", self.n_topics)
        check_sizes(self.name, "n_steps", [self.n_steps])
        check_choice(self.name, "space", self.space, ("terms", "topics"))
        if self.patience is not None:
            check_sizes(self.name, "patience", [self.patience])
        if self.exponent is not None and not 0 < self.exponent <= 1:
            raise InputError(f"plsi: expected an exponent above 0 and up to 1; found {self.exponent}.")
        if not 0 <= self.share <= 1:
            raise InputError(f"plsi: expected a share from 0 to 1; found {self.share}.")

    def _learn(self, documents: Texts, progress: Progress) -> Arrays:
        counts = documents.counts
        b = choose_exponent(counts, self.seed, progress) if self.exponent is None else self.exponent
        learned: Arrays = {"exponent": np.array(b), "idf": inverse_document_frequency(counts, "plain")}
        fit = partial(fit_mixture, counts, exponent=b, n_steps=self.n_steps, patience=self.patience, seed=self.seed)
        for k, model in zip(
            self.n_topics, in_threads(fit, self.n_topics, self.name, progress, cost=int), strict=True
        ):
            learned |= {f"topics{k}": model.topics, f"documents{k}": model.documents, f"terms{k}": model.terms}
        return learned

    def model(self, n_topics: int) -> Mixture:
        """Return the fitted model with so many topics."""
        return Mixture(*(self.learned_[f"{part}{n_topics}"] for part in ("topics", "documents", "terms")))

    def _score(self, queries: Texts) -> Floats:
        total = np.zeros((len(queries.raw), len(self.documents_.raw)))
        for k in self.n_topics:
            if self.space == "terms":
                total += self._in_term_space(queries.counts, self.model(k))
            else:
                total += self._in_topic_space(queries.counts, self.model(k))
        return total / len(self.n_topics)

    def _in_topic_space(self, queries: csr_array, model: Mixture) -> Floats:
        folded = fold_in(queries, model, float(self.learned_["exponent"]))
        return cosines(folded, model.of_documents())

    def _in_term_space(self, queries: csr_array, model: Mixture) -> Floats:
        """Cosines with the smoothed documents, whose vectors over all terms are never written down."""
        counts, squared = self.documents_.counts, self.learned_["idf"] ** 2
        of_documents, weighted = model.of_documents(), model.terms * squared[:, None]
        observed = scale_rows(counts, inverse(np.asarray(counts.sum(axis=1)).ravel()))
        asked = scale_columns(queries, squared)
        a, b = self.share, 1.0 - self.share
        products = b * row_products(asked @ model.terms, of_documents) + a * (asked @ observed.T).toarray()
        lengths = (
            b * b * (row_products(of_documents, row_products(weighted.T, model.terms.T)) * of_documents).sum(axis=1)
            + 2 * a * b * ((observed @ weighted) * of_documents).sum(axis=1)
            + a * a * np.asarray((observed * observed) @ squared).ravel()
        )
        query_lengths = np.asarray((queries * queries) @ squared).ravel()
        scores: Floats = products * inverse(np.sqrt(query_lengths))[:, None] * inverse(np.sqrt(lengths))
        return scores


def fit_mixture(
    counts: csr_array, n_topics: int, *, exponent: float, n_steps: int, patience: int | None, seed: int
) -> Mixture:
    """Fit one model from a random start; with `patience`, on nine tenths of the counts, stopped by the last."""
    generator = np.random.default_rng([seed, n_topics])
    if patience is None:
        seen, hidden = _parts(counts), None
    else:
        seen, hidden = (_parts(c) for c in hide(counts, generator))
    model = _random_start(counts.shape, n_topics, generator)
    best, best_value, waited = model, -np.inf, 0
    for _ in range(n_steps):
        _, *parameters = topic_models.em_step(*seen, model.topics, model.documents, model.terms, exponent)
        model = Mixture(*parameters)
        if hidden is None:
            best = model
            continue
        value = _likelihood(hidden, model)
        if value > best_value:
            best, best_value, waited = model, value, 0
        else:
            waited += 1
            if patience is not None and waited >= patience:
                break
    return best


def choose_exponent(counts: csr_array, seed: int, progress: Progress) -> float:
    """Return the candidate under which a small model predicts hidden occurrences best; it sees no query."""
    if counts.nnz == 0:
        return EXPONENTS[-1]
    kept, hidden = (_parts(c) for c in hide(counts, np.random.default_rng([seed, _TRIAL_TOPICS])))

    def trial(place: int) -> float:
        generator = np.random.default_rng([seed, _TRIAL_TOPICS])
        model = _random_start(counts.shape, _TRIAL_TOPICS, generator)
        for _ in range(_TRIAL_STEPS):
            _, *parameters = topic_models.em_step(
                *kept, model.topics, model.documents, model.terms, EXPONENTS[place]
            )
            model = Mixture(*parameters)
        return _likelihood(hidden, model)

    values = in_threads(trial, range(len(EXPONENTS)), "plsi tempering", progress, cost=int)
    return EXPONENTS[int(np.argmax(values))]


def fold_in(queries: csr_array, model: Mixture, exponent: float) -> Floats:
    """Return P(z|q) of new texts with P(w|z) held fixed; zeros for a text without known terms."""
    folded = np.zeros((queries.shape[0], len(model.topics)))
    right, prior = topic_models.raised(model.terms, exponent), topic_models.raised(model.topics, 1.0 - exponent)
    topic_models.plsi_fold_in(*_parts(queries), right, prior, exponent, _FOLD_STEPS, folded)
    return folded


def hide(counts: csr_array, generator: np.random.Generator) -> tuple[csr_array, csr_array]:
    """Split the occurrences at random: nine tenths to see, one tenth to predict."""
    chosen = generator.binomial(counts.data.astype(np.int64), 0.1).astype(np.float64)
    seen, hidden = counts.copy(), counts.copy()
    seen.data, hidden.data = counts.data - chosen, chosen
    for part in (seen, hidden):
        part.eliminate_zeros()
    return seen, hidden


def _random_start(shape: tuple[int, int], n_topics: int, generator: np.random.Generator) -> Mixture:
    terms, documents = (generator.standard_exponential((n, n_topics)) for n in shape[::-1])
    return Mixture(np.full(n_topics, 1.0 / n_topics), documents / documents.sum(axis=0), terms / terms.sum(axis=0))


def _likelihood(parts: topic_models.SparseCounts, model: Mixture) -> float:
    return float(topic_models.plsi_log_likelihood(*parts, model.documents * model.topics, model.terms))


def _parts(counts: csr_array) -> topic_models.SparseCounts:
    return counts.indptr.astype(np.int64), counts.indices.astype(np.int32), counts.data.astype(np.float64)

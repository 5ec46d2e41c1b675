"""The vector space: cosine of weighted term counts."""

from typing import ClassVar

from genm.cache import Arrays
from genm.progress import Progress
from genm.rankers.base import Array, Ranker, check_choice, scale_columns, unit_rows_sparse
from genm.rankers.text import Texts
from genm.rankers.weighting import IDF, TF, Idf, Tf, inverse_document_frequency, local_weights


class TfidfRanker(Ranker):
    """Cosine of tf x idf vectors (the paper's TFIDF)."""

    name: ClassVar[str] = "tfidf"

    def __init__(self, *, tf: Tf = "raw", idf: Idf = "plain") -> None:
        self.tf, self.idf = tf, idf

    def _check(self) -> None:
        check_choice(self.name, "tf", self.tf, TF)
        check_choice(self.name, "idf", self.idf, IDF)

    def _worth_keeping(self) -> bool:
        return False  # a pass over the counts, quicker than reading it back

    def _learn(self, documents: Texts, progress: Progress) -> Arrays:
        progress(self.name, 1, 1)
        return {"idf": inverse_document_frequency(documents.counts, self.idf)}

    def _score(self, queries: Texts) -> Array:
        weights = self.learned_["idf"]
        rows = [
            unit_rows_sparse(scale_columns(local_weights(t.counts, self.tf), weights))
            for t in (queries, self.documents_)
        ]
        scores: Array = (rows[0] @ rows[1].T).toarray()
        return scores

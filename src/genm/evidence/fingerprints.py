"""A hash of the data, to tell whether two models, or a model and a report, saw the same."""

import hashlib

import numpy as np

from genm.align import Aligned


def fingerprint(aligned: Aligned) -> str:
    """Return a hash of queries, documents, raw scores and judgments."""
    digest = hashlib.sha256("\0".join(aligned.rankers).encode())
    parts = (
        aligned.queries.text, aligned.queries.starts, aligned.docs.text, aligned.docs.starts, aligned.starts,
        aligned.doc, aligned.raw, aligned.retrieved, aligned.relevance, aligned.unretrieved, aligned.query_weights,
    )  # fmt: skip
    for part in parts:
        digest.update(f"{part.dtype}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()

"""Test collections by their ir_datasets id, for users who have that package (extra `irds`)."""

from genm.errors import InputError, MissingExtraError
from genm.records import Collection, Note, make_qrels


def load_irds(dataset_id: str) -> Collection:
    """Load a dataset of ir_datasets, such as "vaswani" or "beir/scifact/test"; that package may download it.

    Texts are what the dataset calls its default text. All queries of the id are returned. Where a pair is judged
    more than once (by subtopic, say), the highest relevance is kept and a note says so.
    """
    try:
        import ir_datasets
    except ImportError:
        raise MissingExtraError("Loading a collection by its ir_datasets id", "irds") from None
    try:
        dataset = ir_datasets.load(dataset_id)
    except KeyError:
        raise InputError(f"irds:{dataset_id}: expected an id that ir_datasets knows; found another") from None
    missing = [p for p, has in (("docs", dataset.has_docs()), ("queries", dataset.has_queries())) if not has]
    if missing or not dataset.has_qrels():
        missing += [] if dataset.has_qrels() else ["qrels"]
        raise InputError(
            f"irds:{dataset_id}: expected docs, queries and qrels; found no {' and no '.join(missing)}. "
            "Often a longer id, with the split at its end, has them."
        )
    docs = {doc.doc_id: doc.default_text() for doc in dataset.docs_iter()}
    queries = {query.query_id: query.default_text() for query in dataset.queries_iter()}
    best: dict[tuple[str, str], int] = {}
    repeated = 0
    for judgment in dataset.qrels_iter():
        pair = (judgment.query_id, judgment.doc_id)
        repeated += pair in best
        best[pair] = max(judgment.relevance, best.get(pair, judgment.relevance))
    notes = []
    if repeated:
        text = f"irds:{dataset_id}: of pairs that are judged more than once the highest relevance was kept"
        notes.append(Note("duplicate-kept-max", repeated, text))
    unjudged = len(queries.keys() - {query_id for query_id, _ in best})
    if unjudged:
        notes.append(Note("unjudged-query", unjudged, f"irds:{dataset_id}: {unjudged} queries have no judgments"))
    triples = ((query_id, doc_id, relevance) for (query_id, doc_id), relevance in best.items())
    return Collection(
        name=f"irds:{dataset_id}",
        doc_ids=tuple(docs),
        doc_texts=tuple(docs.values()),
        query_ids=tuple(queries),
        query_texts=tuple(queries.values()),
        qrels=make_qrels(triples, query_order=queries),
        notes=tuple(notes),
    )

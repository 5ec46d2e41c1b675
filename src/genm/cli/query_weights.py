"""How weights by group and per-query gates are printed, by `genm fit` and `genm explain`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from genm.cli import console
from genm.formatting import signed

if TYPE_CHECKING:
    import genm
    from genm.evaluate import Contrast


def as_json(model: "genm.Model", evidence: "genm.evidence.QueryWeightsEvidence | None") -> dict[str, Any]:
    """Return the groups or the gate with what they are worth; nothing where there are none."""
    if evidence is None:
        return {}
    found: dict[str, Any] = {
        "overall": _contrast_json(evidence.overall),
        "worth_it": evidence.is_worth_it,
        "verdict": evidence.verdict(),
        "folds_used": [evidence.n_used, evidence.n_folds],
    }
    if model.groups is not None:
        found["pooling"] = model.groups.pooling
        found["groups"] = [
            {
                "name": one.name,
                "queries": one.n_queries,
                "weights": dict(zip(model.rankers, one.weights, strict=True)),
                "gain": _contrast_json(evidence.gains[one.name]) if one.name in evidence.gains else None,
            }
            for one in model.groups.members
        ]
    else:
        found["used"] = model.gate is not None
        found["features"] = [] if model.gate is None else list(model.gate.features.names)
    return {"groups" if evidence.kind == "groups" else "per_query": found}


def as_tsv(
    model: "genm.Model", evidence: "genm.evidence.QueryWeightsEvidence | None"
) -> Iterator[tuple[str, str, str]]:
    """Yield what is measured, whom it belongs to, and its value."""
    if evidence is None:
        return
    yield f"{evidence.kind}.gain", "all", f"{evidence.overall.difference:.6f}"
    yield f"{evidence.kind}.gain.low", "all", f"{evidence.overall.low:.6f}"
    yield f"{evidence.kind}.gain.high", "all", f"{evidence.overall.high:.6f}"
    yield f"{evidence.kind}.worth_it", "all", str(int(evidence.is_worth_it))
    for one in () if model.groups is None else model.groups.members:
        for ranker, weight in zip(model.rankers, one.weights, strict=True):
            yield f"group.weight.{one.name}", ranker, repr(weight)
        if one.name in evidence.gains:
            yield "group.gain", one.name, f"{evidence.gains[one.name].difference:.6f}"


def table(model: "genm.Model", evidence: "genm.evidence.QueryWeightsEvidence | None") -> None:
    """Print the weights of each group beside the global ones, and in a sentence what they are worth."""
    if evidence is None:
        return
    gain_header = "gain over global, held out"
    if model.groups is not None:
        rows = [("all (global)", str(len(evidence.query_ids)), *map(console.weight_text, model.weights), "")]
        for one in model.groups.members:
            gain = evidence.gains.get(one.name)
            told = "too few queries" if gain is None else _gain_text(gain)
            rows.append((one.name, f"{one.n_queries:,}", *map(console.weight_text, one.weights), told))
        console.print_table("Weights by group", ["group", "queries", *model.rankers, gain_header], rows)
    console.print_text(evidence.verdict())


def _gain_text(gain: "Contrast") -> str:
    mark = "*" if gain.outcome in ("better", "worse") else " "
    return f"{signed(gain.difference)} [{signed(gain.low)}, {signed(gain.high)}]{mark}"


def _contrast_json(gain: "Contrast") -> dict[str, Any]:
    return {"difference": gain.difference, "interval": [gain.low, gain.high], "outcome": gain.outcome}

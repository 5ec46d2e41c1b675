"""The evidence behind learned weights, as a person, a shell script or a program reads it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from genm.cli.compare import p_text
from genm.cli.console import print_table, print_text

if TYPE_CHECKING:
    from genm.evidence import Evidence

LEARNED = "learned weights"


class Line(NamedTuple):
    """One row of the table: what it is, its value on the training queries, and held out."""

    label: str
    name: str
    train: float
    held_out: float


def evidence_json(evidence: "Evidence") -> dict[str, Any]:
    """Return the evidence as a JSON object, query by query."""
    from genm.evidence import BEST_SINGLE

    held_out, measure = evidence.held_out, str(evidence.measure)
    means = {name: evidence.mean(values) for name, values in (evidence.singles | evidence.rules).items()}
    return {
        "train": {measure: evidence.mean(evidence.train)},
        "cv": {
            "measure": measure,
            "mean": held_out.mean,
            "interval": list(evidence.interval),
            "per_query": dict(zip(evidence.query_ids, held_out.per_query.tolist(), strict=True)),
            "folds": dict(zip(evidence.query_ids, held_out.fold.tolist(), strict=True)),
            "fold_weights": held_out.weights.tolist(),
        },
        "baselines": {**means, BEST_SINGLE: evidence.mean(evidence.best_single)},
        "gains": {
            name: {
                "difference": gain.difference,
                "interval": [gain.low, gain.high],
                "p": dict(gain.p_values),
                "better": gain.n_better,
                "worse": gain.n_worse,
            }
            for name, gain in evidence.gains.items()
        },
        "significant": evidence.is_significant,
        "verdict": evidence.verdict(),
    }


def evidence_tsv(evidence: "Evidence") -> Iterator[tuple[str, str, str]]:
    """Yield what is measured, whom it belongs to, and its value."""
    measure = str(evidence.measure)
    for line in _lines(evidence):
        yield f"train.{measure}", line.name, f"{line.train:.6f}"
        yield f"cv.{measure}", line.name, f"{line.held_out:.6f}"
    for name, gain in evidence.gains.items():
        yield "gain", name, f"{gain.difference:.6f}"
        yield "gain.low", name, f"{gain.low:.6f}"
        yield "gain.high", name, f"{gain.high:.6f}"
        yield "gain.p", name, f"{gain.p_values['wilcoxon']:.6g}"


def evidence_table(evidence: "Evidence") -> None:
    """Print the table of who wins and, in a sentence, what it means."""
    lines = _lines(evidence)
    rows = [(s.label, f"{s.train:.4f}", f"{s.held_out:.4f}", _gain(evidence, s.name)) for s in lines]
    best = [max(range(len(lines)), key=lambda r: lines[r][c]) for c in (2, 3)]
    header = [str(evidence.measure), "training", "held out", f"learned - this [{evidence.confidence:.0%}] p"]
    folds = len(evidence.held_out.weights)
    weighted = " weighted" if len(set(evidence.query_weights.tolist())) > 1 else ""
    title = f"{len(evidence.query_ids):,}{weighted} queries, {folds}-fold cross-validation"
    print_table(title, header, rows, best=best)
    print_text(evidence.verdict())


def _lines(evidence: "Evidence") -> list[Line]:
    from genm.evidence import BEST_SINGLE

    lines = []
    for name, values in (evidence.singles | evidence.rules).items():
        mean = evidence.mean(values)  # nothing is learned here: seen or unseen is all one
        lines.append(Line(name, name, mean, mean))
    best = max(evidence.mean(values) for values in evidence.singles.values())
    lines.append(Line("best single, by training", BEST_SINGLE, best, evidence.mean(evidence.best_single)))
    lines.append(Line(LEARNED, LEARNED, evidence.mean(evidence.train), evidence.held_out.mean))
    return lines


def _gain(evidence: "Evidence", name: str) -> str:
    if name not in evidence.gains:
        return ""
    gain = evidence.gains[name]
    p = p_text(gain.p_values["wilcoxon"])
    return f"{gain.difference:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}] {p:>6}"

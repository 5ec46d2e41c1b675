"""The report's figures as rows of text, for Markdown and LaTeX."""

import re
from typing import NamedTuple

from genm.explain.losses import VERDICT_TEXTS
from genm.formatting import between, signed
from genm.report.payload import Report

N_QUERIES = 5
"""Queries with the largest losses, and as many with the largest gains."""
_LONGEST_TEXT = 60
"""The largest number of characters of a query's text in a table."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class TextTable(NamedTuple):
    """A caption, a header and rows; the first column is text, the others numbers. `bold` holds (row, column)."""

    caption: str
    label: str
    header: list[str]
    rows: list[list[str]]
    bold: frozenset[tuple[int, int]] = frozenset()


def one_line(text: str) -> str:
    """Return text from a file on one line; control characters and marks of direction are written out."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def weights_table(report: Report) -> TextTable:
    """Return the weights with their spread, and the verdict on each ranker."""
    spread = report["spread"]
    held = any(row["before"] for row in spread["rows"])
    drawn = {"bootstrap": "95% of refits", "folds": "95% of folds", "none": "spread"}[spread["kind"]]
    verdicts = {row["ranker"]: row for row in report["verdicts"]["rows"]}
    asked = ["lost without it", "verdict"] if verdicts else []
    header = ["ranker", "weight", drawn, *(["before shrinkage"] if held else []), "near-optimal", *asked]
    rows = []
    for row in spread["rows"]:
        verdict = verdicts.get(row["ranker"])
        told = [] if verdict is None else [signed(verdict["loss"]), VERDICT_TEXTS[verdict["verdict"]]]
        rows.append(
            [
                row["ranker"],
                f"{row['weight']:.4f}",
                _range(row["quantiles"]),
                *([_range(row["before"])] if held else []),
                _range(row["plateau"]),
                *told,
            ]
        )
    caption = "Weights and their spread"
    if verdicts:
        caption += "; what is lost without a ranker, held out, with the others learned again"
    return TextTable(caption, "weights", header, rows)


def _range(values: list[float] | None) -> str:
    return "" if values is None else f"{values[0]:.3f} to {values[-1]:.3f}"


def gains_table(report: Report) -> TextTable:
    """Return the held-out gains."""
    head = report["headline"]
    interval = f"{head['confidence']:.0%} interval"
    header = [f"held out, over {report['n_queries']:,} queries", "rival", "gain", interval, "outcome", "p"]
    rows = [
        [
            f"over {gain['label']}",
            f"{gain['rival_mean']:.4f}",
            signed(gain["difference"]),
            between(gain["low"], gain["high"]),
            gain["outcome"],
            f"{gain['p']:.2g}",
        ]
        for gain in head["gains"]
    ]
    return TextTable(f"Gain in {report['measure']}, {head['folds']}-fold cross-validation", "gains", header, rows)


def measures_table(report: Report) -> TextTable:
    """Return the means of every measure for every system; the best held-out value of each column is bold."""
    table = report["measures"]
    systems = table["systems"]
    rows = [[one["label"], *(f"{value:.4f}" for value in one["values"])] for one in systems]
    honest = [r for r, one in enumerate(systems) if one["held_out"]]
    bold = set()
    for c in range(1, len(table["measures"]) + 1):
        best = max(honest, key=lambda r: float(rows[r][c]))
        bold |= {(r, c) for r in honest if rows[r][c] == rows[best][c]}
    return TextTable("Means over queries", "measures", ["", *table["measures"]], rows, frozenset(bold))


def queries_table(report: Report) -> TextTable:
    """Return the queries that lose and gain most, the largest loss first."""
    table = report["queries"]
    delta = table["delta"]
    order = sorted(range(len(delta)), key=delta.__getitem__)
    lost = [q for q in order[:N_QUERIES] if delta[q] < 0]
    won = [q for q in order[-N_QUERIES:] if delta[q] > 0]
    fused, rival = table["values"]["learned weights"], table["values"][table["rival"]]
    rows = [
        [
            _query(report, q),
            f"{fused[q]:.4f}",
            f"{rival[q]:.4f}",
            signed(delta[q]),
            str(table["n_relevant"][q]),
        ]
        for q in (*lost, *won)
    ]
    header = ["query", "learned", table["rival"], "difference", "relevant"]
    return TextTable(f"Largest losses and gains in {report['measure']}, held out", "queries", header, rows)


def _query(report: Report, q: int) -> str:
    """Return a query's id and, where it is known, the beginning of its text."""
    table = report["queries"]
    text = "" if table["texts"] is None else table["texts"][q]
    if len(text) > _LONGEST_TEXT:
        text = text[: _LONGEST_TEXT - 1] + "…"
    return f"{table['query_ids'][q]}: {text}" if text else table["query_ids"][q]


def remarks(report: Report) -> list[str]:
    """Return the sentences that belong beside the figures."""
    learning = report["learning"]
    return [
        *report["verdicts"]["advice"],
        report["headline"]["criterion"],
        *([learning["sentence"]] if learning else []),
        report["spread"]["note"],
        *(warning["text"] for warning in report["coverage"]["warnings"]),
        *(said["sentence"] for said in report["sampling"] if said["part"] not in ("details", "sliders", "queries")),
    ]


def facts(report: Report) -> dict[str, str]:
    """Return how the report was made."""
    made = report["made"]
    return {
        "command": made["command"],
        "method": made["method"],
        "versions": ", ".join(f"{name} {version}" for name, version in made["versions"].items()),
        "data": made["fingerprint"],
        **{one["role"]: f"{one['name']} {one['sha256'] or ''}".rstrip() for one in made["files"]},
        "seed": str(made["seed"]),
    }

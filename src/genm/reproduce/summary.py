"""The result in eighty columns: what the paper printed and what was reached, row by row."""

from genm.reproduce.methods import AUTO, BAT, ENM, ON, UNS
from genm.reproduce.paper import TABLE_3, best_printed
from genm.reproduce.results import MEASURES, Results

_SHOWN = {ENM: "EnM", BAT: "BAT", ON: "ON", UNS: "UnsEnM", AUTO: "auto"}
"""Methods and what their columns are called, where room is short."""


def summary_of(results: Results) -> tuple[list[str], list[list[str]], list[int]]:
    """Return header and rows of the summary, and no best row: the best stands across, not down."""
    header = ["data", "measure", "paper", *_SHOWN.values(), "best"]
    rows = []
    for one in results.collections:
        for m, (measure, _) in enumerate(MEASURES):
            values = {name: float(one.methods[name].mean[m]) for name in _SHOWN}
            printed = f"{best_printed(one.title, measure):.4f}" if (one.title, measure) in TABLE_3 else "-"
            best = max(values, key=values.__getitem__)
            cells = [f"{value:.4f}" for value in values.values()]
            rows.append([one.title, measure, printed, *cells, _SHOWN[best]])
    return header, rows, []

"""The sections of the report that need no script: headline, weights, measures, data, how it was made."""

from collections.abc import Sequence

from genm.report.html import escape, isolated
from genm.report.markup import bar, between, decimals, facts, signed, table, with_minus
from genm.report.payload import Gain, Report, System, WeightRow
from genm.report.words import NONE, measure_name, n_queries, p_value, percent

_TAGS = {
    "better": ("▲", "Significant gain", "good"),
    "perhaps better": ("◆", "Not proven", "warn"),
    "equal": ("■", "No difference", "plain"),
    "perhaps worse": ("■", "No significant gain", "plain"),
    "worse": ("▼", "Significant loss", "bad"),
}
_LUCK = {
    "better": "significant",
    "perhaps better": "not significant",
    "equal": "no query differs",
    "perhaps worse": "not significant",
    "worse": "significantly worse",
}
_LEVELS = {"warning": "Warning", "info": "Note"}
_EVIDENCE = {"read": "read from the file beside the model", "computed": "computed for this report"}
_DATA = {
    True: "the same that the model was learned from",
    False: "<strong>not</strong> those that the model was learned from",
}


def headline(report: Report) -> str:
    """Say first how much better the fusion is, and whether that is more than luck."""
    head, name = report["headline"], measure_name(report["measure"])
    gain = head["gains"][0]
    sign, tag, colour = _TAGS[gain["outcome"]]
    subject = "Equal weights" if report["made"]["method"] == "equal" else "The learned weights"
    difference = f"{signed(gain['difference'])}\u00a0{escape(name)}"
    told = f" ({difference})" if float(f"{gain['difference']:.4f}") else ""
    words = {
        "better": f"{subject} are better: {difference} over the {escape(gain['over'])}",
        "perhaps better": f"No significant gain{told}: keep what you have, or judge more",
        "equal": "No difference: keep what you have",
        "perhaps worse": f"No significant gain{told}: keep what you have",
        "worse": f"{subject} are worse{told}: keep what you have",
    }[gain["outcome"]]
    low, high = head["interval"]
    spread = (
        "" if low is None or high is None else f" ({percent(head['confidence'])} interval {low:.4f} to {high:.4f})"
    )
    return (
        '<section id="result" aria-labelledby="result-title" class="hero">'
        f'<p class="tag {colour}"><span aria-hidden="true">{sign}</span> {tag}</p>'
        f'<h1 id="result-title">{words}</h1>'
        f'<p class="verdict">{escape(with_minus(head["verdict"]))}</p>'
        f'<div class="cards">{"".join(_gain_card(gain, name, head["confidence"]) for gain in head["gains"])}</div>'
        f'<p class="note">Held-out {escape(name)} of the fusion: '
        f"<strong>{decimals(head['held_out'])}</strong>{spread}, each query measured by weights learned from the "
        f"other folds ({head['folds']} folds, {n_queries(report['n_queries'])}). On the queries they were learned "
        f"from, the weights reach {decimals(head['train'])}. "
        f"Best single ranker on all queries: {isolated(head['best_single'])}.</p>"
        "</section>"
    )


def _gain_card(gain: Gain, name: str, confidence: float) -> str:
    total = gain["n_better"] + gain["n_equal"] + gain["n_worse"]
    pieces = [("good", gain["n_better"]), ("flat", gain["n_equal"]), ("bad", gain["n_worse"])]
    return (
        f'<article class="card"><h2>Over {isolated(gain["over"])}</h2>'
        f'<p class="figure">{signed(gain["difference"])} <small>{escape(name)}</small></p>'
        f"<p>{percent(confidence)} interval {between(gain['low'], gain['high'])}<br>"
        f"{p_value(gain['p'])}, {_LUCK[gain['outcome']]}</p>"
        f"{bar(pieces, total)}"
        f'<p class="note">{n_queries(gain["n_better"])} better, {gain["n_worse"]} worse, {gain["n_equal"]} equal'
        "</p></article>"
    )


def weights(report: Report) -> str:
    """Show each weight with its spread over refits and how far it may move without loss."""
    spread = report["spread"]
    held = any(row["before"] for row in spread["rows"])
    drawn = {"bootstrap": "refits", "folds": "folds", "none": ""}[spread["kind"]]
    head = ["Ranker", "Weight", f"95% of {drawn}" if drawn else "Spread", "Plateau", "Lost without it"]
    if held:
        head.insert(3, "Before holding back")
    rows = [_weight_row(row, held=held) for row in spread["rows"]]
    return (
        '<section id="weights" aria-labelledby="weights-title"><h2 id="weights-title">Weights</h2>'
        "<p>How much each ranker counts, and how sure that is. A weight whose spread is wide, or whose plateau is "
        "long, is not known better than that.</p>"
        '<figure class="chart" id="chart-weights"></figure>'
        f"{table(_weights_caption(report, held=held), head, rows, numbers=set(range(1, len(head))))}"
        f'<p class="note">{escape(spread["note"])}</p></section>'
    )


def _weights_caption(report: Report, *, held: bool) -> str:
    spread, name = report["spread"], escape(measure_name(report["measure"]))
    said = ["Weights."]
    if spread["plateau_loss"] is not None:
        said.append(
            f"Plateau: between these the weight may stand, the others in proportion, and training {name} falls by "
            f"at most {spread['plateau_loss']:g}."
        )
    if held:
        said.append(
            f"Before holding back: 95% of what the refits had learned before they, like the fit itself, were moved "
            f"{percent(spread['held_back'])} of the way to simple weights."
        )
    if any(row["gain"] is not None for row in spread["rows"]):
        said.append(f"Lost without it: training {name} that the others alone, in proportion, do not reach.")
    return " ".join(said)


def _weight_row(row: WeightRow, *, held: bool) -> Sequence[str]:
    cells = [_range(row["quantiles"]), _range(row["plateau"]), signed(row["gain"])]
    if held:
        cells.insert(1, _range(row["before"]))
    return (isolated(row["ranker"]), decimals(row["weight"]), *cells)


def _range(values: Sequence[float] | None) -> str:
    return f"{values[0]:.3f} to {values[-1]:.3f}" if values else NONE


def measures(report: Report) -> str:
    """Show the means of every measure for every ranker, rule and fusion."""
    found = report["measures"]
    fair = [system for system in found["systems"] if system["held_out"]]
    best = [max((round(s["values"][i], 4) for s in fair), default=None) for i in range(len(found["measures"]))]
    rows, marked = [], {}
    for number, system in enumerate(found["systems"]):
        rows.append((_system_cell(system), *(_value(system, i, best[i]) for i in range(len(best)))))
        if system["kind"] == "fused":
            marked[number] = "chosen" if system["held_out"] else "aside"
    n_all, n_main = found["n_queries"], found["main_n_queries"]
    over = f"Means over {n_queries(n_main)}" if n_all == n_main else (
        f"Means over {n_all} of {n_main} queries; the first column over all"
    )  # fmt: skip
    caption = (
        f"{over}. Best in bold with a star, among those measured on queries that had no part in choosing them."
    )
    head = ("", *(escape(measure_name(m)) for m in found["measures"]))
    numbers = set(range(1, len(head)))
    return (
        '<section id="measures" aria-labelledby="measures-title"><h2 id="measures-title">All measures</h2>'
        f"{table(caption, head, rows, numbers=numbers, marked=marked, identity='measures-table')}"
        f"{sampled(report, 'measures')}</section>"
    )


def _system_cell(system: System) -> str:
    kind = {"ranker": "ranker", "rule": "needs no learning", "best-single": "", "fused": "fusion"}[system["kind"]]
    told = kind if system["held_out"] else "not held out"
    return isolated(system["label"]) + (f' <span class="kind">{told}</span>' if told else "")


def _value(system: System, column: int, best: float | None) -> str:
    value = system["values"][column]
    if system["held_out"] and best is not None and round(value, 4) == best:
        return f'<strong>{decimals(value)}<span class="star" title="best">★</span></strong>'
    return decimals(value)


def data(report: Report) -> str:
    """Show what the runs cover and what a reader should know about the data."""
    found = report["coverage"]
    head = ("Ranker", "Normaliser", "Depth", "Lowest", "Median", "Highest", "Missing", "Tied", "Unjudged in top 10")
    rows = [
        (
            isolated(row["ranker"]),
            escape(row["normalizer"]),
            "all" if row["depth"] is None else f"{row['depth']:,}",
            with_minus(f"{row['low']:.4g}"),
            with_minus(f"{row['median']:.4g}"),
            with_minus(f"{row['high']:.4g}"),
            percent(row["missing"], 1),
            percent(row["ties"], 1),
            percent(row["unjudged"], 1),
        )
        for row in found["rankers"]
    ]
    notes = [
        f'<li class="{warning["level"]}"><strong>{_LEVELS[warning["level"]]}:</strong> '
        f"{escape(warning['text'])}</li>"
        for warning in sorted(found["warnings"], key=lambda warning: warning["level"] != "warning")
    ]
    notes += [
        f'<li class="info"><strong>Sampled:</strong> {escape(s["sentence"])}</li>' for s in report["sampling"]
    ]
    told = f'<ul class="notes">{"".join(notes)}</ul>' if notes else "<p>Nothing to warn about.</p>"
    fused = found["unjudged_fused"]
    caption = (
        "Coverage. Missing: share of all documents that any ranker returned but this one did not; tied: share with "
        "the score of another document of the same query."
    )
    return (
        '<section id="data" aria-labelledby="data-title"><h2 id="data-title">Data</h2>'
        f"{told}{table(caption, head, rows, numbers={2, 3, 4, 5, 6, 7, 8})}"
        f'<p class="note">{n_queries(found["n_queries"])}; {found["n_without_documents"]} without documents, '
        f"{found['n_without_relevant']} without a relevant document."
        f"{'' if fused is None else f' In the top 10 of the fusion {percent(fused, 1)} are unjudged.'}</p>"
        f"{_overlap(report)}</section>"
    )


def sampled(report: Report, *parts: str) -> str:
    """Say where a part of the report shows some of the queries only."""
    told = [f'<p class="note">{escape(s["sentence"])}</p>' for s in report["sampling"] if s["part"] in parts]
    return "".join(told)


def _overlap(report: Report) -> str:
    names, shares = [isolated(name) for name in report["rankers"]], report["coverage"]["overlap"]
    if len(names) < 2 or not shares:
        return ""
    rows = [
        (
            name,
            *(
                NONE if i == j else f'<span class="heat h{round(10 * s)}">{percent(s)}</span>'
                for j, s in enumerate(row)
            ),
        )
        for i, (name, row) in enumerate(zip(names, shares, strict=True))
    ]
    caption = "Overlap of the top 10: documents that both rankers return, of those that either does."
    return table(caption, ("", *names), rows, numbers=set(range(1, len(names) + 1)))


def made(report: Report) -> str:
    """Show how the report was made, so that it can be made again."""
    found = report["made"]
    pairs = [
        ("Command", f"<pre><code>{escape(found['command'])}</code></pre>"),
        ("Method", f"{escape(found['method'])}, measure {escape(report['measure'])}, seed {found['seed']}"),
        ("Relevance", f"grade {found['relevance_level']} and above"),
        ("Versions", escape(", ".join(f"{name} {version}" for name, version in found["versions"].items()))),
        ("Model fitted with", f"genm {escape(found['fitted_with'])}"),
        ("Evidence", _EVIDENCE[found["evidence"]]),
        ("Data", _DATA[found["matches_training"]]),
        ("Fingerprint", f"<code>{escape(found['fingerprint'])}</code>"),
    ]  # fmt: skip
    pairs += [("Sharpness (beta)", f"{found['beta']:g}")] if found["beta"] is not None else []
    pairs += [("Search engine", escape(found["target"]))] if found["target"] else []
    rows = [
        (
            escape(file["role"]),
            isolated(file["name"]),
            NONE if file["n_bytes"] is None else f"{file['n_bytes']:,}",
            f'<code class="hash">{escape(file["sha256"] or NONE)}</code>',
        )
        for file in found["files"]
    ]
    files = table("Files.", ("Role", "Name", "Bytes", "SHA-256"), rows, numbers={2}) if rows else ""
    return (
        '<section id="made" aria-labelledby="made-title"><h2 id="made-title">How this was made</h2>'
        f"{facts(pairs)}{files}</section>"
    )

"""`genm explain`: what each ranker is worth, to the ensemble, to a query, to a document."""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from genm.cli.console import (
    Format,
    Output,
    print_json,
    print_lines,
    print_table,
    print_text,
    print_tsv,
    progress_bars,
    say,
    say_notes,
)
from genm.cli.options import (
    STDIN,
    DuplicateRule,
    Duplicates,
    Lenient,
    Runs,
    add_verb,
    check_output,
    named_paths,
    read_judgments,
    read_runs,
)
from genm.errors import InputError
from genm.formatting import p_text
from genm.io import write_text

if TYPE_CHECKING:
    from genm.align import Aligned
    from genm.evaluate import Measure
    from genm.explain import Choice, Explained, Figure, QueryGains, Worth
    from genm.model import Model
    from genm.progress import Progress

_BAR, _STRIP = 16, 25
_MOST_PAIRS = 10

TEXT = """Show what each ranker is worth: its share of the measure, and what is lost when it is left out.

Every subset of the rankers is learned again and measured on queries held out, so no figure owes anything to
queries that a weight was learned from. Up to 12 rankers all subsets are gone through; of more, --orders are
sampled. With --query the model's weights explain one query: what each ranker gained or lost, and every document's
score as a sum of what the rankers gave."""
EXAMPLES = (
    "genm explain --model model.json --qrels qrels.txt bm25=b.trec dense=d.trec",
    "genm explain --model m.json --qrels q.txt a.trec b.trec --plot worth.svg",
    "genm explain --model m.json --qrels q.txt a.trec b.trec --query 12 --top 5",
    "genm explain --model m.json a.trec b.trec --query 12 --doc d034",
)


def as_json(model: "Model", worth: "Worth", gains: "QueryGains") -> dict[str, Any]:
    """Return everything that is shown, as a JSON object, query by query."""
    from genm.explain import sentences

    weights = dict(zip(model.rankers, model.weights, strict=True))
    by_query = zip(gains.queries, gains.value.tolist(), gains.gain.tolist(), strict=True)
    return {
        "measure": str(worth.measure),
        "method": worth.method,
        "queries": worth.n_queries,
        "folds": worth.folds,
        "subsets": worth.n_subsets,
        "orders": worth.n_orders,
        "confidence": worth.confidence,
        "margin": worth.margin,
        "held_out": worth.value,
        "rankers": {
            part.name: {
                "weight": weights[part.name],
                "alone": part.alone,
                "shapley": _figure(part.shapley),
                "sampling_error": part.sampling_error,
                "loss_without": {**_figure(part.loss), "p_corrected": part.p},
            }
            for part in worth.rankers
        },
        "pairs": [
            {"rankers": [a, b], "rank_correlation": r, "overlap": {"10": top, "100": more}}
            for a, b, r, top, more in _pairs(worth)
        ],
        "greedy": _choice(worth.greedy),
        "exhaustive": None if worth.exhaustive is None else _choice(worth.exhaustive),
        "by_query": {
            query: {"value": value, "gain": dict(zip(gains.rankers, gain, strict=True))}
            for query, value, gain in by_query
        },
        "sentences": sentences(worth),
    }


def as_tsv(model: "Model", worth: "Worth", gains: "QueryGains") -> Iterator[tuple[str, ...]]:
    """Yield what is measured, whom it belongs to, and its value."""
    yield "held_out", str(worth.measure), f"{worth.value:.6f}"
    for part, weight in zip(worth.rankers, model.weights, strict=True):
        yield "weight", part.name, repr(weight)
        yield "alone", part.name, f"{part.alone:.6f}"
        for name, figure in (("shapley", part.shapley), ("loss", part.loss)):
            yield name, part.name, f"{figure.value:.6f}"
            yield f"{name}.low", part.name, f"{figure.low:.6f}"
            yield f"{name}.high", part.name, f"{figure.high:.6f}"
            yield f"{name}.joint_low", part.name, f"{figure.joint_low:.6f}"
            yield f"{name}.joint_high", part.name, f"{figure.joint_high:.6f}"
        yield "shapley.sampling_error", part.name, f"{part.sampling_error:.6f}"
        yield "loss.p", part.name, f"{part.p:.6g}"
    for a, b, correlation, top, more in _pairs(worth):
        yield "rank_correlation", f"{a}/{b}", f"{correlation:.6f}"
        yield "overlap.10", f"{a}/{b}", f"{top:.6f}"
        yield "overlap.100", f"{a}/{b}", f"{more:.6f}"
    for choice in (worth.greedy, worth.exhaustive):
        if choice is not None:
            yield f"smallest.{choice.how}", ",".join(choice.rankers), f"{choice.value:.6f}"
    for query, row in zip(gains.queries, gains.gain.tolist(), strict=True):
        for name, gain in zip(gains.rankers, row, strict=True):
            yield f"gain.{query}", name, f"{gain:.6f}"


def tables(model: "Model", worth: "Worth", gains: "QueryGains") -> None:
    """Print the tables, small pictures beside the figures, and what it all means in sentences."""
    from genm.explain import sentences

    measure = str(worth.measure)
    seen = f"{worth.n_subsets} subsets" if worth.n_orders is None else f"{worth.n_orders} orders"
    print_lines([
        f"{measure} {worth.value:.4f} held out, {len(worth.rankers)} rankers by '{worth.method}'; "
        f"{seen}, {worth.n_queries:,} queries, {worth.folds} folds",
        "",
    ])  # fmt: skip
    _shares(model, worth)
    _losses(worth)
    rows = [(f"{a} and {b}", f"{r:+.2f}", f"{top:.0%}", f"{more:.0%}") for a, b, r, top, more in _pairs(worth)]
    left_out = f"; the {_MOST_PAIRS} most alike of {len(rows)} pairs" if len(rows) > _MOST_PAIRS else ""
    header = ["pair", "rank correlation", "top 10 shared", "top 100 shared"]
    print_table(f"How alike they rank{left_out}", header, rows[:_MOST_PAIRS])
    _by_query(gains)
    for sentence in sentences(worth):
        print_text(sentence)


def _shares(model: "Model", worth: "Worth") -> None:
    weights = dict(zip(model.rankers, model.weights, strict=True))
    most = max(1e-12, *(part.shapley.value for part in worth.rankers))
    level = f"{worth.confidence:.6g} interval".removeprefix("0")
    header = ["ranker", "weight", "alone", "Shapley", level, " " * _BAR]
    sampled = worth.n_orders is not None
    rows = []
    for part in sorted(worth.rankers, key=lambda part: -part.shapley.value):
        value = f"{part.shapley.value:.4f}" + (f" ±{part.sampling_error:.4f}" if sampled else "")
        cells = (
            f"{weights[part.name]:.4f}",
            f"{part.alone:.4f}",
            value,
            _between(part.shapley.low, part.shapley.high),
        )
        rows.append((part.name, *cells, _bar(part.shapley.value / most)))
    note = "; ± is the standard error of sampling" if sampled else ""
    print_table(f"Shares of the whole, which sum to it{note}", header, rows)


def _losses(worth: "Worth") -> None:
    low = min(0.0, *(part.loss.joint_low for part in worth.rankers))
    high = max(0.0, *(part.loss.joint_high for part in worth.rankers))
    header = ["ranker", "lost", "joint interval", "wilcox", " " * _STRIP]
    rows = []
    for part in sorted(worth.rankers, key=lambda part: -part.loss.value):
        mark = "*" if part.p < 1.0 - worth.confidence else " "
        between, strip = (part.loss.joint_low, part.loss.joint_high), _strip(part.loss, low, high)
        rows.append((part.name, _signed(part.loss.value), _between(*between), f"{p_text(part.p)}{mark}", strip))
    print_table("Lost when it is left out and the others are learned again", header, rows)


def _by_query(gains: "QueryGains") -> None:
    header = ["ranker", "mean", "helped", "hurt", "level", "helped most", "hurt most"]
    rows, gain, ids = [], gains.gain, list(gains.queries)
    for k, (name, mean) in enumerate(zip(gains.rankers, gains.mean_gain().tolist(), strict=True)):
        column = gain[:, k]
        counts = [f"{int(n):,}" for n in ((column > 0).sum(), (column < 0).sum(), (column == 0).sum())]
        best, worst = int(column.argmax()), int(column.argmin())
        ends = [
            f"{ids[q]} {column[q]:+.3f}" if column[q] * sign > 0 else "" for q, sign in ((best, 1), (worst, -1))
        ]
        rows.append((name, _signed(mean), *counts, *ends))
    title = f"On these queries, under the model's weights: {gains.measure} with it less without it"
    print_table(title, header, rows)


def query_json(
    model: "Model", query: str, found: "Sequence[Explained]", gains: "QueryGains | None"
) -> dict[str, Any]:
    """Return one query's explanation as a JSON object."""
    judged: dict[str, Any] = {}
    if gains is not None:
        judged = {
            "measure": str(gains.measure),
            "value": float(gains.value[0]),
            "gain": dict(zip(gains.rankers, gains.gain[0].tolist(), strict=True)),
        }
    return {
        "query": query,
        "weights": dict(zip(model.rankers, model.weights, strict=True)),
        **judged,
        "documents": [
            {
                "doc": one.doc_id,
                "rank": one.rank,
                "score": one.score,
                "relevance": one.relevance,
                "contributions": dict(zip(model.rankers, one.contributions, strict=True)),
                "ranks": dict(zip(model.rankers, one.ranks, strict=True)),
            }
            for one in found
        ],
    }


def query_tsv(
    model: "Model", query: str, found: "Sequence[Explained]", gains: "QueryGains | None"
) -> Iterator[tuple[str, ...]]:
    """Yield one query's explanation: what is told, whom it belongs to, its value."""
    if gains is not None:
        yield f"value.{gains.measure}", query, f"{gains.value[0]:.6f}"
        for name, gain in zip(gains.rankers, gains.gain[0].tolist(), strict=True):
            yield "gain", name, f"{gain:.6f}"
    for one in found:
        yield "score", one.doc_id, repr(one.score)
        for name, part in zip(model.rankers, one.contributions, strict=True):
            yield f"contribution.{one.doc_id}", name, repr(part)


def query_tables(model: "Model", query: str, found: "Sequence[Explained]", gains: "QueryGains | None") -> None:
    """Print what each ranker did to one query and to its documents."""
    if gains is not None:
        header = ["ranker", "weight", f"{gains.measure} without it", "gained"]
        rows = [
            (name, f"{weight:.4f}", f"{gains.without[0, k]:.4f}", _signed(gains.gain[0, k]))
            for k, (name, weight) in enumerate(zip(model.rankers, model.weights, strict=True))
        ]
        title = f"Query {query}: {gains.measure} {gains.value[0]:.4f}; the remaining weights keep their proportions"
        print_table(title, header, rows)
    header = ["", "document", "grade", "score", *(f"{name} (rank)" for name in model.rankers)]
    documents: list[tuple[str, ...]] = []
    for one in found:
        parts = [
            f"{part:.4f} ({'-' if rank is None else rank})"
            for part, rank in zip(one.contributions, one.ranks, strict=True)
        ]
        grade = "" if one.relevance is None else f"{one.relevance}"
        documents.append((f"{one.rank}", one.doc_id, grade, f"{one.score:.4f}", *parts))
    print_table(f"Query {query}: the score is the sum of what the rankers gave", header, documents, left=2)
    if any(rank is None for one in found for rank in one.ranks):
        print_text("(-): the ranker did not return the document; what it gives is the model's rule for that.")


def _figure(figure: "Figure") -> dict[str, Any]:
    return {
        "value": figure.value,
        "interval": [figure.low, figure.high],
        "joint_interval": [figure.joint_low, figure.joint_high],
    }


def _choice(choice: "Choice") -> dict[str, Any]:
    return {
        "rankers": list(choice.rankers),
        "held_out": choice.value,
        "difference": choice.difference,
        "p": choice.p,
        "loses_at_most": choice.bound,
        "looks": choice.n_looks,
    }


def _pairs(worth: "Worth") -> list[tuple[str, str, float, float, float]]:
    """Return pairs of rankers with what they share, the most alike first."""
    agreement, names = worth.agreement, worth.agreement.rankers
    near, far = agreement.overlap
    pairs = [
        (names[a], names[b], float(agreement.correlation[a, b]), float(near[a, b]), float(far[a, b]))
        for a in range(len(names))
        for b in range(a + 1, len(names))
    ]
    return sorted(pairs, key=lambda pair: -pair[2])


def _between(low: float, high: float) -> str:
    return f"{_signed(low)} {_signed(high)}"


def _signed(value: float) -> str:
    from genm.explain.text import signed

    return signed(value)


def _bar(share: float) -> str:
    """Return a bar as long as the share, to an eighth of a letter."""
    eighths = round(max(share, 0.0) * _BAR * 8)
    if not _prints("█▏"):
        return ("#" * round(eighths / 8)).ljust(_BAR)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + " ▏▎▍▌▋▊▉"[rest].strip()).ljust(_BAR)


def _strip(figure: "Figure", low: float, high: float) -> str:
    """Return the joint interval on a line from low to high, with its value and where 0 is."""
    fine = _prints("├─┤●│")
    left, line, right, dot, zero = "├─┤●│" if fine else "|-|o:"
    scale = (_STRIP - 1) / max(high - low, 1e-12)

    def place(x: float) -> int:
        return min(max(round((x - low) * scale), 0), _STRIP - 1)

    cells = [" "] * _STRIP
    cells[place(0.0)] = zero
    begin, end = place(figure.joint_low), place(figure.joint_high)
    for c in range(begin, end + 1):
        if cells[c] == " ":
            cells[c] = line
    cells[begin], cells[end] = left, right
    cells[place(figure.value)] = dot
    return "".join(cells)


def _prints(letters: str) -> bool:
    try:
        letters.encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    add_verb(app, "explain", explain, summary="Show what each ranker is worth.", text=TEXT, examples=EXAMPLES)


def explain(
    runs: Runs,
    model: Annotated[str, typer.Option(help="A model file of genm fit.", metavar="FILE")],
    qrels: Annotated[str | None, typer.Option(help="Judgments; --query can do without.", metavar="FILE")] = None,
    query: Annotated[str | None, typer.Option("--query", help="Explain this query.", metavar="QUERY")] = None,
    doc: Annotated[
        str | None, typer.Option("--doc", help="Of the query, explain this document.", metavar="DOC")
    ] = None,
    top: Annotated[
        int | None, typer.Option(help="Of the query, explain the top N; 10 without it.", metavar="N", min=1)
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option("--measure", help="What to measure and learn; else the model's.", metavar="MEASURE"),
    ] = None,
    method: Annotated[str | None, typer.Option(help="How to learn; else the model's.", metavar="NAME")] = None,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.", metavar="N", min=2)] = 5,
    orders: Annotated[int | None, typer.Option(help="Sample so many orders of the rankers.", metavar="N")] = None,
    confidence: Annotated[float, typer.Option(help="Level of intervals and tests.", metavar="SHARE")] = 0.95,
    margin: Annotated[float, typer.Option(help="A loss below this counts as nothing.", metavar="NUMBER")] = 0.005,
    seed: Annotated[int, typer.Option(help="Seed of folds, orders and resamples.", metavar="N", min=0)] = 0,
    plot: Annotated[str | None, typer.Option(help="Draw the figures into this SVG.", metavar="FILE")] = None,
    lenient: Lenient = False,
    duplicates: Duplicates = DuplicateRule.error,
    output: Output = Format.table,
) -> None:
    """Read, align as the model does, learn subsets, print and draw."""
    from genm.model import align_for_model, check_rankers, load_model

    _check_options(qrels, query, doc, top, plot)
    names = named_paths(runs, qrels)
    if plot == STDIN:
        raise InputError("--plot -: a picture is written to a file. Name one, such as worth.svg.")
    check_output(plot)
    learned = load_model(model)
    check_rankers(learned, tuple(names), place=model)
    with progress_bars() as progress:
        judged = None if qrels is None else read_judgments(qrels, lenient=lenient, progress=progress)
        loaded = read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        aligned = align_for_model(learned, loaded, judged)
        for run in loaded.values():
            say_notes(run.notes)
        say_notes((*(() if judged is None else judged.notes), *aligned.notes))
        wanted = _measure(learned, measure)
        if query is not None:
            _one_query(output, learned, aligned, wanted, query, doc, 10 if top is None else top)
            return
        how: dict[str, Any] = {
            "folds": folds,
            "orders": orders,
            "confidence": confidence,
            "margin": margin,
            "seed": seed,
        }
        how |= {"method": _method(learned, method), "measure": wanted, "level": learned.relevance_level}
        _ensemble(output, learned, aligned, how, plot, progress)


def _check_options(
    qrels: str | None, query: str | None, doc: str | None, top: int | None, plot: str | None
) -> None:
    """Refuse options that contradict each other, or that nothing would read."""
    if query is None and (doc is not None or top is not None):
        option = "--doc" if doc is not None else "--top"
        raise InputError(f"{option} explains documents of one query. Name it: --query QUERY.")
    if doc is not None and top is not None:
        raise InputError("--doc explains one document and --top several. Leave one of them out.")
    if query is not None and plot is not None:
        raise InputError("--plot draws the worth of the rankers over all queries. Leave --query out.")
    if query is None and qrels is None:
        raise InputError(
            "expected --qrels FILE: what a ranker is worth is measured on judgments. Give them, or --query."
        )


def _measure(model: "Model", measure: str | None) -> "Measure":
    from genm.evaluate import parse_measure
    from genm.learn.objectives import with_level

    return with_level(parse_measure(measure or model.measure), model.relevance_level)


def _one_query(
    output: Format,
    model: "Model",
    aligned: "Aligned",
    measure: "Measure",
    query: str,
    doc: str | None,
    top: int,
) -> None:
    import numpy as np

    from genm.explain import explain_documents, gains_by_query
    from genm.explain.attribution import position_of

    found = explain_documents(aligned, model.weights, query, doc_id=doc, top=top)
    gains = None
    if aligned.labelled:
        one = aligned.select(np.array([position_of(aligned, query)]))
        gains = gains_by_query(one, model.weights, measure)
    if output is Format.json:
        print_json(query_json(model, query, found, gains))
    elif output is Format.tsv:
        print_tsv(query_tsv(model, query, found, gains))
    else:
        query_tables(model, query, found, gains)


def _method(model: "Model", asked: str | None) -> str:
    """Return how subsets are learned: as asked, as the model was, or by auto where that cannot be repeated."""
    from genm.learn import is_method

    if asked is not None or is_method(model.method):
        return asked or model.method
    say(f"note: the model's method {model.method!r} cannot be learned again; subsets are learned by 'auto'.")
    return "auto"


def _ensemble(
    output: Format, model: "Model", aligned: "Aligned", how: dict[str, Any], plot: str | None, progress: "Progress"
) -> None:
    from genm.explain import draw_worth, gains_by_query, measure_worth

    if plot is not None:
        _check_drawing()
    worth = measure_worth(aligned, progress=progress, **how)
    gains = gains_by_query(aligned, model.weights, worth.measure)
    if output is Format.json:
        print_json(as_json(model, worth, gains))
    elif output is Format.tsv:
        print_tsv(as_tsv(model, worth, gains))
    else:
        tables(model, worth, gains)
    if plot is not None:
        write_text(plot, draw_worth(worth))
        say(f"wrote {plot}")


def _check_drawing() -> None:
    """Say that drawing needs an extra before the work, not after it."""
    from genm.plotting import new_figure

    new_figure(1.0, 1.0)

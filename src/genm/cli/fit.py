"""`genm fit`: learn the weights, and show what they are worth."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from genm.cli.compare import p_text
from genm.cli.inputs import Duplicates, Lenient, Level, Runs, depths, normalizers, read_judgments, read_runs
from genm.cli.show import Format, print_json, print_lines, print_table, progress_bars, say, say_notes
from genm.errors import InputError

if TYPE_CHECKING:
    from genm.align import Aligned
    from genm.evidence import Evidence
    from genm.learn import Fuser
    from genm.model import Model
    from genm.progress import Progress
    from genm.records import Qrels, Run

HELP = """Learn one weight per ranker and show what the weights reach on queries they have not seen.

Without `--qrels` the weights are learned with no judgments at all (UnsEnM). Methods: auto (default), and the
paper's bat, ip, on, uns, enm. The model file holds everything that `genm fuse --model` needs to repeat the
training's rules.

Examples:

    genm fit --qrels qrels.txt bm25=bm25.trec dense=dense.trec -o model.json

    genm fit --qrels qrels.txt --measure nDCG@10 --normalize auto bm25=b.trec dense=d.trec --format json

    genm fit bm25=bm25.trec dense=dense.trec sparse=sparse.trec -o model.json
"""


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("fit", help=HELP)(fit)


def fit(
    runs: Runs,
    qrels: Annotated[str | None, typer.Option(help="Judgments to learn from.", metavar="FILE")] = None,
    test_qrels: Annotated[
        str | None, typer.Option(help="Judgments of other queries, to measure on.", metavar="FILE")
    ] = None,
    query_weights: Annotated[str | None, typer.Option(help="Weights of queries.", metavar="FILE")] = None,
    method: Annotated[str | None, typer.Option(help="auto, bat, ip, on, uns, enm.")] = None,
    measure: Annotated[str, typer.Option(help="What to maximise, such as AP, nDCG@10, RR@10.")] = "AP",
    rel: Level = 1,
    normalize: Annotated[
        list[str] | None, typer.Option(help="A normaliser, NAME=KIND for each, or auto.", metavar="KIND")
    ] = None,
    depth: Annotated[list[str] | None, typer.Option(help="Use the top N of each run; or NAME=N.")] = None,
    beta: Annotated[str, typer.Option(help="Sharpness of the sigmoid: a number or auto.")] = "auto",
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of folds, starts and resamples.")] = 0,
    lenient: Lenient = False,
    duplicates: Duplicates = "error",
    output: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.table,
    model_path: Annotated[
        str | None, typer.Option("--output", "-o", help="Where to write the model.", metavar="FILE")
    ] = None,
) -> None:
    """Read, align, learn, cross-validate, print, save."""
    from genm.align import align_runs
    from genm.model import save_model
    from genm.read import read_query_weights

    with progress_bars() as progress:
        judged = None if qrels is None else read_judgments(qrels, lenient=lenient)
        held = None if test_qrels is None else read_judgments(test_qrels, lenient=lenient)
        loaded = read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        weights = None if query_weights is None else read_query_weights(query_weights)
        kind = normalizers(normalize or [])
        align_as: dict[str, Any] = {"normalize": "minmax" if kind == "auto" else kind, "depth": depths(depth or [])}
        aligned = align_runs(loaded, judged, query_weights=weights, progress=progress, **align_as)
        options: dict[str, Any] = {"level": rel, **_beta(beta)}
        if judged is None:
            fuser, evidence = _fit_without_labels(aligned, method, options), None
        else:
            fuser, evidence = _fit_with_labels(
                aligned, method or "auto", measure, kind == "auto", options, folds, seed, progress
            )
    for run in loaded.values():
        say_notes(run.notes)
    say_notes((*(judged.notes if judged else ()), *aligned.notes))
    model = fuser.to_model()
    if evidence is not None:
        from genm.evidence import with_evidence

        model = with_evidence(model, aligned, evidence)
    tested = None
    if held is not None:
        tested = _test(model, loaded, held, measure, rel)
    _show(output, model, fuser, evidence, tested)
    if model_path is not None:
        save_model(model, model_path)
        say(f"wrote {model_path}")


def _beta(text: str) -> dict[str, float]:
    if text == "auto":
        return {}
    try:
        return {"beta": float(text)}
    except ValueError:
        raise InputError(f"--beta {text}: expected a number or auto.") from None


def _fit_without_labels(aligned: "Aligned", method: str | None, options: dict[str, Any]) -> "Fuser":
    from genm.auto import make_fuser

    if method not in (None, "uns"):
        raise InputError(f"--method {method} learns from judgments. Give --qrels, or use --method uns.")
    say("no judgments: learning without labels (UnsEnM); there is no held-out figure to show")
    return make_fuser("uns", **{k: v for k, v in options.items() if k != "level"}).fit(aligned)


def _fit_with_labels(
    aligned: "Aligned",
    method: str,
    measure: str,
    normalize_auto: bool,
    options: dict[str, Any],
    folds: int,
    seed: int,
    progress: "Progress",
) -> "tuple[Fuser, Evidence]":
    from genm.auto import make_fuser
    from genm.evaluate import parse_measure
    from genm.evidence import gather_evidence
    from genm.learn.scorer import with_level

    if normalize_auto:
        if method != "auto":
            raise InputError("--normalize auto chooses inside --method auto. Name a normaliser for other methods.")
        options = {**options, "normalize": "auto"}
    if method == "uns":
        options = {k: v for k, v in options.items() if k != "level"}
    wanted = with_level(parse_measure(measure), options.get("level", 1))
    return gather_evidence(
        aligned,
        lambda: make_fuser(method, measure=measure, **options),
        wanted,
        folds=folds,
        seed=seed,
        progress=progress,
    )


def _test(model: "Model", runs: "dict[str, Run]", held: "Qrels", measure: str, level: int) -> dict[str, float]:
    """Return the measure of the fused run and of each ranker on the judgments held back for it."""
    from genm.evaluate import evaluate_run, parse_measure
    from genm.learn import fuse_with_model
    from genm.learn.scorer import with_level

    wanted = with_level(parse_measure(measure), level)
    rows = {"learned weights": fuse_with_model(model, runs), **runs}
    return {name: evaluate_run(run, held, [wanted]).mean(wanted) for name, run in rows.items()}


def _show(
    output: Format,
    model: "Model",
    fuser: "Fuser",
    evidence: "Evidence | None",
    tested: dict[str, float] | None,
) -> None:
    weights = dict(zip(model.rankers, model.weights, strict=True))
    if output is Format.json:
        print_json({"weights": weights, **_evidence_json(evidence), **({"test": tested} if tested else {})})
    elif output is Format.tsv:
        print_lines(f"weight\t{name}\t{weight!r}" for name, weight in weights.items())
        if evidence is not None:
            print_lines("\t".join(row) for row in _rows(evidence))
    else:
        print_table("", ["ranker", "weight"], [(name, f"{weight:.4f}") for name, weight in weights.items()])
        if evidence is not None:
            _evidence_table(evidence)
        if tested is not None:
            rows = [(name, f"{value:.4f}") for name, value in tested.items()]
            print_table("On the test judgments", ["", str(evidence.measure if evidence else model.measure)], rows)
    if not fuser.converged_:
        say("note: the iteration stopped at its limit; the best weights it saw are kept")


def _evidence_json(evidence: "Evidence | None") -> dict[str, Any]:
    if evidence is None:
        return {}
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


def _rows(evidence: "Evidence") -> list[tuple[str, ...]]:
    """Return name, value on the training queries and held-out value of every row of the table."""
    from genm.evidence import BEST_SINGLE

    rows = []
    for name, values in (evidence.singles | evidence.rules).items():
        text = f"{evidence.mean(values):.4f}"
        rows.append((name, text, text, _gain(evidence, name)))
    single = f"{evidence.mean(evidence.best_single):.4f}"
    best = f"{max(evidence.mean(values) for values in evidence.singles.values()):.4f}"
    rows.append((f"{BEST_SINGLE}, chosen in training", best, single, _gain(evidence, BEST_SINGLE)))
    learned = f"{evidence.held_out.mean:.4f}"
    rows.append(("learned weights", f"{evidence.mean(evidence.train):.4f}", learned, ""))
    return rows


def _gain(evidence: "Evidence", name: str) -> str:
    if name not in evidence.gains:
        return ""
    gain = evidence.gains[name]
    p = p_text(gain.p_values["wilcoxon"])
    return f"{gain.difference:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}] {p}"


def _evidence_table(evidence: "Evidence") -> None:
    rows = _rows(evidence)
    header = [str(evidence.measure), "training", "held out", "learned minus this [95%] p"]
    best = [max(range(len(rows)), key=lambda r: float(rows[r][c])) for c in (1, 2)]
    folds = len(evidence.held_out.weights)
    print_table(f"{len(evidence.query_ids)} queries, {folds}-fold cross-validation", header, rows, best=best)
    print_lines([evidence.verdict(), ""])

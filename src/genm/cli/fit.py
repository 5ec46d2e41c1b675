"""`genm fit`: learn the weights, and show what they are worth."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from genm.cli.compilation import compiling_ahead
from genm.cli.console import (
    Format,
    Output,
    print_json,
    print_table,
    print_tsv,
    progress_bars,
    say,
    say_notes,
    weight_text,
)
from genm.cli.evidence import LEARNED, evidence_json, evidence_table, evidence_tsv
from genm.cli.fit_exact import (
    Certify,
    Gap,
    Point,
    Seconds,
    exact_json,
    exact_options,
    exact_table,
    exact_tsv,
    learner,
    without_proof,
)
from genm.cli.fit_notes import say_what_does_better, say_what_is_not_held_back, say_what_weight_0_still_does
from genm.cli.fit_target import (
    TargetName,
    Techniques,
    WindowSize,
    check_target,
    fit_equal,
    for_target,
    takes_equal_only,
    target_rules,
)
from genm.cli.options import (
    Depth,
    DuplicateRule,
    Duplicates,
    Lenient,
    Level,
    Runs,
    check_output,
    check_rules,
    depths,
    named_paths,
    normalizers,
    read_judgments,
    read_runs,
)
from genm.cli.verbs import add_verb
from genm.errors import InputError

if TYPE_CHECKING:
    from genm.align import Aligned
    from genm.evidence import Evidence
    from genm.learn import Fuser
    from genm.model import Model
    from genm.progress import Progress
    from genm.records import Qrels, Run

METHODS = ("auto", "bat", "ip", "on", "uns", "enm", "exact")
TEXT = """Learn one weight per ranker and show what the weights reach on queries they have not seen.

Without --qrels the weights are learned with no judgments at all (UnsEnM), on z-scores unless told otherwise.
Methods: auto (the default), the paper's bat, ip, on, uns, enm, and exact (the best on the training queries).
The model file holds everything that `genm fuse --model` needs to repeat the training's rules; with judgments,
model.evidence.json beside it holds what `genm report` shows. With --target the training follows a search engine's
rules (its normaliser, window and rule for missing documents), so that `genm export` can write the weights as that
engine takes them."""
EXAMPLES = (
    "genm fit --qrels qrels.txt bm25=bm25.trec dense=dense.trec -o model.json",
    "genm fit --qrels qrels.txt --measure nDCG@10 a.trec b.trec --format json",
    "genm fit --qrels qrels.txt --normalize auto bm25=b.trec dense=d.trec",
    "genm fit --method exact --certify --qrels qrels.txt b.trec d.trec",
    "genm fit bm25=b.trec dense=d.trec sparse=s.trec -o model.json",
    "genm fit --target opensearch --qrels qrels.txt b.trec d.trec -o model.json",
)


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    add_verb(app, "fit", fit, summary="Learn the weights, with held-out evidence.", text=TEXT, examples=EXAMPLES)


def fit(
    runs: Runs,
    qrels: Annotated[str | None, typer.Option(help="Judgments to learn from.", metavar="FILE")] = None,
    test_qrels: Annotated[
        str | None, typer.Option(help="Judgments of other queries, to measure on.", metavar="FILE")
    ] = None,
    query_weights: Annotated[
        str | None, typer.Option(help="Lines of query and weight: how much each query counts.", metavar="FILE")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help="One of the methods above.", metavar="NAME", autocompletion=lambda: list(METHODS)),
    ] = None,
    measure: Annotated[
        str, typer.Option("--measure", help="What to maximise, such as AP, nDCG@10, RR@10.", metavar="MEASURE")
    ] = "AP",
    rel: Level = 1,
    normalize: Annotated[
        list[str] | None, typer.Option(help="A normaliser, NAME=KIND for each, or auto.", metavar="KIND")
    ] = None,
    depth: Depth = None,
    target: TargetName = None,
    technique: Techniques = None,
    window: WindowSize = None,
    beta: Annotated[
        str, typer.Option(help="Sharpness of the sigmoid: a number or auto.", metavar="NUMBER")
    ] = "auto",
    certify: Certify = False,
    seconds: Seconds = None,
    gap: Gap = None,
    point: Point = None,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.", metavar="N", min=2)] = 5,
    seed: Annotated[int, typer.Option(help="Seed of folds, starts and resamples.", metavar="N", min=0)] = 0,
    lenient: Lenient = False,
    duplicates: Duplicates = DuplicateRule.error,
    output: Output = Format.table,
    model_path: Annotated[
        str | None, typer.Option("--output", "-o", help="Where to write the model.", metavar="FILE")
    ] = None,
) -> None:
    """Read, align, learn, cross-validate, save, print."""
    from genm.align import align_runs
    from genm.model import save_model
    from genm.read import read_query_weights

    names = named_paths(runs, qrels, test_qrels, query_weights)
    check_output(model_path, standard=False)
    check_target(target, technique, window, normalize, depth, method)
    proof = exact_options(method, certify, seconds, gap, point)
    kind = normalizers(normalize or (["zscore"] if qrels is None else []))
    cut = depths(depth or [])
    check_rules(kind, cut, names)
    method = method or ("uns" if qrels is None else "auto")
    options = _options(method, measure, rel, _beta(beta) | proof, qrels is not None, kind == "auto")
    with progress_bars() as progress, compiling_ahead(exact=certify) as kernels_are_ready:
        judged = None if qrels is None else read_judgments(qrels, lenient=lenient, progress=progress)
        held = None if test_qrels is None else read_judgments(test_qrels, lenient=lenient, progress=progress)
        loaded = read_runs(runs, lenient=lenient, duplicates=duplicates, progress=progress)
        weights = None if query_weights is None else read_query_weights(query_weights)
        align_as: dict[str, Any] = {"normalize": "minmax" if kind == "auto" else kind, "depth": cut}
        if target is not None:
            align_as = target_rules(target, loaded, technique, window)
        aligned = align_runs(loaded, judged, query_weights=weights, progress=progress, **align_as)
        kernels_are_ready()
        if takes_equal_only(target):
            fuser, evidence = fit_equal(aligned, measure, rel, folds, seed, progress)
        elif judged is None:
            fuser, evidence = _fit_without_labels(aligned, options), None
        else:
            fuser, evidence = _fit_with_labels(aligned, method, measure, rel, options, folds, seed, progress)
    for run in loaded.values():
        say_notes(run.notes)
    say_notes((*(judged.notes if judged else ()), *aligned.notes))
    if weights is not None and evidence is not None:
        say(
            "note: in training and held-out figures each query counts by its weight; genm evaluate counts all alike"
        )
    if len(loaded) == 1:
        say("note: there is one run: its weight is 1, and there is nothing to learn. Give the others as well.")
    model = fuser.to_model()
    say_what_weight_0_still_does(model, aligned)
    if evidence is not None:
        from genm.evidence import with_evidence

        model = with_evidence(model, aligned, evidence)
    if target is not None:
        model = for_target(model, target, aligned)
    tested = None
    if held is not None:
        if judged is not None:
            say_what_is_not_held_back(judged, held)
        tested = _test(model, loaded, held, measure, rel)
    if model_path is not None:  # before anything is printed: whoever reads may go away, the model stays
        save_model(model, model_path)
    _show(output, model, fuser, evidence, tested)
    if evidence is not None:
        say_what_does_better(evidence, may_choose=method == "auto" and kind != "auto" and target is None)
    if model_path is not None:
        say(f"wrote {model_path}")
        if evidence is not None and Path(model_path).is_file():  # not beside a pipe or a device
            _keep_evidence(model_path, aligned, without_proof(fuser), evidence, seed)


def _options(
    method: str, measure: str, level: int, given: dict[str, Any], judged: bool, normalize_auto: bool
) -> dict[str, Any]:
    """Return the fuser's options; what it would refuse is refused here, before any file is read."""
    from genm.learn.auto import make_fuser

    if method not in METHODS:
        raise InputError(f"--method {method}: expected one of {', '.join(METHODS)}.")
    if not judged and method != "uns":
        raise InputError(f"--method {method} learns from judgments. Give --qrels, or use --method uns.")
    if normalize_auto and method != "auto":
        raise InputError("--normalize auto chooses inside --method auto. Name a normaliser for other methods.")
    options = (
        given | ({} if method == "uns" else {"level": level}) | ({"normalize": "auto"} if normalize_auto else {})
    )
    make_fuser(method, measure=measure, **options)
    return options


def _keep_evidence(model_path: str, aligned: "Aligned", fuser: "Fuser", evidence: "Evidence", seed: int) -> None:
    """Write beside the model what `genm report` would have to compute anew."""
    from genm.evidence import evidence_path, keep_evidence, save_evidence

    with progress_bars() as progress:
        kept = keep_evidence(aligned, fuser, evidence, seed=seed, progress=progress)
    save_evidence(kept, evidence_path(model_path))
    say(f"wrote {evidence_path(model_path)}")


def _beta(text: str) -> dict[str, float]:
    if text == "auto":
        return {}
    try:
        return {"beta": float(text)}
    except ValueError:
        raise InputError(f"--beta {text}: expected a number or auto.") from None


def _fit_without_labels(aligned: "Aligned", options: dict[str, Any]) -> "Fuser":
    from genm.learn.auto import make_fuser

    say("no judgments: learning without labels (UnsEnM); there is no held-out figure to show")
    return make_fuser("uns", **options).fit(aligned)


def _fit_with_labels(
    aligned: "Aligned",
    method: str,
    measure: str,
    level: int,
    options: dict[str, Any],
    folds: int,
    seed: int,
    progress: "Progress",
) -> "tuple[Fuser, Evidence]":
    from genm.evaluate import parse_measure
    from genm.evidence import gather_evidence
    from genm.learn.scorer import with_level

    make = learner(method, measure, options, progress)
    wanted = with_level(parse_measure(measure), level)
    return gather_evidence(aligned, make, wanted, folds=folds, seed=seed, progress=progress)


def _test(
    model: "Model", runs: "dict[str, Run]", held: "Qrels", measure: str, level: int
) -> tuple[str, dict[str, float]]:
    """Return the measure's name, and its value for the fused run and each ranker, on judgments held back for it."""
    from genm.evaluate import evaluate_run, parse_measure
    from genm.learn import fuse_with_model
    from genm.learn.scorer import with_level

    wanted = with_level(parse_measure(measure), level)
    rows = {**runs, LEARNED: fuse_with_model(model, runs)}
    return str(wanted), {name: evaluate_run(run, held, [wanted]).mean(wanted) for name, run in rows.items()}


def _show(
    output: Format,
    model: "Model",
    fuser: "Fuser",
    evidence: "Evidence | None",
    tested: "tuple[str, dict[str, float]] | None",
) -> None:
    weights = dict(zip(model.rankers, model.weights, strict=True))
    measure, on_test = tested or ("", {})
    if output is Format.json:
        proof = {} if evidence is None else evidence_json(evidence)
        print_json(
            {"weights": weights, **exact_json(fuser), **proof, **({"test": {measure: on_test}} if tested else {})}
        )
    elif output is Format.tsv:
        print_tsv(("weight", name, repr(weight)) for name, weight in weights.items())
        exact_tsv(fuser)
        print_tsv(() if evidence is None else evidence_tsv(evidence))
        print_tsv((f"test.{measure}", name, f"{value:.6f}") for name, value in on_test.items())
    else:
        print_table("", ["ranker", "weight"], [(name, weight_text(weight)) for name, weight in weights.items()])
        exact_table(fuser)
        if evidence is not None:
            evidence_table(evidence)
        if tested:
            rows = [(name, f"{value:.4f}") for name, value in on_test.items()]
            print_table("On the test judgments", ["", measure], rows)

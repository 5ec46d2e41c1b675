"""Write the engines' pages: from an index to a query with learned weights. The code generates every snippet.

`python tools/engine_pages.py docs/engines` writes them.
"""

import re
import sys
from pathlib import Path

from genm.connect.registry import ENGINES
from genm.export.engines import targets
from genm.export.export import export_model, training_rules
from genm.export.quoting import py_literal
from genm.export.settings import WINDOW
from genm.export.simulation import normalized
from genm.export.target import Setting, Target, rankers_text, weights_text
from genm.io import write_text
from genm.model import Model
from genm.normalizers import Normalizer

_FENCE = {"json": "json", "py": "python", "sql": "sql"}
_FILES = (
    "A run file has one line `query_id Q0 doc_id rank score name` per returned document. `qrels.txt` has one line "
    "`query_id 0 doc_id grade` per judged document ([formats](../formats.md))."
)
_AT_HAND = {
    "text": "the query's words",
    "sparse": "the query's sparse vector",
    "vector": "the query's embedding",
}
_DEPTH = 100
_LISTS = ((0.8, 0.6, 0.2), (0.5, 0.5), (0.7,))


def page(target: Target) -> str:
    """Return a target's page as Markdown."""
    guide = target.guide
    model = example_model(target)
    exported = export_model(model, target.name, settings=guide.settings)
    runs = " ".join(f"{name}={name}.trec" for name in model.rankers)
    options = "".join(f" --set {key}={value}" for key, value in guide.settings.items())
    weights = ", ".join(f"{w:g} ({r})" for r, w in zip(model.rankers, model.weights, strict=True))
    sections = [
        f"# {target.title}",
        f"Versions: {target.versions}.",
        "## You have an index",
        "This page leads from an index to a query with learned weights. It assumes an index like this:",
        _fenced("", guide.index),
        "## 1. Save the results of each ranker",
        *_pulling(target),
        guide.runs,
        _FILES,
        "## 2. Learn the weights under the engine's rules",
        _fenced("sh", f"genm fit --target {target.name} --qrels qrels.txt {runs} -o model.json"),
        "## 3. Export them",
        _fenced("sh", f"genm export --to {target.name} model.json{options} -o {exported.file_name}"),
        f"With the weights {weights}, the file contains:",
        _fenced(_FENCE.get(target.file.suffix, ""), exported.text),
        "Both steps in Python, where `runs` maps names to runs:",
        _fenced("python", training_snippet(target)),
        "## 4. Search",
        *_given(target),
        guide.send,
        _fenced(guide.language, search_snippet(target)),
        "## What the engine computes",
        "How the engine normalises the scores of one ranker for one query, before it applies the weights:",
        _edges(target),
        _limits(target),
        "## Settings",
        "Pass each setting to `genm export` as `--set NAME=VALUE`.",
        _settings(target),
        "## Good to know",
        "\n".join(f"- {note}" for note in target.notes),
        "## How this export is tested",
        target.tested,
        "Sources: " + "; ".join(target.sources) + ".",
    ]
    return "\n\n".join(sections) + "\n"


def _pulling(target: Target) -> list[str]:
    """Return how `genm pull` does the first step; nothing for engines that it cannot ask or that rerank a list."""
    engine = target.name.removesuffix("-rrf")
    if engine not in ENGINES or target.window.rerank:
        return []
    commands = f"genm pull --init {engine} pull.toml\ngenm pull pull.toml -o ."
    return [
        "`genm pull` asks the engine and writes the run files, after you have filled in the example "
        "([how](../pull.md)):",
        _fenced("sh", commands),
        "By hand:",
    ]


def overview() -> str:
    """Return the page that lists all targets."""
    rows = [
        f"| [{target.title}]({name}.md) | `{name}` | {', '.join(t.word for t in target.techniques)} "
        f"| {rankers_text(target)} | {weights_text(target)} |"
        for name, target in targets().items()
    ]
    return "\n".join(
        [
            "# Engines",
            "",
            "Learned weights are valid only if the engine normalises scores, cuts lists and fills gaps as in",
            "training. `genm fit --target NAME` trains under the rules of an engine. `genm export --to NAME`",
            "writes the request, pipeline or code for the engine. It refuses a model if the engine would rank",
            "differently. [`genm pull`](../pull.md) asks an engine for the lists to learn from.",
            "",
            "By default, training uses the first normaliser in the table. `--technique` selects another, for all",
            "rankers or as `RANKER=NORMALISER`. `--window` sets how many documents of each ranker the engine uses.",
            "`genm export --list model.json` lists the engines that can use a model without changes.",
            "",
            "OpenSearch, Solr, Weaviate, PostgreSQL, SQLite, LanceDB, Milvus Lite and Qdrant run in the tests:",
            "their first 10 results are those of `genm fuse`. Every page says against what its export is tested.",
            "",
            "| Engine | Name | Normalisers | Rankers | Weights |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def write_pages(folder: Path) -> list[Path]:
    """Write all pages; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {"index": overview(), **{name: page(target) for name, target in targets().items()}}
    for name, text in pages.items():
        write_text(folder / f"{name}.md", text)
    return [folder / f"{name}.md" for name in pages]


def example_model(target: Target) -> Model:
    """Return a model that the target takes exactly, for its page."""
    rankers, weights = target.guide.rankers, target.guide.weights
    rules = training_rules(target.name, rankers, window=None if target.window.rerank else _DEPTH)
    if target.weights.equal:
        weights = (1.0 / len(rankers),) * len(rankers)
    normalizers = tuple(rules.normalizers[name] for name in rankers)
    return Model(rankers, weights, normalizers, (rules.depth,) * len(rankers), "newton", "AP", target=target.name)


def training_snippet(target: Target) -> str:
    """Return Python that learns under the target's rules and exports."""
    said = target.guide.settings
    settings = f", settings={py_literal(said)}" if said else ""
    equal, fitted = "", "genm.fit(aligned)"
    if target.weights.equal:
        equal, fitted = "from genm.learn.base import EqualFuser\n", "EqualFuser().fit(aligned)"
    return f"""import genm
from genm.export import export_model, training_rules
{equal}
rules = training_rules("{target.name}", runs)
aligned = genm.align_runs(runs, qrels, normalize=rules.normalizers, depth=rules.depth)
model = {fitted}.to_model()
exported = export_model(model, "{target.name}"{settings})
print(exported.text)"""


def search_snippet(target: Target) -> str:
    """Return code that searches with the exported file."""
    name = export_model(example_model(target), target.name, settings=target.guide.settings).file_name
    return target.guide.search.replace("FILE", name).replace("MODULE", name.removesuffix(".py"))


def _given(target: Target) -> list[str]:
    """Return a sentence that explains the variables of the search snippet."""
    if target.guide.language != "python":
        return []
    used = [
        f"`{name}` is {what}" for name, what in _AT_HAND.items() if re.search(rf"\b{name}\b", target.guide.search)
    ]
    return [f"Below, {', '.join(used)}."] if used else []


def _edges(target: Target) -> str:
    head = [
        "| technique | scores 0.8, 0.6, 0.2 | equal scores 0.5, 0.5 | one hit 0.7 | not returned |",
        "|---|---|---|---|---|",
    ]
    rows = []
    for technique in target.techniques:
        sign = -1.0 if technique.distances else 1.0
        cells = [_shown(tuple(sign * s for s in scores), technique.normalizer) for scores in _LISTS]
        gap = "its own score" if target.window.rerank else str(technique.normalizer.missing)
        word = f"{technique.word} (distances)" if technique.distances else technique.word
        rows.append(f"| {word} | {' | '.join(cells)} | {gap} |")
    return "\n".join(head + rows)


def _shown(scores: tuple[float, ...], normalizer: Normalizer) -> str:
    named = dict(zip("cba", scores, strict=False))  # of equal scores the first comes first
    return ", ".join(f"{value:.4g}" for _, value in sorted(normalized(named, normalizer).items(), reverse=True))


def _limits(target: Target) -> str:
    window = target.window
    taken = f"Rankers: {rankers_text(target)}. Weights: {weights_text(target)}."
    if window.rerank:
        cut = "It scores one set of candidates with every ranker, so train on runs that contain all candidates."
    else:
        cut = "Each ranker has a separate window" if window.each else "All rankers share one window"
        if window.least == window.most:
            return f"{cut} of {window.most} documents, which cannot be set. {taken}"
        ends = [f"{window.default} documents by default"] * bool(window.default)
        ends += [f"at least {window.least}"] * (window.least > 1) + [f"at most {window.most}"] * bool(window.most)
        cut = f"{', '.join([cut, *ends])}."
    return f"{cut} {taken}"


def _settings(target: Target) -> str:
    rows = ["| setting | default | what it is |", "|---|---|---|"]
    window = () if target.window.rerank or target.window.least == target.window.most else (WINDOW,)
    rows += [_row(setting, "") for setting in (*target.settings, *window)]
    rows += [_row(setting, "RANKER.") for setting in target.ranker_settings]
    return "\n".join(rows)


def _row(setting: Setting, prefix: str) -> str:
    choices = f" ({', '.join(setting.choices)})" if setting.choices else ""
    default = f"`{setting.default}`" if setting.default else ""
    return f"| `{prefix}{setting.name}` | {default} | {setting.what}{choices} |"


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))

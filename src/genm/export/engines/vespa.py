"""Vespa: a rank profile whose expression holds the weights as query inputs with defaults."""

import math
from typing import Any

from genm.export.quoting import FileType, feature_text, plain_name
from genm.export.simulation import every_doc, top
from genm.export.target import Code, Guide, Lists, Order, Part, Payload, Setting, Target, Technique, Weights, Window
from genm.normalizers import ENGINES, Normalizer

_SCALED = frozenset({"scale", "shift", "missing"})
_LISTWISE = ("minmax", "reciprocal")


def compose(order: Order) -> dict[str, Any]:
    """Return the profile's parts; what needs the whole list goes to the global phase."""
    profile = plain_name(order.settings["profile"], "profile", "Give another name for the profile.")
    rankers = [_ranker(part) for part in order.parts]
    return {
        "profile": profile,
        "rankers": rankers,
        "phase": "global" if any(ranker["kind"] in _LISTWISE for ranker in rankers) else "first",
        "rerank_count": order.window,
    }


def render(document: Payload) -> str:
    """Return the rank profile's text."""
    inputs = [f"        query(w_{r['name']}) double: {r['weight']!r}" for r in document["rankers"]]
    inputs += [
        f"        query(q_{r['name']}) tensor<float>(x[{r['dimensions']}])"
        for r in document["rankers"]
        if r["dimensions"]
    ]
    functions = [
        line
        for r in document["rankers"]
        for line in (f"    function ranker_{r['name']}() {{", f"        expression: {r['feature']}", "    }")
    ]
    terms = [f"query(w_{r['name']}) * {_expression(r)}" for r in document["rankers"]]
    fused = "\n            + ".join(terms)
    lines = [f"rank-profile {document['profile']} inherits default {{", "    inputs {", *inputs, "    }"]
    lines += functions
    if document["phase"] == "first":
        lines += ["    first-phase {", f"        expression {{\n            {fused}\n        }}", "    }"]
    else:
        heaviest = max(document["rankers"], key=lambda r: abs(r["weight"]))
        lines += ["    first-phase {", f"        expression: ranker_{heaviest['name']}", "    }"]
        lines += ["    global-phase {", f"        rerank-count: {document['rerank_count']}"]
        lines += [f"        expression {{\n            {fused}\n        }}", "    }"]
    lines += ["    match-features {"]
    lines += [f"        ranker_{r['name']}" for r in document["rankers"]] + ["    }", "}"]
    return "\n".join(lines) + "\n"


def simulate(document: Payload, lists: Lists) -> dict[str, float]:
    """Score every candidate by every feature, 0 where it does not match; lists are all the candidates."""
    docs = every_doc(lists)
    fused = dict.fromkeys(docs, 0.0)
    for ranker, scores in zip(document["rankers"], lists, strict=True):
        feature = {doc: scores.get(doc, 0.0) for doc in docs}
        for doc, value in _normalized(ranker, feature).items():
            fused[doc] += ranker["weight"] * (ranker["scale"] * value + ranker["shift"])
    return fused


def _normalized(ranker: Payload, feature: dict[str, float]) -> dict[str, float]:
    kind, lower, upper = ranker["kind"], ranker["lower"], ranker["upper"]
    if kind == "reciprocal":
        return {doc: 1.0 / (ranker["k"] + place) for place, doc in enumerate(top(feature, None), start=1)}
    if kind == "minmax":
        low, high = min(feature.values()), max(feature.values())
        slope = 1.0 / (high - low) if high > low else 0.0
        return {doc: 0.5 + slope * (x - 0.5 * (low + high)) if slope else 0.5 for doc, x in feature.items()}
    if kind == "affine":
        return {doc: (x - lower) / (upper - lower) for doc, x in feature.items()}
    if kind == "atan":
        return {doc: math.atan(x) for doc, x in feature.items()}
    if kind == "sigmoid":
        return {doc: 1.0 / (1.0 + math.exp(-x)) for doc, x in feature.items()}
    return feature


def _expression(ranker: Payload) -> str:
    name, kind = (
        f"ranker_{ranker['name']}",
        ranker["kind"],
    )  # the prefix keeps a ranker called bm25 from hiding the feature
    text = {
        "none": name,
        "minmax": f"normalize_linear({name})",
        "reciprocal": f"reciprocal_rank({name}, {ranker['k']!r})",
        "atan": f"atan({name})",
        "sigmoid": f"sigmoid({name})",
    }.get(kind)
    if text is None:
        text = f"({name} - {_number(ranker['lower'])}) / {_number(ranker['upper'] - ranker['lower'])}"
    if ranker["scale"] != 1.0:
        text = f"{_number(ranker['scale'])} * {text}"
    if ranker["shift"] != 0.0:
        text = f"({text} + {_number(ranker['shift'])})"
    return text


def _number(value: float) -> str:
    return f"({value!r})" if value < 0 else repr(value)


def _ranker(part: Part) -> dict[str, Any]:
    own = part.settings
    name = plain_name(own["name"] or part.ranker, f"ranker {part.ranker}", f"Give one with {part.ranker}.name=...")
    default = {"text": f"bm25({own['field']})", "vector": f"closeness(field, {own['field']})"}[own["type"]]
    normalizer = part.normalizer
    return {
        "name": name,
        "weight": part.weight,
        "feature": feature_text(own["feature"] or default, f"{part.ranker}.feature"),
        "dimensions": int(own["dimensions"]) if own["type"] == "vector" and own["dimensions"] else 0,
        **{key: getattr(normalizer, key) for key in ("kind", "lower", "upper", "k", "scale", "shift")},
    }


_TESTED = (
    "The profile is compared with a simulator written from Vespa's documentation and source. "
    "No server runs in the tests: Vespa's search core comes as a container image or a Linux "
    "package of its own, not from an ordinary package registry."
)

PLACE = 40
TARGETS = (
    Target(
        name="vespa",
        title="Vespa rank profile",
        versions="8.200 and later (normalize_linear and reciprocal_rank in the global phase)",
        techniques=(
            Technique("normalize_linear", ENGINES["vespa-linear"], _SCALED),
            Technique("reciprocal_rank", ENGINES["vespa-rrf"], _SCALED | {"k"}),
            Technique(
                "fixed bounds", Normalizer("affine", lower=0.0, upper=1.0), frozenset({"missing"}), line="any"
            ),
            Technique("none", Normalizer("none"), frozenset({"missing"}), line="any"),
            Technique("atan", Normalizer("atan"), _SCALED),
            Technique("sigmoid", Normalizer("sigmoid", missing=0.5), _SCALED),
        ),
        window=Window(100, rerank=True),
        weights=Weights(least=None),
        code=Code(compose, simulate, render),
        file=FileType("text/plain", "profile"),
        guide=Guide(
            index="""schema article {
    document article {
        field text type string {
            indexing: index | summary
            index: enable-bm25
        }
        field embedding type tensor<float>(x[384]) {
            indexing: attribute | index
            attribute { distance-metric: angular }
        }
    }
}""",
            runs="Ask for the match features of all candidates (the exported profile lists them) and write every "
            "candidate's value to the run file of each ranker, so that all runs hold the same documents.",
            send="Put the profile into the schema and deploy; then search with `ranking=genm`. A request may "
            "override a weight, `input.query(w_bm25)=0.2`, so weights for one query need no deployment. With "
            "pyvespa, `app` being a `Vespa`:",
            search="""nearest = "{targetHits: 100}nearestNeighbor(embedding, q_dense)"
body = {
    "yql": f"select * from article where userQuery() or ({nearest})",
    "query": text,
    "ranking": "genm",
    "input.query(q_dense)": vector,
}
hits = app.query(body=body).hits""",
            settings={"dense.dimensions": "384"},
        ),
        settings=(Setting("profile", "genm", "the rank profile's name", "name"),),
        ranker_settings=(
            Setting("type", "", "how this ranker searches; guessed from its name", choices=("text", "vector")),
            Setting("field", "", "the field it searches: text or embedding if left out", "name"),
            Setting("feature", "", "the rank feature, in place of type and field"),
            Setting("name", "", "a name of letters, digits and _ if the ranker has none", "name"),
            Setting("dimensions", "", "the length of the query's vector, to declare it", "count"),
        ),
        notes=(
            "Features are computed for every candidate, also for those that another operator found; a document "
            "that a text feature does not match has 0 and takes part in the list's minimum.",
            "A list of equal values becomes 0.5.",
            "Set RANKER.dimensions, and the profile declares the query's vector, which Vespa wants declared.",
            "The global phase reorders the best rerank-count hits of the first phase.",
        ),
        tested=_TESTED,
        sources=(
            "docs.vespa.ai: phased ranking, ranking expressions, schema reference (inputs)",
            "vespa-engine/vespa: LinearNormalizer, ReciprocalRankNormalizer",
        ),
    ),
)

"""The contents of a report: one document, from which the page, the Markdown, the LaTeX and the JSON are made.

Everything is plain JSON: text, numbers, lists, objects, null. Ids and texts are raw, as in the files; each writer
escapes them. A number that does not exist (a p-value of one query, a share of nothing) is null. Long arrays are
packed: base64 of their bytes, with type and shape. Per-query lists are columns of equal length.

The records are typed dictionaries, so the report is its own JSON form: it is written and never read back. msgspec
checks a built report against them in the tests.
"""

import base64
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from genm.evaluate import Outcome
from genm.explain import Verdict

FORMAT = "genm-report"
VERSION = 1
Advice = Literal["adopt", "use-rule", "judge-more", "keep"]


class Packed(TypedDict):
    """An array of numbers: base64 of its bytes, lowest byte first; `shape` is row by row."""

    dtype: Literal["float64", "int32", "uint8"]
    shape: list[int]
    base64: str


def pack(array: NDArray[Any], dtype: Literal["float64", "int32", "uint8"]) -> Packed:
    """Return an array as JSON carries it."""
    plain = np.ascontiguousarray(array, np.dtype(dtype).newbyteorder("<"))
    return {"dtype": dtype, "shape": list(plain.shape), "base64": base64.b64encode(plain.tobytes()).decode()}


def unpack(packed: Packed) -> NDArray[Any]:
    """Return the array again."""
    raw = base64.b64decode(packed["base64"])
    return np.frombuffer(raw, np.dtype(packed["dtype"]).newbyteorder("<")).reshape(packed["shape"])


class Gain(TypedDict):
    """The held-out fusion against one rival, query by query."""

    over: str
    """The rival's id: "best single ranker", "RRF (k=60)", "uniform weights" or "current ranking"."""
    label: str
    """The rival as sentences name it; of the best single ranker, which one that is."""
    rival_mean: float
    """The rival's mean over all queries."""
    difference: float
    """Mean of fusion minus rival, in the report's measure."""
    low: float | None
    high: float | None
    """Confidence interval of the difference (`genm.evidence.intervals`); null for a single query."""
    p: float
    """Two-sided, Wilcoxon's signed-rank test over the queries. It decides nothing here: it does not allow for the
    weights having been learned, and it asks whether gains outnumber losses, not whether the mean differs."""
    p_values: dict[str, float]
    """By test: "wilcoxon", "t", "randomization"."""
    n_better: int
    n_worse: int
    n_equal: int
    outcome: Outcome
    """Better or worse: the interval lies on that side of 0; perhaps: it holds 0; equal: no query differs."""
    significant: bool
    """Whether the outcome is "better"."""
    sentence: str
    """The same in words, ready to show."""


class Headline(TypedDict):
    """How much better, and is it luck."""

    verdict: str
    """In a sentence: what the weights beat and what they do not, the strongest rival first."""
    advice: Advice
    """By the strongest rival. adopt: a significant gain; judge-more: a gain that may be luck; use-rule: equal
    weights, RRF or the current ranking are significantly better; keep: no gain."""
    significant: bool
    """Whether the gain over the strongest rival is significant."""
    held_out: float
    """The fusion's mean on queries it had not seen."""
    interval: list[float | None]
    """Confidence interval of `held_out`: low, high."""
    train: float
    """The same on the queries the weights were learned from: too good by as much as they over-fit."""
    confidence: float
    folds: int
    best_single: str
    """Name of the ranker with the highest mean over all queries."""
    strongest: str
    """Id of the rival with the highest mean over all queries."""
    unjudged: float | None
    """Share of the learned weights' top 10 without a judgment."""
    caveat: str
    """The same in a sentence."""
    criterion: str
    """In words: what decides whether a gain is significant, and what the p-values are."""
    gains: list[Gain]
    """Over the strongest rival first, then over the other rivals."""
    over_rankers: list[Gain]
    """Over each ranker alone, in the report's order; `over` is the ranker's id among the systems."""


class WeightRow(TypedDict):
    """One ranker's weight and how sure it is."""

    ranker: str
    weight: float
    quantiles: list[float] | None
    """Of the refits, at `WeightSpread.levels`; null where nothing was refitted."""
    samples: list[float]
    """The weight in every refit, in the same order for every ranker (so that pairs can be drawn)."""
    before: list[float] | None
    """Quantiles of the refits before shrinkage (see `WeightSpread.held_back`); null where there was none."""
    plateau: list[float] | None
    """Low and high: between these the ranker's weight may stand, the others in proportion, and the measure on the
    training queries falls by no more than `WeightSpread.plateau_loss`; null where it was not computed."""
    gain: float | None
    """What the measure loses on all these queries when this ranker is left out, with the documents that only it
    returned, and the others keep their proportions: the mean that `genm explain` prints. Nothing is learned again,
    and nothing is held out; null where there is one ranker."""


class WeightSpread(TypedDict):
    """The weights with their spread."""

    kind: Literal["bootstrap", "folds", "none"]
    """Where `samples` come from: refits on resampled queries, or only the folds of the cross-validation."""
    n_samples: int
    levels: list[float]
    """0.025, 0.25, 0.5, 0.75, 0.975."""
    plateau_loss: float | None
    held_back: float | None
    """The share by which the fit shrank its weights towards simple ones: 1 leaves nothing of what was learned, and
    no spread. Null where the method never shrinks, or nothing is known of it."""
    note: str
    """In words: how many refits, what was held fixed, what was skipped and why."""
    rows: list[WeightRow]


class RankerVerdict(TypedDict):
    """Whether one ranker is worth having, held out."""

    ranker: str
    verdict: Verdict
    """keep, hurts, not needed or undecided: `genm.explain.verdict_of` decides, here and everywhere."""
    loss: float
    """What is lost when it is left out and the others are learned again."""
    low: float | None
    high: float | None
    """The interval that the verdict rests on; it holds for all rankers together."""
    sentence: str


class Verdicts(TypedDict):
    """Which rankers to keep and which to leave out, as `genm explain` says it."""

    rows: list[RankerVerdict]
    """In the report's order; empty where nothing was computed."""
    skipped: str
    """Why nothing was computed; empty where it was."""
    advice: list[str]
    """Sentences about the rankers to leave out; empty where there are none."""
    held_out: float | None
    """The held-out mean of all rankers, learned as the subsets are: faster than the fit behind the headline, so the
    two may differ. Losses are differences to this one."""
    margin: float
    """A loss below this counts as nothing."""
    confidence: float
    folds: int


class System(TypedDict):
    """Something that ranks: a ranker, a rule that needs no learning, or the fusion."""

    id: str
    """Unique in the report; the key of curves and of per-query columns."""
    label: str
    kind: Literal["ranker", "rule", "best-single", "fused"]
    held_out: bool
    """Whether the values were measured on queries that had no part in choosing it. True for rankers and rules,
    which choose nothing; false for "learned weights (training)"."""
    values: list[float]
    """Means, one for each of `MeasureTable.measures`."""


class MeasureTable(TypedDict):
    """Means of every measure for every system; the report's own measure comes first."""

    measures: list[str]
    systems: list[System]
    n_queries: int
    """Over how many queries the means are taken; see `sampling` if that is not all."""
    main_n_queries: int
    """The first column is over this many: always all."""


class RecallCurve(TypedDict):
    """Interpolated precision at the eleven levels of recall 0.0, 0.1, ... 1.0, averaged over queries."""

    system: str
    precision: list[float]


class WeightLine(TypedDict):
    """The measure along one ranker's weight, the others in proportion: an exact step function.

    `values[i]` holds between `points[i]` and `points[i + 1]`; points run from 0 to 1. Where `tolerance` is 0 these
    are all the steps; otherwise neighbours were joined, and no value is further than `tolerance` from the true one.
    """

    ranker: str
    points: list[float]
    values: list[float]
    tolerance: float
    n_steps: int
    """How many steps there are before any were joined."""
    exact: bool
    """False where the measure has no exact steps: then `values` were measured in the middle of each interval."""
    weight: float
    """The ranker's learned weight, and the measure there."""
    value: float
    best: list[float]
    """The best interval: low, high, value."""


class Ternary(TypedDict):
    """The measure over all weights of three rankers: corner i is all weight on rankers[i]."""

    rankers: list[str]
    step: float
    weights: list[list[float]]
    """The points of the grid, three weights each."""
    values: list[float]
    chosen: list[float]
    chosen_value: float
    best: int
    """Position of the grid's best point."""


class LearningPoint(TypedDict):
    """What the same method reaches held out when it learns from fewer queries."""

    n_queries: float
    """Queries learned from (mean over the folds)."""
    mean: float
    low: float | None
    high: float | None
    """Confidence interval of the mean over queries; at each size all queries are held out once."""
    difference: float
    """Of this point to the last one, which learns from all queries but a fold: what more judgments brought."""
    difference_low: float | None
    difference_high: float | None


class LearningCurve(TypedDict):
    """What more judgments would bring."""

    points: list[LearningPoint]
    rivals: dict[str, float]
    """Means of the best single ranker, of RRF and of the strongest rival, to draw as level lines."""
    sentence: str


class QueryTable(TypedDict):
    """One entry per query, column by column."""

    query_ids: list[str]
    texts: list[str] | None
    """Texts of the queries where --texts gave them (else "" for those it lacks); null without --texts."""
    values: dict[str, list[float]]
    """System id -> the report's measure, for every ranker, rule, "best single ranker", "learned weights" (held out)
    and "learned weights (training)"."""
    delta: list[float]
    """Held-out fusion minus `rival`."""
    rival: str
    """Id of the strongest rival."""
    delta_rrf: list[float]
    fold: list[int]
    n_relevant: list[int]
    n_judged: list[int]
    n_docs: list[int]
    """Documents that any ranker returned."""
    detail: list[int]
    """Position in `details`, -1 where the query has none."""
    n_all: int
    """How many queries there are; more than in this table where rows were sampled."""


class DetailDoc(TypedDict):
    """A document in some top 10 of a query."""

    id: str
    text: str | None
    grade: int | None
    """Null: nobody judged it."""
    relevant: bool
    score: float
    """Fused score under the learned weights, 6 significant digits."""
    contributions: list[float]
    """Weight times normalised score, per ranker; they sum to `score`."""
    ranks: list[int | None]
    """Its rank in each ranker's own list; null where the ranker did not return it."""
    raw: list[float | None]
    """The rankers' own scores."""
    fused_rank: int


class Detail(TypedDict):
    """The top 10 of each ranker and of the fusion side by side; lists hold positions in `docs`."""

    query: int
    """Position in the query table."""
    docs: list[DetailDoc]
    fused: list[int]
    """Under the learned weights (learned from all queries, this one among them)."""
    rankers: list[list[int]]
    """One list per ranker, in the report's order."""
    n_relevant: int


class Sliders(TypedDict):
    """Scores for ranking anew in the page.

    Rows of query i (of `queries`) are row_starts[i]:row_starts[i + 1]. Bit number r * K + k of `stored` (packed,
    highest bit of each byte first) tells whether row r has a score by ranker k of its own: then it is the next of
    `values`, which run row by row; otherwise it is fill[i, k]. The fused score of a row is summed from the first
    ranker to the last, ((0 + w0 * s0) + w1 * s1) + ..., in double precision. Rows rank by fused score downwards; of
    equal ones the earlier row comes first. AP is the sum of precisions at relevant rows, in ranking order, over
    n_relevant (0 if that is 0); MAP the mean weighted by query_weights. So done, every AP equals Python's to the
    bit.
    """

    queries: Packed
    """int32: positions in the query table."""
    row_starts: Packed
    """int32, queries + 1."""
    stored: Packed
    """uint8."""
    values: Packed
    """float64."""
    fill: Packed
    """float64, (queries, K)."""
    marks: Packed
    """uint8 per row: 0 nobody judged it, 1 judged not relevant, 2 relevant."""
    n_relevant: Packed
    """int32 per query: relevant documents, also those that no ranker returned."""
    query_weights: Packed
    """float64 per query."""
    named_rows: Packed
    """int32: rows whose document ids are in `names`: those among the first of some ranker or of the fusion."""
    names: list[str]
    measure: str
    """"AP" or, at another level of relevance, "AP(rel=2)"."""
    ap: list[float]
    """Python's AP of each of these queries at the learned weights."""
    map: float
    """Their mean, and that over all queries (training, not held out)."""
    map_all: float
    n_scores: int
    """How many scores: rows times rankers."""


class RankerCoverage(TypedDict):
    """What one ranker's run covers."""

    ranker: str
    normalizer: str
    depth: int | None
    low: float
    median: float
    high: float
    """Raw scores."""
    missing: float
    """Of all documents that any ranker returned, the share that this one did not."""
    ties: float
    """Of its documents, the share with the same score as another of the same query."""
    unjudged: float
    """Of its top 10, the share that nobody judged."""


class DataWarning(TypedDict):
    """Something about the data that a reader should know."""

    code: str
    level: Literal["info", "warning"]
    text: str


class DataCoverage(TypedDict):
    """What is in the data."""

    rankers: list[RankerCoverage]
    unjudged_fused: float | None
    """Of the fusion's top 10, the share that nobody judged."""
    overlap: list[list[float]]
    """Documents that both rankers have in their top 10, over those that either has."""
    n_queries: int
    n_without_documents: int
    n_without_relevant: int
    warnings: list[DataWarning]


class Sampled(TypedDict):
    """A part of the report that does not show all queries."""

    part: str
    """Key of the report: "details", "sliders", "lines", "ternary", "measures", "curves", "queries", "coverage"."""
    n_shown: int
    n_all: int
    sentence: str


class InputFile(TypedDict):
    """A file that the report was made from."""

    role: str
    """"model", "evidence", "judgments", "texts" or "run NAME"."""
    name: str
    sha256: str | None
    """Null for standard input."""
    n_bytes: int | None


class Snippet(TypedDict):
    """The weights as a search engine takes them: what `genm export` writes."""

    engine: str
    """The engine's name in a sentence."""
    file_name: str
    text: str


class Made(TypedDict):
    """How it was made."""

    command: str
    versions: dict[str, str]
    files: list[InputFile]
    fingerprint: str
    """Hash of queries, documents, raw scores and judgments."""
    seed: int
    method: str
    fitted_with: str
    """Version of genm that wrote the model."""
    beta: float | None
    relevance_level: int
    target: str | None
    evidence: Literal["read", "computed"]
    """Whether folds and refits came from the file beside the model, or were computed for this report."""
    matches_training: bool
    """Whether these are the data that the model was learned from."""


class Report(TypedDict):
    """The whole report."""

    format: str
    version: int
    title: str
    measure: str
    rankers: list[str]
    weights: list[float]
    n_queries: int
    headline: Headline
    spread: WeightSpread
    verdicts: Verdicts
    snippet: Snippet | None
    """What the search engine takes that the model was trained for; null where it was trained for none."""
    measures: MeasureTable
    curves: list[RecallCurve]
    lines: list[WeightLine]
    ternary: Ternary | None
    """Null unless there are exactly three rankers."""
    learning: LearningCurve | None
    queries: QueryTable
    details: list[Detail]
    sliders: Sliders | None
    """Null where there is one ranker."""
    coverage: DataCoverage
    sampling: list[Sampled]
    """Empty where everything is shown."""
    made: Made

"""How good a ranking is: measures as values, evaluations that say what they counted, paired comparisons."""

from genm._callable import make_callable
from genm.evaluate.aligned import AlignedEvaluator, evaluate_aligned
from genm.evaluate.compare import Comparison, Contrast, Outcome, compare_runs
from genm.evaluate.evaluation import Curve, Evaluation, evaluate_run, evaluate_runs, precision_recall_curve
from genm.evaluate.measures import Measure, MeasureLike, parse_measure, parse_measures

__all__ = [
    "AlignedEvaluator",
    "Comparison",
    "Contrast",
    "Curve",
    "Evaluation",
    "Measure",
    "MeasureLike",
    "Outcome",
    "compare_runs",
    "evaluate_aligned",
    "evaluate_run",
    "evaluate_runs",
    "parse_measure",
    "parse_measures",
    "precision_recall_curve",
]

make_callable(__name__, evaluate_run)  # genm.evaluate(run, qrels, measures)

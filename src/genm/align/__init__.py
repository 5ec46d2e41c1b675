"""From K runs to one matrix per query: the union of their documents, a column per ranker."""

from genm.align.aligned import UNJUDGED, Aligned, check_aligned, drop_rankers, renormalize, select_rankers
from genm.align.coverage import Coverage
from genm.align.runs import AlignedOrRuns, Depths, Runs, align_runs, as_aligned, named_runs
from genm.normalizers import ENGINES, normalizer_of

__all__ = [
    "ENGINES",
    "UNJUDGED",
    "Aligned",
    "AlignedOrRuns",
    "Coverage",
    "Depths",
    "Runs",
    "align_runs",
    "as_aligned",
    "check_aligned",
    "drop_rankers",
    "named_runs",
    "normalizer_of",
    "renormalize",
    "select_rankers",
]

"""What each ranker is worth: to a document's score, to a query, and to the ensemble on queries it has not seen."""

from genm.explain.agreement import Agreement, rank_agreement
from genm.explain.attribution import (
    Explained,
    QueryExplanation,
    QueryGains,
    contributions,
    explain_documents,
    explain_query,
    gains_by_query,
)
from genm.explain.groups import GroupsExplanation, explain_groups
from genm.explain.losses import (
    Figure,
    Losses,
    RankerLoss,
    Verdict,
    measure_losses,
    model_losses,
    verdict_of,
    why_no_losses,
)
from genm.explain.plot import draw_worth, plot_worth
from genm.explain.subset_choice import Choice, choose_exhaustively, choose_greedily
from genm.explain.subsets import SubsetValues
from genm.explain.text import sentences
from genm.explain.worth import (
    Explanation,
    RankerWorth,
    Worth,
    explain_model,
    measure_worth,
    sampled_orders,
    sampled_values,
    shapley_values,
)

__all__ = [
    "Agreement",
    "Choice",
    "Explained",
    "Explanation",
    "Figure",
    "GroupsExplanation",
    "Losses",
    "QueryExplanation",
    "QueryGains",
    "RankerLoss",
    "RankerWorth",
    "SubsetValues",
    "Verdict",
    "Worth",
    "choose_exhaustively",
    "choose_greedily",
    "contributions",
    "draw_worth",
    "explain_documents",
    "explain_groups",
    "explain_model",
    "explain_query",
    "gains_by_query",
    "measure_losses",
    "measure_worth",
    "model_losses",
    "plot_worth",
    "rank_agreement",
    "sampled_orders",
    "sampled_values",
    "sentences",
    "shapley_values",
    "verdict_of",
    "why_no_losses",
]

"""Where the paper's experiment and ours part, in a sentence or two each; docs/paper.md has the full list."""

DEPARTURES: tuple[tuple[str, str], ...] = (
    (
        "Starts.",
        "The paper tries sixteen binary starts and takes the one with the best retrieval performance, which may "
        "look at the queries that it then reports. Here starts are chosen on the training queries alone.",
    ),
    (
        "Splits.",
        "It reports one two-fold split. With 30 queries on MED, one split says little: here the split is drawn "
        "anew with fixed seeds, the mean is shown, and the spread beside it.",
    ),
    (
        "Rankers.",
        "Its TFIDF, LSA, pLSI and LDI are not described in full and were weaker. Ours are built from the "
        "literature in their best untuned form, and part of the distance comes from there; the paper's own "
        "methods are run on the same rankers.",
    ),
    (
        "Queries.",
        "The printed Pr@1 and Pr@5 fit the judged queries only (76 of CISI's 112, 52 of CACM's 64). Here too only "
        "judged queries are measured.",
    ),
    (
        "gEnM.BAT.",
        "As printed the Newton step has the wrong sign, the gradient too, the second derivative the wrong "
        "power, and both are cut to a window of 2/β. The table of repairs shows what each is worth; the method "
        "as we use it has exact derivatives and a safeguarded step.",
    ),
    (
        "gEnM.IP.",
        "It is announced and then missing. Ours is a log barrier on the simplex.",
    ),
    (
        "UnsEnM.",
        "The paper's formula has a penalty that its algorithm leaves out, and no rule chooses the start without "
        "labels. Here the start is estimated from what the rankers put on top.",
    ),
    (
        "EnM.",
        "The text of this baseline is not public. Ours is a reconstruction: boosting with the rankers as weak "
        "learners, then a coordinate search on MAP.",
    ),
    (
        "Ties.",
        "Eq. (1) gives tied documents the same best position, so a query's AP can exceed 1. Here ties are "
        "ordered by document id, as trec_eval does.",
    ),
    (
        "The toy example.",
        "What the paper's first table calls MAP is the mean of the precision at 1, 2 and 3. Both readings are "
        "shown.",
    ),
)

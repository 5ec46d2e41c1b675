"""Learning curves of gEnM.ON and UnsEnM from every binary start, as in the paper: free weights, zeros included."""

import itertools
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from genm import plotting
from genm._typing import Floats
from genm.align import Aligned
from genm.errors import ConvergenceWarning
from genm.learn import CotrainFuser, Fuser, OnlineFuser, Step
from genm.reproduce.figures.style import Drawing, look_of
from genm.reproduce.paper import PAPER_BETA

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TOLERANCE, LEAST, MOST = 1e-4, 10, 20
"""The paper stops at this change of the objective but not before ten iterations; we also stop at twenty."""
_ALL_BINARY_UP_TO = 4


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """What both methods reached after every iteration, start by start."""

    rankers: tuple[str, ...]
    starts: Floats
    """(starts, K) weights as they are, not scaled."""
    steps: dict[str, list[list[Step]]]
    """By method and start."""


def learning_curves(aligned: Aligned) -> Curves:
    """Run both methods from every start with the printed steps (Algorithms 3 and 4; sigma = 0, departure 9)."""
    starts = binary_starts(len(aligned.rankers))
    stop: dict[str, Any] = {"tol": TOLERANCE, "min_iter": LEAST, "max_iter": MOST}
    fusers: dict[str, Fuser] = {
        "gEnM.ON": OnlineFuser(schedule="paper", beta=PAPER_BETA, starts=starts, free=True, **stop),
        "UnsEnM": CotrainFuser(
            schedule="paper", beta=PAPER_BETA, starts=starts, free=True, trust=1.0, sigma=0.0, **stop
        ),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the curves show it
        for fuser in fusers.values():
            fuser.fit(aligned)
    steps = {
        method: [[step for step in fuser.history_ if step.start == s] for s in range(len(starts))]
        for method, fuser in fusers.items()
    }
    return Curves(aligned.rankers, starts, steps)


def binary_starts(n_rankers: int) -> Floats:
    """Return all vectors of zeros and ones, those with few ones first; beyond four rankers only the plainest."""
    if n_rankers > _ALL_BINARY_UP_TO:
        return np.vstack([np.zeros((1, n_rankers)), np.eye(n_rankers), np.ones((1, n_rankers))])
    every = itertools.product((1.0, 0.0), repeat=n_rankers)
    return np.array(sorted(every, key=sum))


def draw_learning(curves: Curves, collection: str) -> Drawing:
    """Return one small panel for each start with both methods' objectives."""
    n = len(curves.starts)
    columns = 4
    rows = -(-n // columns)
    with plotting.style():
        figure, panels = plotting.new_figure(7.2, 0.9 + 1.45 * rows, rows=rows, columns=columns)
        low, high = _range(curves)
        for s, axes in enumerate(panels[:n]):
            _draw_start(axes, curves, s)
            axes.set_ylim(low, high)
            axes.set_xlim(-0.5, MOST + 0.5)
            axes.set_xticks(range(0, MOST + 1, 5))
            axes.tick_params(labelsize=7, labelbottom=s + columns >= n, labelleft=s % columns == 0)
        for axes in panels[n:]:
            axes.set_axis_off()
        figure.supxlabel("iteration", fontsize=9)
        figure.supylabel("objective", fontsize=9)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
        svg = plotting.to_svg(figure, f"Learning curves of gEnM.ON and UnsEnM on {collection} from {n} starts")
    return Drawing("learning", "How learning goes on from every start", _caption(curves, collection), svg)


def _draw_start(axes: "Axes", curves: Curves, s: int) -> None:
    for method, by_start in curves.steps.items():
        x = [step.iteration for step in by_start[s]]
        y = [step.objective for step in by_start[s]]
        axes.plot(x, y, label=method, linewidth=1.1, markersize=2.5, **look_of(method))
        best = max(steps[-1].objective for steps in by_start)
        axes.axhline(best, color=look_of(method)["color"], linewidth=0.6, linestyle=":")
        axes.annotate(
            f"{y[-1]:.3f}", (MOST, y[-1]), xytext=(0, -9), textcoords="offset points", ha="right", fontsize=7
        )
    axes.set_title("(" + "; ".join(f"{w:.0f}" for w in curves.starts[s]) + ")", fontsize=8, pad=3)


def _range(curves: Curves) -> tuple[float, float]:
    """Return the objective's range over all starts but the zeros, which begin far below."""
    seen = [
        step.objective
        for by_start in curves.steps.values()
        for s, steps in enumerate(by_start)
        for step in steps
        if curves.starts[s].any() or step.iteration > 0
    ]
    low, high = min(seen), max(seen)
    margin = 0.05 * max(high - low, 0.01)
    return low - margin, high + margin


def _caption(curves: Curves, collection: str) -> str:
    names = "; ".join(plotting.label(name) for name in curves.rankers)
    said = []
    for method, by_start in curves.steps.items():
        ends = [steps[-1].objective for steps in by_start]
        first = [steps[1].objective - steps[0].objective for steps in by_start if len(steps) > 1]
        rest = [steps[-1].objective - steps[1].objective for steps in by_start if len(steps) > 1]
        falls = sum(any(b.objective < a.objective - TOLERANCE for a, b in itertools.pairwise(s)) for s in by_start)
        said.append(
            f"{method} ends between {min(ends):.3f} and {max(ends):.3f}; on average its first iteration brings "
            f"{np.mean(first):+.3f} and all later ones {np.mean(rest):+.3f}; from {falls} of {len(by_start)} "
            f"starts it falls in between by more than the tolerance"
        )
    return (
        f"Learning curves on {collection} from every binary start ({names}), with the printed steps 1/t, free "
        f"weights and β = {PAPER_BETA:.0f}; each stops when the objective changes by less than {TOLERANCE:g}, not "
        f"before {LEAST} iterations and at the latest after {MOST}. The objective of gEnM.ON is the smoothed MAP, "
        f"that of UnsEnM the smoothed MAP under the rankers' own labels, so their heights are not to be compared. "
        f"{'. '.join(said)}. Dotted lines are the best end of all starts, the numbers the panel's own: since the "
        f"steps shrink, the end still depends on the start. From zeros, where all documents tie, the curve begins "
        f"below the panel."
    )

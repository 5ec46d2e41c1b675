"""The contract of all fusers: what `fit` leaves behind, what can be asked afterwards; fixed weights.

Parameters are handled as scikit-learn handles them: `__init__` stores them as given, `get_params` and `set_params`
read and change them, and `sklearn.base.clone` copies a fuser without what it has learned.
"""

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from inspect import signature
from textwrap import shorten
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from genm import charts, display
from genm._math.linear_algebra import weighted_mean
from genm._math.parallel import threads_for
from genm._typing import Floats
from genm.align import Aligned, AlignedOrRuns, as_aligned, renormalize, select_rankers
from genm.errors import ConvergenceWarning, InputError, NotFittedError
from genm.evaluate import AlignedEvaluator, Measure, MeasureLike, parse_measure
from genm.fuse import fuse_runs
from genm.learn.objectives import with_level
from genm.model import Model, OnlineState, named_weights
from genm.normalizers import Normalizer, ScoreRules
from genm.records import Qrels, Run
from genm.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST = 40
"""Characters of an option's value that a fuser shows of itself."""


@dataclass(frozen=True, slots=True)
class Step:
    """One point of a learning curve."""

    start: int
    """Which starting point, counted from 0."""
    iteration: int
    objective: float
    """What the fuser maximises: the smoothed MAP, or the exact one."""
    exact: float
    """MAP as it is measured (P1); for the label-free fuser, under its own labels."""
    weights: tuple[float, ...] = ()
    """Where this was, where the fuser tells: a distribution, or free weights as they are."""


class Fuser(ABC):
    """A method that learns weights. `fit` forgets what was before; `weights_` is a distribution over the rankers.

    Where runs are taken, runs that `genm.align_runs` has aligned are taken as well. Runs that come as they are get
    aligned on "minmax" scores.
    """

    method: ClassVar[str]
    """The name that the model file uses, which is the paper's; `genm.learn.METHODS` has the plain words."""
    objective: ClassVar[str]
    """What is maximised: exact MAP, or smoothed MAP with j sorted or smoothed."""
    weight_set: ClassVar[str]
    """Where weights live while learning: "simplex" or "free"."""
    normalize_unjudged: ClassVar[str] = "minmax"
    """How `fit` normalises runs that come without judgments."""

    rankers_: tuple[str, ...]
    normalizers_: tuple[Normalizer, ...]
    depths_: tuple[int | None, ...]
    weights_: Floats
    objective_: float
    history_: list[Step]
    converged_: bool
    n_iter_: int

    def __repr__(self) -> str:
        """Say the options that are not as usual, and the weights if there are any, on one line."""
        fitted = named_weights(self.rankers_, self.weights_) if hasattr(self, "weights_") else "not fitted"
        return f"<{self._call()}: {fitted}>"

    def _repr_html_(self) -> str:
        return display.fuser(self._call(), self)

    def _call(self) -> str:
        """Write the class with the options that differ from their defaults."""
        options = [
            f"{name}={shorten(repr(getattr(self, name)), _LONGEST, placeholder='...')}"
            for name, option in signature(type(self)).parameters.items()
            if str(getattr(self, name)) != str(option.default)
        ]
        return f"{type(self).__name__}({', '.join(options)})"

    @property
    def ranker_weights_(self) -> dict[str, float]:
        """The learned weights by the names of their rankers."""
        self._check_fitted()
        return dict(zip(self.rankers_, self.weights_.tolist(), strict=True))

    def plot(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the learned weights; needs the extra `plots`."""
        self._check_fitted()
        return charts.plot_weights(self.rankers_, self.weights_, title=f"Weights by {type(self).__name__}", ax=ax)

    def fit(self, runs: AlignedOrRuns, qrels: Qrels | None = None) -> Self:
        """Learn weights from scratch, from aligned runs or from runs and judgments."""
        aligned = as_aligned(runs, qrels, normalize=self._normalizer_for(runs, qrels))
        with threads_for(aligned.scores.size):
            return self._fit(aligned)

    @abstractmethod
    def _fit(self, aligned: Aligned) -> Self:
        """Learn weights from scratch, from aligned runs."""

    def fuse(self, runs: AlignedOrRuns, *, name: str = "fused", top: int | None = None) -> Run:
        """Return the fused run: the weighted sum of the rankers' scores, normalised as in training."""
        return fuse_runs(self.prepare(runs), self.weights_, name=name, top=top)

    def score(self, runs: AlignedOrRuns, qrels: Qrels | None = None, measure: MeasureLike | None = None) -> float:
        """Return the mean of a measure over the judged queries, each by its weight.

        Without a measure it is the one that the fuser maximises: average precision, unless it was told otherwise.
        """
        prepared = self.prepare(runs, qrels)
        evaluator = AlignedEvaluator(prepared, [self._measure_maximised() if measure is None else measure])
        return weighted_mean(evaluator.values(self.weights_)[:, 0], prepared.query_weights[evaluator.position])

    def get_params(self, *, deep: bool = True) -> dict[str, Any]:
        """Return the parameters as they were given; `deep` is for scikit-learn, since none holds further ones."""
        del deep
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change parameters; what was learned stays until the next `fit`."""
        known = signature(type(self)).parameters
        unknown = [name for name in params if name not in known]
        if unknown:
            name = type(self).__name__
            raise InputError(f"{name}: expected parameters of {', '.join(known)}; found {', '.join(unknown)}.")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def clone(self) -> Self:
        """Return a fuser with the same parameters that has learned nothing."""
        return type(self)(**self.get_params())

    def prepare(self, runs: AlignedOrRuns, qrels: Qrels | None = None) -> Aligned:
        """Return runs aligned under the rules of the training; aligned ones get its normalisers."""
        self._check_fitted()
        if not isinstance(runs, Aligned):
            return self.to_model().align(runs, qrels)
        aligned = as_aligned(runs, qrels)
        if aligned.rankers != self.rankers_ and sorted(aligned.rankers) == sorted(self.rankers_):
            aligned = select_rankers(aligned, self.rankers_)
        self._check_rankers(aligned.rankers)
        if aligned.depths != self.depths_:
            raise InputError(
                f"expected runs cut at depths {self.depths_}, as in training; found {aligned.depths}. "
                f"Align them with depth=... as before."
            )
        same = aligned.normalizers == self.normalizers_
        return aligned if same else renormalize(aligned, self.normalizers_)

    def to_model(self) -> Model:
        """Return what serving needs: weights, and the normalisers and depths of the data that was fitted."""
        self._check_fitted()
        return Model(
            rankers=self.rankers_,
            weights=tuple(self.weights_.tolist()),
            normalizers=self.normalizers_,
            depths=self.depths_,
            method=self.method,
            measure="AP",
            relevance_level=getattr(self, "level", 1),
            beta=getattr(self, "beta_", None),
            library=__version__,
            online=self._online_state(),
        )

    def _remember(self, made: ScoreRules) -> None:
        """Keep the rules that the scores were made under, so that serving can repeat them."""
        self.rankers_, self.normalizers_, self.depths_ = made.rankers, made.normalizers, made.depths

    def _normalizer_for(self, runs: AlignedOrRuns, qrels: Qrels | None) -> str | None:
        return self.normalize_unjudged if qrels is None and not isinstance(runs, Aligned) else None

    def _measure_maximised(self) -> Measure:
        return with_level(parse_measure(getattr(self, "measure", "AP")), getattr(self, "level", 1))

    def _online_state(self) -> OnlineState | None:
        return None

    def _check_fitted(self) -> None:
        if not hasattr(self, "weights_"):
            name = type(self).__name__
            raise NotFittedError(f"this {name} has no weights yet. Call {name}.fit(runs, qrels) first.")

    def _check_rankers(self, rankers: tuple[str, ...]) -> None:
        if rankers != self.rankers_:
            raise InputError(
                f"expected runs of {', '.join(self.rankers_)}, in this order; found {', '.join(rankers)}. "
                f"Align the runs under the names that were fitted."
            )

    def _warn_if_stopped_early(self) -> None:
        if not self.converged_:
            warnings.warn(
                f"{type(self).__name__} stopped after {self.n_iter_} iterations before its tolerance was met; "
                f"the best weights it saw are kept. Raise max_iter, or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )


class FixedWeights(Fuser):
    """Use the weights that are given. Nothing is learned.

    For a rule, such as equal weights, the value on any queries is the value to expect on others. For weights that
    were learned elsewhere this holds only if these queries took no part in the learning.

    Objective: none. Set: one point of the simplex.
    """

    method = "given"
    objective = "none"
    weight_set = "simplex"

    def __init__(self, weights: tuple[float, ...], *, level: int = 1) -> None:
        self.weights, self.level = weights, level

    def _fit(self, aligned: Aligned) -> Self:
        """Remember the rankers and the rules of their scores."""
        self._remember(aligned)
        self.weights_ = self._weights()
        self.objective_, self.history_ = 0.0, []
        self.converged_, self.n_iter_ = True, 0
        return self

    def _weights(self) -> NDArray[np.float64]:
        return np.array(self.weights)


class EqualFuser(FixedWeights):
    """Give every ranker the same weight. Nothing is learned: held-out figures are those of the rule.

    Objective: none. Set: the one point in the middle of the simplex.
    """

    method = "equal"

    def __init__(self, *, level: int = 1) -> None:
        super().__init__((), level=level)

    def _weights(self) -> NDArray[np.float64]:
        n = len(self.rankers_)
        return np.full(n, 1.0 / n)


GivenFuser = FixedWeights
"""The name before 0.2."""

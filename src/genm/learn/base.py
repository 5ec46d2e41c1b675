"""The contract of all fusers: what `fit` leaves behind, what can be asked afterwards; fixed weights."""

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from inspect import signature
from textwrap import shorten
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from genm import charts, display
from genm._typing import Floats
from genm.align import Aligned, check_aligned, renormalize
from genm.errors import ConvergenceWarning, InputError, NotFittedError
from genm.fuse import fuse_runs
from genm.learn.objectives import Problem
from genm.model import Model, OnlineState, named_weights
from genm.normalizers import Normalizer
from genm.records import Run
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
    """What the fuser climbs: the smoothed MAP, or the exact one."""
    exact: float
    """MAP as it is measured (P1); for the label-free fuser, under its own labels."""
    weights: tuple[float, ...] = ()
    """Where this was, where the fuser tells: a distribution, or free weights as they are."""


class Fuser(ABC):
    """A way to learn weights. `fit` forgets what was before; `weights_` is always a distribution."""

    method: ClassVar[str]
    """The name the command line and the model file use."""
    objective: ClassVar[str]
    """Which objective is climbed: exact MAP, or smoothed with j sorted or smoothed."""
    weight_set: ClassVar[str]
    """Where weights live while learning: "simplex" or "free"."""

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

    @abstractmethod
    def fit(self, aligned: Aligned) -> Self:
        """Learn weights from scratch."""

    def fuse(self, aligned: Aligned, *, name: str = "fused", top: int | None = None) -> Run:
        """Return the ensemble's run: the weighted sum of the rankers' scores."""
        return fuse_runs(self.prepare(aligned), self.weights_, name=name, top=top)

    def prepare(self, aligned: Aligned) -> Aligned:
        """Return the scores under the normalisers of the training, whatever they came with."""
        self._check_fitted()
        check_aligned(aligned)
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

    def _remember(self, made: Aligned | Problem) -> None:
        """Keep the rules that the scores were made under, so that serving can repeat them."""
        self.rankers_, self.normalizers_, self.depths_ = made.rankers, made.normalizers, made.depths

    def _online_state(self) -> OnlineState | None:
        return None

    def _check_fitted(self) -> None:
        if not hasattr(self, "weights_"):
            name = type(self).__name__
            raise NotFittedError(f"this {name} has no weights yet. Call {name}.fit(aligned) first.")

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


class GivenFuser(Fuser):
    """Keep the weights that are given. Nothing is learned, so nothing can be held out from learning.

    For a rule, such as equal weights, what this reaches on any queries is what to expect of others. For weights
    that were learned elsewhere it is that only as far as these queries had no part in it.

    Objective: none. Set: one point of the simplex.
    """

    method = "given"
    objective = "none"
    weight_set = "simplex"

    def __init__(self, weights: tuple[float, ...], *, level: int = 1) -> None:
        self.weights, self.level = weights, level

    def fit(self, aligned: Aligned) -> Self:
        """Remember the rankers and the rules of their scores."""
        self._remember(aligned)
        self.weights_ = self._weights()
        self.objective_, self.history_ = 0.0, []
        self.converged_, self.n_iter_ = True, 0
        return self

    def _weights(self) -> NDArray[np.float64]:
        return np.array(self.weights)


class EqualFuser(GivenFuser):
    """Give every ranker the same weight. Nothing is learned, so that held-out figures are those of the rule.

    Objective: none. Set: the one point in the middle of the simplex.
    """

    method = "equal"

    def __init__(self, *, level: int = 1) -> None:
        super().__init__((), level=level)

    def _weights(self) -> NDArray[np.float64]:
        n = len(self.rankers_)
        return np.full(n, 1.0 / n)

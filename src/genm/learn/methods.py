"""The methods by name: one table that Python, the command line and model files share.

| method | fuser | in the paper | in model files |
|---|---|---|---|
| auto | AutoFuser | | auto |
| newton | NewtonFuser | gEnM.BAT | bat |
| barrier | BarrierFuser | gEnM.IP | ip |
| online | OnlineFuser | gEnM.ON | on |
| cotrain | CotrainFuser | UnsEnM | uns |
| boost | BoostFuser | EnM | enm |
| exact | ExactFuser | | exact |
| expected | ExpectedFuser | | expected |

Every column names the method, in upper or lower case. Model files keep the short names of the paper, so that files
and their hashes stay what they were before the plain words.
"""

from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

from genm.align import AlignedOrRuns
from genm.errors import InputError
from genm.evaluate import MeasureLike, parse_measure
from genm.learn.auto import AutoFuser
from genm.learn.base import Fuser
from genm.learn.batch import BarrierFuser, NewtonFuser
from genm.learn.boost import BoostFuser
from genm.learn.cotrain import CotrainFuser
from genm.learn.exact import ExactFuser
from genm.learn.expected import ExpectedFuser
from genm.learn.online import OnlineFuser
from genm.records import Qrels


class Method(NamedTuple):
    """A method under its names."""

    name: str
    """The plain word."""
    code: str
    """The name in model files."""
    paper: str
    """The name in the paper; the plain word where the paper has none."""
    fuser: Callable[..., Fuser]

    @property
    def parameters(self) -> frozenset[str]:
        """What the fuser can be told."""
        return frozenset(signature(self.fuser).parameters)


_TABLE = (
    Method("auto", AutoFuser.method, "auto", AutoFuser),
    Method("newton", NewtonFuser.method, "gEnM.BAT", NewtonFuser),
    Method("barrier", BarrierFuser.method, "gEnM.IP", BarrierFuser),
    Method("online", OnlineFuser.method, "gEnM.ON", OnlineFuser),
    Method("cotrain", CotrainFuser.method, "UnsEnM", CotrainFuser),
    Method("boost", BoostFuser.method, "EnM", BoostFuser),
    Method("exact", ExactFuser.method, "exact", ExactFuser),
    Method("expected", ExpectedFuser.method, "expected", ExpectedFuser),
)
_BY_NAME = {name.lower(): method for method in _TABLE for name in (method.name, method.code, method.paper)}

METHODS = tuple(method.name for method in _TABLE)
"""The plain words that `fit`, `make_fuser` and `--method` take; `find_method` knows the paper's names too."""


def find_method(name: str) -> Method:
    """Return the method of this name: a plain word, the paper's name or a model file's, in any case."""
    found = _BY_NAME.get(name.lower()) if isinstance(name, str) else None
    if found is None:
        short = ", ".join(method.code for method in _TABLE if method.code != method.name)
        raise InputError(
            f"method (--method) {name!r}: expected one of {', '.join(METHODS)}, or the paper's {short}."
        )
    return found


def is_method(name: str) -> bool:
    """Whether a method has this name."""
    return name.lower() in _BY_NAME


def fit(
    runs: AlignedOrRuns,
    qrels: Qrels | None = None,
    *,
    method: str = "auto",
    measure: MeasureLike = "AP",
    **options: Any,
) -> Fuser:
    """Learn weights by the named method, from aligned runs or from runs and judgments; return the fitted fuser.

    "auto" is a good default. "newton", "barrier", "online", "cotrain" and "boost" are the paper's methods, under
    plain words or its own names; "exact" finds the best weights of the training queries; "expected"
    is for few judgments, where an unjudged document counts by its probability of relevance. Only "auto" and "exact"
    maximise measures other than average precision; "cotrain" needs no judgments. `options` are the fuser's own
    parameters. `genm.train` does the same and measures what the weights are worth.
    """
    return make_fuser(method, measure=measure, **options).fit(runs, qrels)


def make_fuser(method: str, *, measure: MeasureLike = "AP", **options: Any) -> Fuser:
    """Return a fuser by the name of its method, not yet fitted."""
    found = find_method(method)
    unknown = sorted(set(options) - found.parameters)
    if unknown:
        raise InputError(f"method {method!r} takes no {', '.join(unknown)}. Leave it out, or use another method.")
    wanted = parse_measure(measure)
    if "measure" in found.parameters:
        return found.fuser(measure=wanted, **options)
    if not wanted.has_smoothed_form:
        advice = "Use method 'auto' or 'exact', or measure 'AP'."
        raise InputError(f"method {method!r} maximises AP, not {wanted}. {advice}")
    if wanted.rel != 1 and "level" in found.parameters:
        options.setdefault("level", wanted.rel)
    return found.fuser(**options)

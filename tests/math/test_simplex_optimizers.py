"""Ascent on the simplex finds known maxima and never leaves the set."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from genm._math import simplex_optimizers
from genm._math.few_weights import FEW
from genm._math.simplex_optimizers import (
    Ascent,
    as_distribution,
    as_signed_distribution,
    barrier,
    join_signs,
    newton,
    project_to_simplex,
    quasi_newton,
    split_signs,
    step_by_curvature,
)

Array = NDArray[np.float64]
seeds = st.integers(0, 2**32 - 1)


class Quadratic:
    """f(x) = b x - x' A x / 2 with A positive definite: one maximum on the simplex."""

    def __init__(self, seed: int, n: int) -> None:
        rng = np.random.default_rng(seed)
        root = rng.normal(size=(n, n))
        self.A, self.b = root @ root.T + 0.1 * np.eye(n), rng.normal(size=n) * 2

    def value(self, x: Array) -> float:
        return float(self.b @ x - 0.5 * x @ self.A @ x)

    def derivatives(self, x: Array) -> tuple[float, Array, Array]:
        return self.value(x), self.b - self.A @ x, -self.A

    def gradient(self, x: Array) -> tuple[float, Array]:
        return self.value(x), self.b - self.A @ x

    def maximum(self) -> float:
        n = len(self.b)
        found = minimize(
            lambda x: -self.value(x),
            np.full(n, 1 / n),
            jac=lambda x: self.A @ x - self.b,
            bounds=[(0, 1)] * n,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones(n)},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        return -float(found.fun)


def run_newton(f: Quadratic, start: Array) -> Ascent:
    return newton(f.derivatives, f.value, start, tol=1e-13, min_iter=1, max_iter=300)


def run_barrier(f: Quadratic, start: Array) -> Ascent:
    return barrier(f.derivatives, f.value, start, tol=1e-13, min_iter=1, max_iter=600)


def run_quasi_newton(f: Quadratic, start: Array) -> Ascent:
    return quasi_newton(f.gradient, start, tol=1e-15, max_iter=500)


@pytest.mark.parametrize(("climb", "near"), [(run_newton, 1e-7), (run_barrier, 1e-5), (run_quasi_newton, 1e-5)])
@settings(deadline=None, max_examples=40)
@given(seed=seeds, n=st.integers(1, 7))
def test_the_maximum_of_a_concave_function_is_found(
    climb: Callable[[Quadratic, Array], Ascent], near: float, seed: int, n: int
) -> None:
    f = Quadratic(seed, n)
    end = climb(f, np.full(n, 1 / n))
    assert (end.alpha >= 0).all()
    assert end.alpha.sum() == pytest.approx(1, abs=1e-12)
    assert f.maximum() - f.value(end.alpha) < near
    assert end.value == pytest.approx(f.value(end.alpha))


def test_newton_reaches_a_maximum_inside_in_one_step() -> None:
    """Worked by hand: f = -(x - .2)^2 - (y - .8)^2 has its maximum at (.2, .8), where f is 0."""
    aim = np.array([0.2, 0.8])
    seen: list[int] = []
    end = newton(
        lambda x: (-float((x - aim) @ (x - aim)), -2 * (x - aim), -2 * np.eye(2)),
        lambda x: -float((x - aim) @ (x - aim)),
        np.array([0.5, 0.5]),
        tol=1e-12,
        min_iter=1,
        max_iter=20,
        watch=lambda n, x, f: seen.append(n),
    )
    np.testing.assert_allclose(end.alpha, aim, atol=1e-12)
    assert end.converged
    assert seen == list(range(end.n_iter + 1))
    assert end.n_iter <= 2


def test_newton_climbs_out_of_a_saddle_where_the_printed_step_falls() -> None:
    """f = x^2 is convex: Newton's own step runs to the minimum at 0, the safeguarded one to x = 1."""
    end = newton(
        lambda x: (float(x[0] ** 2), np.array([2 * x[0], 0.0]), np.diag([2.0, 0.0])),
        lambda x: float(x[0] ** 2),
        np.array([0.4, 0.6]),
        tol=1e-12,
        min_iter=1,
        max_iter=50,
    )
    np.testing.assert_allclose(end.alpha, [1.0, 0.0])


def test_limits_on_iterations_are_obeyed() -> None:
    f = Quadratic(3, 4)
    one = newton(f.derivatives, f.value, np.full(4, 0.25), tol=0.0, min_iter=1, max_iter=1)
    assert (one.n_iter, one.converged) == (1, False)
    many = newton(f.derivatives, f.value, np.full(4, 0.25), tol=1.0, min_iter=7, max_iter=50)
    assert (many.n_iter, many.converged) == (7, True)


def test_the_barrier_gives_useless_rankers_exactly_nothing() -> None:
    f = Quadratic(0, 3)
    f.A, f.b = np.eye(3) * 0.1, np.array([1.0, 0.0, -1.0])
    end = run_barrier(f, np.full(3, 1 / 3))
    assert end.alpha.tolist() == [1.0, 0.0, 0.0]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9))
def test_the_projection_is_the_nearest_point(point: list[float]) -> None:
    """The projection theorem: nobody on the simplex lies on the far side of the tangent plane."""
    x = np.array(point)
    p = project_to_simplex(x)
    assert (p >= 0).all()
    assert p.sum() == pytest.approx(1)
    scale = max(1.0, float(np.abs(x).max()))
    assert all(float((x - p) @ (corner - p)) <= 1e-7 * scale for corner in np.eye(len(x)))


@given(st.lists(st.floats(-1e308, 1e308), min_size=1, max_size=9))
def test_any_finite_weights_become_a_distribution(raw: list[float]) -> None:
    alpha = as_distribution(np.array(raw))
    assert (alpha >= 0).all()
    assert alpha.sum() == pytest.approx(1)
    if max(raw) > 0:
        assert [a > 0 for a in alpha.tolist()] <= [r > 0 for r in raw]


@given(st.lists(st.floats(-1e308, 1e308), min_size=1, max_size=9))
def test_signed_weights_keep_their_signs_and_their_sizes_sum_to_one(raw: list[float]) -> None:
    weights, parts = as_signed_distribution(np.array(raw)), split_signs(np.array(raw))
    assert np.abs(weights).sum() == pytest.approx(1)
    if any(raw):
        assert all(w * np.sign(r) >= 0 for w, r in zip(weights.tolist(), raw, strict=True))
    assert (parts >= 0).all()
    assert join_signs(parts).tolist() == raw
    if min(raw) >= 0:
        assert weights.tolist() == as_distribution(np.array(raw)).tolist()


def test_who_knows_the_curvature_needs_fewer_looks():
    """Inside the simplex one step is enough; a step that promises less than the tolerance is not even tried."""
    f = Quadratic(0, 3)
    f.b = f.A @ np.array([0.4, 0.35, 0.25])
    looks: list[Array] = []

    def gradient(x: Array) -> tuple[float, Array]:
        looks.append(x)
        return f.gradient(x)

    start = np.array([0.5, 0.25, 0.25])
    found = quasi_newton(gradient, start, tol=1e-6, max_iter=50, curvature=f.A)
    assert found.alpha == pytest.approx([0.4, 0.35, 0.25])
    assert len(looks) == 2
    looks.clear()
    assert (quasi_newton(gradient, start, tol=10.0, max_iter=50, curvature=f.A).alpha == start).all()
    assert len(looks) == 1
    learned = quasi_newton(f.gradient, start, tol=1e-15, max_iter=50).curvature
    assert learned is not None
    inside = np.array([1.0, -1.0, 0.0])
    assert inside @ learned @ inside == pytest.approx(inside @ f.A @ inside, rel=0.05)


numbers = st.floats(-1e6, 1e6).map(lambda x: 0.0 if abs(x) < 1e-6 else x)


@settings(deadline=None, max_examples=300)
@given(st.integers(2, FEW - 1), st.data())
def test_a_few_weights_take_the_same_steps_to_the_last_bit(n: int, data: st.DataObject) -> None:
    point, g, s, y = (np.array(data.draw(st.lists(numbers, min_size=n, max_size=n))) for _ in range(4))
    root = np.array(data.draw(st.lists(numbers, min_size=n * n, max_size=n * n))).reshape(n, n)
    alpha = project_to_simplex(point)  # numbers far apart: most weights are 0
    alpha = alpha if data.draw(st.booleans()) else np.full(n, 1.0 / n)
    calls = {
        "project": lambda: project_to_simplex(point),
        "step": lambda: simplex_optimizers._modified_newton_step(g, root + root.T),
        "curved step": lambda: simplex_optimizers._curved_step(alpha, g, root @ root.T + np.eye(n)),
        "curvature": lambda: simplex_optimizers._bfgs(root @ root.T + np.eye(n), s, y),
    }
    quick = {name: call() for name, call in calls.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simplex_optimizers, "FEW", 0)
        for name, call in calls.items():
            assert quick[name].tobytes() == call().tobytes(), name


@pytest.mark.parametrize("n", [2, 4, FEW - 1])
def test_a_few_weights_take_the_same_path_to_the_last_bit(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    f, start = Quadratic(7, n), np.full(n, 1.0 / n)
    quick = quasi_newton(f.gradient, start, tol=1e-12, max_iter=50), run_newton(f, start)
    monkeypatch.setattr(simplex_optimizers, "FEW", 0)
    for one, other in zip(
        quick, (quasi_newton(f.gradient, start, tol=1e-12, max_iter=50), run_newton(f, start)), strict=True
    ):
        assert (one.alpha.tobytes(), one.value, one.n_iter) == (other.alpha.tobytes(), other.value, other.n_iter)


@pytest.mark.parametrize("n", [3, FEW + 2])
def test_a_step_by_the_true_curvature_reaches_the_top_of_a_quadratic(n):
    """It promises twice the gain: the curvature takes back half of what the slope says."""
    rng = np.random.default_rng(n)
    root, top, start = rng.normal(size=(n, n)), np.full(n, 1.0 / n), rng.dirichlet(np.full(n, 50.0))
    curvature = root @ root.T + np.eye(n)
    reached, promised = step_by_curvature(start, -curvature @ (start - top), curvature)
    assert reached == pytest.approx(top, abs=1e-9)
    assert promised == pytest.approx((start - top) @ curvature @ (start - top))

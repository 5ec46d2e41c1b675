"""The sigmoid that replaces the indicator, and the centred linear approximation of Appendix B."""

import numpy as np

from genm import plotting
from genm.reproduce.figures.style import Drawing

BETA = 300.0
"""The sharpness of the paper's figure."""
_REACH = 7.0
"""How far from the middle is drawn, in units of 1/beta."""


def draw_sigmoid() -> Drawing:
    """Return f(x) = 1 / (1 + exp(beta x)) with its tangent cut at 0 and 1, and both slopes below."""
    x = np.linspace(-_REACH, _REACH, 241) / BETA
    f = 0.5 - 0.5 * np.tanh(0.5 * BETA * x)
    straight = np.clip(0.5 - 0.25 * BETA * x, 0.0, 1.0)
    slope = -BETA * f * (1.0 - f)
    end = 2.0 / BETA
    inside = np.abs(x) < end - 1e-12
    left_out = 2.0 / (1.0 + np.exp(2.0))
    with plotting.style():
        figure, (above, below) = plotting.new_figure(6.4, 5.4, rows=2)
        above.plot(x, f, label="sigmoid f", **plotting.series(0, markers=False))
        above.plot(x, straight, label="linear approximation", **plotting.series(1, markers=False))
        above.step([x[0], 0.0, x[-1]], [1.0, 1.0, 0.0], color=plotting.FAINT, linewidth=0.8, label="indicator")
        below.plot(x, slope, label="slope of f", **plotting.series(0, markers=False))
        below.plot(
            [x[0], -end, -end, end, end, x[-1]],
            [0.0, 0.0, -BETA / 4.0, -BETA / 4.0, 0.0, 0.0],
            label="of the linear approximation",
            **plotting.series(1, markers=False),
        )
        below.fill_between(
            x,
            slope,
            where=(~inside).tolist(),
            color=plotting.FAINT,
            alpha=0.4,
            linewidth=0,
            label="set to 0 by Eq. (39)",
        )
        for axes in (above, below):
            for edge in (-end, end):
                axes.axvline(edge, color=plotting.FAINT, linewidth=0.8, linestyle=":")
            axes.set_xlim(x[0], x[-1])
            axes.set_xticks([-end, 0.0, end], ["-2/β", "0", "2/β"])
        above.set_ylabel("f")
        above.legend(loc="lower left")
        below.set_ylabel("slope")
        below.set_xlabel(f"x, a difference of fused scores; β = {BETA:.0f}, so 2/β = {end:.4f}")
        below.legend(loc="lower left")
        svg = plotting.to_svg(figure, "The sigmoid and its centred linear approximation, with their slopes")
    caption = (
        f"The sigmoid that stands for “ranked above” in Eq. (3), its centred linear approximation, which is the "
        f"tangent in the middle until it meets 1 and 0 at -2/β and 2/β, and below it the slopes. Appendix B prints "
        f"the 0 and the 1 the wrong way round, and sets the slope to 0 outside the dotted lines (shaded). That is "
        f"no small thing: {left_out:.0%} of the sigmoid's whole descent lies there, whatever β is. The fusers here "
        f"use the exact slope."
    )
    return Drawing("sigmoid", "The sigmoid and where the paper cuts it", caption, svg)

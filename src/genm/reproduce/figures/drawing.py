"""A finished figure: a picture, and in words what is to be seen on it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Drawing:
    """One figure of the page; the same data always gives the same bytes."""

    name: str
    """What its file is called, without the ending."""
    title: str
    caption: str
    """Plain text, one paragraph: what was drawn, and what to see."""
    svg: str

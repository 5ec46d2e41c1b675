"""HTML from templates: one jinja2 environment that escapes every value it writes.

The templates are the files `*.html.j2` in `genm/templates`. A value becomes text, never markup, unless a template
or `Markup` says otherwise; a name that a template misspells is an error, not an empty place. Ids and other text
from files go through the filter `isolated`, which also keeps right-to-left text from turning the words around it.

Numbers are written with a real minus sign.
"""

import re
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from genm import formatting

MINUS = "\u2212"
_HYPHEN = re.compile(r"(?<![\w.])-(?=\d)")
_NOT_ALLOWED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""Characters that no HTML document may hold."""


def render(template: str, **values: object) -> Markup:
    """Return a template filled with these values, as HTML that another template may include."""
    return Markup(_environment().get_template(template).render(values))  # noqa: S704 - every value was escaped


def isolated(text: object) -> Markup:
    """Return text from a file as HTML that cannot turn the direction of the words around it."""
    return Markup("<bdi>{}</bdi>").format(_writable(str(text)))


def with_minus(text: str) -> str:
    """Return a text with real minus signs before its numbers."""
    return _HYPHEN.sub(MINUS, text)


def decimals(value: float | None, places: int = 4) -> str:
    """Write a number with a fixed number of places; one that does not exist is a dash."""
    return formatting.NONE if value is None else with_minus(f"{value:.{places}f}")


def signed(value: float | None, places: int = 4) -> str:
    """Write a difference, always with its sign."""
    return with_minus(formatting.signed(value, places))


def between(low: float | None, high: float | None, places: int = 4) -> str:
    """Write an interval of differences."""
    return with_minus(formatting.between(low, high, places))


def thousands(n: int) -> str:
    """Write a count with commas."""
    return f"{n:,}"


def plural(n: int, word: str, more: str = "") -> str:
    """Write a count with its noun; `more` is the plural where an s does not make it."""
    return f"{n:,} {word if n == 1 else more or word + 's'}"


def first_sentence(caption: str) -> str:
    """Return the first sentence of a caption without its full stop: the spoken name of a table."""
    return caption.partition(". ")[0].strip().rstrip(".")


def _writable(value: object) -> object:
    """Return text without what no document may hold, which becomes U+FFFD; what is HTML already passed here."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return _NOT_ALLOWED.sub("\ufffd", value)
    return value


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("genm"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_writable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    writers = (
        isolated, with_minus, decimals, signed, between, thousands, plural, first_sentence, formatting.percent,
        formatting.p_value, formatting.n_queries, formatting.measure_name,
    )  # fmt: skip
    environment.filters.update({write.__name__: write for write in writers})
    environment.globals["NONE"] = formatting.NONE
    return environment

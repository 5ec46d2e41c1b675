"""Every exception and warning of the package.

GenmError                 something the caller can put right; `code` is stable, the message says how
├── EngineError           a search engine refused a query, or gave an answer that cannot be used (code "engine")
├── FetchError            something could not be downloaded (code "fetch")
├── FormatError           a file does not say what its format promises (code "format")
├── InputError            a value, table or combination of inputs that cannot be used (code "input")
│   ├── ExportError       a model or a setting that a search engine cannot take (code "export")
│   └── WrongTypeError    a Python value of a type that cannot be used, also a TypeError (code "input")
├── MissingExtraError     an optional dependency is needed (code "extra")
├── ModelError            a model file is broken, of another version, or does not fit (code "model")
├── NotFittedError        a fuser was used before `fit` (code "not-fitted")
├── ServiceError          the service refused a request, or cannot be reached (code "service")
├── StoreError            the service's store cannot be read or written (code "store")
└── TableError            a score table is incomplete, damaged or of another version (code "table")

GenmWarning               said once, never raised by us
└── ConvergenceWarning    an iteration stopped at its limit
"""


class GenmError(Exception):
    """Base of all errors that a caller can put right."""

    code = "error"


class EngineError(GenmError):
    """A search engine cannot be reached, refused a query, or gave an answer that cannot be used."""

    code = "engine"

    def __init__(self, message: str, *, retry: bool = False, after: float = 0.0, fatal: bool = False) -> None:
        super().__init__(message)
        self.retry = retry
        """Whether the same request may succeed later: the engine is busy, or did not answer in time."""
        self.after = after
        """Seconds that the engine asks to wait before the next request."""
        self.fatal = fatal
        """Whether every other request would fail in the same way, such as with a wrong password."""


class FetchError(GenmError):
    """Something could not be downloaded: no network, no server, an answer that cannot be right."""

    code = "fetch"


class FormatError(GenmError, ValueError):
    """A file does not say what its format promises: where, expected, found, advice."""

    code = "format"

    def __init__(self, path: str, line: int | None, expected: str, found: str, advice: str) -> None:
        place = path if line is None else f"{path}:{line}"
        super().__init__(f"{place}: expected {expected}; found {found}. {advice}")
        self.path, self.line = path, line
        self.expected, self.found, self.advice = expected, found, advice


class InputError(GenmError, ValueError):
    """A value, a table or a combination of inputs that cannot be used."""

    code = "input"


class ExportError(InputError):
    """A model or a setting that a search engine cannot take; says why and what comes nearest."""

    code = "export"


class WrongTypeError(InputError, TypeError):
    """A Python value of a type that cannot be used."""


class MissingExtraError(GenmError, ImportError):
    """An optional dependency is not installed; the message gives the install line."""

    code = "extra"

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency. Install it with: pip install 'genm[{extra}]'")
        self.what, self.extra = what, extra

    def __reduce__(self) -> tuple[type["MissingExtraError"], tuple[str, str]]:
        """Survive the way from a worker to its client."""
        return type(self), (self.what, self.extra)


class ModelError(GenmError, ValueError):
    """A model file is broken, of an unknown version, or does not fit the runs."""

    code = "model"


class NotFittedError(GenmError, ValueError):
    """A fuser was asked for something that only `fit` can give."""

    code = "not-fitted"


class ServiceError(GenmError):
    """The service refused a request, or could not be reached."""

    code = "service"

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status; None where there was no answer."""


class StoreError(GenmError):
    """The store of the service cannot be read or written, or does not say what it should."""

    code = "store"


class TableError(GenmError, ValueError):
    """A score table is incomplete, damaged, of an unknown version, or does not fit what is asked of it."""

    code = "table"


class GenmWarning(UserWarning):
    """Base of the package's warnings."""


class ConvergenceWarning(GenmWarning):
    """An iteration stopped at its limit before its tolerance was met."""

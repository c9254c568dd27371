"""Exceptions and warnings of liedyn. All exceptions are subclasses of `LiedynError`.

`exit_status` of each class is the exit status of the command: 0 success, 1 computation failed, 2 wrong usage,
3 invalid input, 4 check failed.
"""
from __future__ import annotations

import difflib
import linecache
import numbers
import sys
import traceback
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, TypeVar

from liedyn.warning_codes import WARNING_CODES

_LONGEST = 120                           # characters of a value in an error
_WRONG_VALUE = "wrong value"             # a message that says no more than the expected value
_COMPARED, _PREFIX_BONUS = 8, 0.05       # of `close_to`: options among which it chooses, and added similarity of a prefix


@dataclass(frozen=True, slots=True)
class Place:
    """A location in the input: file, line, and element or key. Unknown parts are None."""

    file: str | None = None
    line: int | None = None
    key: str | None = None

    def __str__(self) -> str:
        head = self.file or ""
        if self.line is not None:
            head += f":{self.line}" if head else f"line {self.line}"
        return ": ".join(part for part in (head, self.key) if part)

    def at(self, part: str) -> Place:                           # noqa: ARG002 - of subclasses
        """Return the location of a part of the element, or of the element if the part is not in the input."""
        return self


@dataclass(frozen=True, slots=True)
class ElementPlace(Place):
    """Location of an element in a file, with the location of each part, such as `mass`, `axis` or `link`."""

    parts: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)

    def at(self, part: str) -> Place:
        """Return the location of a part, or of the element if the part is not in the file."""
        return self.parts.get(part) or Place(self.file, self.line, self.key)


@dataclass(frozen=True, slots=True)
class InputElement:
    """Base class of elements of an input, with the location that errors name. Equal elements may have different locations."""

    place: Place = field(default=Place(), compare=False, kw_only=True)


class LiedynError(Exception):
    """Base class of all exceptions that liedyn raises.

    Examples
    --------
    >>> try:
    ...     ld.load("robots/nothing.yaml")
    ... except ld.LiedynError as error:
    ...     print(type(error).__name__, error.exit_status)
    ModelError 3
    """

    exit_status = 1
    # `Result | None` (a class of a higher layer): the motion before a simulation ended early
    result: Any = None

    def _render_traceback_(self) -> list[str]:
        """Return what IPython prints in place of the traceback: lines of the caller's code, and the message."""
        return _short_traceback(self)


_NOT_THE_CALLER = sys.stdlib_module_names | {"liedyn", "IPython", "ipykernel", "matplotlib", "numba", "numpy", "scipy", "yaml"}


def _short_traceback(error: BaseException) -> list[str]:
    """Return lines with the frames of an error, and of its cause, that are not of liedyn and its libraries."""
    lines = [*_short_traceback(error.__cause__), "caused"] if error.__cause__ is not None else []
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__", "").partition(".")[0] not in _NOT_THE_CALLER:
            file, shell = frame.f_code.co_filename, frame.f_globals.get("get_ipython")
            cell = shell().compile.format_code_name(file) if shell else None                  # ("Cell", "In[3]")
            source = linecache.getline(file, line, frame.f_globals).strip()
            lines.append(f"{' '.join(cell) if cell else f'File {file}'}, line {line}{f': {source}' if source else ''}")
    return [*lines, f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())]


class InputError(LiedynError, ValueError):
    """Invalid file or argument. The message names the location, the expected value, the actual value and the correction.

    Examples
    --------
    >>> try:
    ...     ld.run_scenario({"robot": "robots/double_pendulum.yaml", "duration": -1})
    ... except ld.InputError as error:
    ...     print(error.place, error.found, error.expected, sep="; ")
    scenario: duration; -1; a number >= 1e-12
    """

    exit_status = 3

    def __init__(self, message: str, *, place: Place | None = None, found: object = None, expected: str | None = None,
                 hint: str | None = None):
        self.message: str = message
        self.place: Place | None = place
        self.found: object = found
        self.expected: str | None = expected
        self.hint: str | None = hint
        super().__init__(self._text())

    def _text(self) -> str:
        comparison = [f"expected {self.expected}"] if self.expected is not None else []
        comparison += [f"got {_short(self.found)}"] if self.found is not None else []
        message = "" if comparison and self.message == _WRONG_VALUE else self.message
        text = ": ".join(filter(None, (str(self.place or ""), message, ", ".join(comparison))))
        return escape_nonprintable(text if self.hint is None else f"{text} ({self.hint})")


class ModelError(InputError):
    """Invalid robot: negative mass, two parents, zero axis, …

    Examples
    --------
    >>> ld.load("robots/nothing.yaml")
    Traceback (most recent call last):
        ...
    liedyn.errors.ModelError: robots/nothing.yaml: no such file
    """


class ScenarioError(InputError):
    """Invalid scenario.

    Examples
    --------
    >>> ld.run_scenario({"robot": "robots/double_pendulum.yaml", "duration": -1})
    Traceback (most recent call last):
        ...
    liedyn.errors.ScenarioError: scenario: duration: out of range: expected a number >= 1e-12, got -1
    """


class TrajectoryError(InputError):
    """A trajectory file that cannot be read or does not fit its robot.

    Examples
    --------
    >>> ld.motion_of(ld.load("robots/double_pendulum.yaml"), ld.Trajectory({}, [0.0], {"q.elbow": [0.0]}, {}))
    Traceback (most recent call last):
        ...
    liedyn.errors.TrajectoryError: column q.shoulder: a column is missing: expected one for each ...
    """


class ShapeError(LiedynError, ValueError):
    """Array argument with the wrong shape or type.

    Examples
    --------
    >>> ld.mass_matrix(ld.load("robots/double_pendulum.yaml"), [0.3])
    Traceback (most recent call last):
        ...
    liedyn.errors.ShapeError: q has the wrong shape: expected (…, 2), got (1,)
    """

    exit_status = 3


class ConfigurationError(LiedynError, ValueError):
    """Array argument with invalid values: NaN, infinite, or a quaternion without unit norm.

    Examples
    --------
    >>> ld.mass_matrix(ld.load("robots/double_pendulum.yaml"), [0.3, np.nan])
    Traceback (most recent call last):
        ...
    liedyn.errors.ConfigurationError: q[1] (elbow) is not finite: got nan
    """

    exit_status = 3


class NameLookupError(LiedynError, KeyError, ValueError):
    """A joint or link name that the model does not have.

    Examples
    --------
    >>> ld.load("robots/double_pendulum.yaml").q_index("elbw")
    Traceback (most recent call last):
        ...
    liedyn.errors.NameLookupError: no moving joint 'elbw'; did you mean 'elbow'?
    """

    exit_status = 3

    def __str__(self) -> str:
        return str(self.args[0])


class ComputationError(LiedynError):
    """Failed computation: a vanishing articulated inertia, a step size that underflowed, …

    result             motion before the failure (`Result`) if a simulation ended early, else None
    at                 time [s] at which the motion ended, or None if unknown
    depends_on_method  whether another integrator may succeed

    Examples
    --------
    >>> try:
    ...     ld.simulate("robots/double_pendulum.yaml", duration=1, tau={"elbow": "1e4*exp(300*t)"})
    ... except ld.ComputationError as error:
    ...     print(error.result.status, error.result.t[-1] < 1)
    diverged True
    """

    exit_status = 1
    at: float | None = None
    depends_on_method: bool = False


class Interrupted(LiedynError):
    """A run that a signal ended at the time t [s]. `result` is as for ComputationError."""

    def __init__(self, signal: int, t: float):
        self.exit_status = 128 + signal
        super().__init__(f"interrupted at t = {t:.6g} s")
        self._arguments = signal, t

    def __reduce__(self) -> tuple[type[Interrupted], tuple[int, float], dict[str, Any]]:
        return type(self), self._arguments, {"result": self.result}


class UsageError(LiedynError):
    """Arguments that contradict each other, or a result that would be overwritten.

    Examples
    --------
    >>> ld.rollout(ld.load("robots/double_pendulum.yaml"), [0, 0], [0, 0], dt=0.0, steps=10)
    Traceback (most recent call last):
        ...
    liedyn.errors.UsageError: dt must be a number of seconds > 0, got 0.0
    """

    exit_status = 2


class ArgumentError(UsageError, TypeError):
    """Unknown keyword argument, or an argument of the wrong class.

    Examples
    --------
    >>> ld.load("robots/double_pendulum.yaml", gravty=[0, 0, 0])
    Traceback (most recent call last):
        ...
    liedyn.errors.ArgumentError: load has no argument 'gravty'; did you mean 'gravity'?
    >>> ld.mass_matrix("robots/double_pendulum.yaml", [0.3, 0.2])
    Traceback (most recent call last):
        ...
    liedyn.errors.ArgumentError: mass_matrix: model must be a Model, got the path 'robots/...' (ld.load(path))
    """


def checked_flag(function: str, name: str, value: object) -> bool:
    """Return a flag of a function as a bool. Raise ArgumentError for other values than True, False, 1 and 0.

    Scalars and arrays without axes of NumPy, JAX and PyTorch with the type bool are flags, too.
    """
    is_number = isinstance(value, numbers.Integral) and value in (0, 1)
    dtype = str(getattr(value, "dtype", "")).removeprefix("torch.")
    if not is_number and (dtype != "bool" or getattr(value, "shape", None) != ()):
        raise ArgumentError(f"{function}: {name} must be True or False, got {value!r}")
    return bool(value)


class CheckFailed(LiedynError):
    """A check failed (`liedyn check`, `--strict`, a self-check).

    Examples
    --------
    >>> text = "links: {arm: {mass: 1, inertia: [1, 1, 9]}}\\njoints: {j: {type: ball, parent: world, child: arm}}"
    >>> written = Path("arm.yaml").write_text(text)
    >>> ld.load("arm.yaml", strict=True)
    Traceback (most recent call last):
        ...
    liedyn.errors.CheckFailed: 1 warning(s) in arm.yaml, the first: arm.yaml:1: arm: the body has ...
    """

    exit_status = 4


class LiedynWarning(UserWarning):
    """Warning about an unreliable result or a suspicious input, or information about it.

    Functions issue warnings by `warnings.warn`. The `warnings` of results and models contain them and information. Commands print
    both, and write them as JSON.

    code      identifier of the warning, a key of `warning_codes.WARNING_CODES`
    level     "warning", or "information" for codes after which there is nothing to do
    message   description of the problem
    place     file, line and element, or None
    hint      how to correct it, or None

    ``warnings.simplefilter("error", ld.LiedynWarning)`` turns all of them into errors, ``"ignore"`` hides them.

    Examples
    --------
    >>> import warnings
    >>> model = ld.load("robots/double_pendulum.yaml").with_changes(damping={"elbow": 1e4})
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     runs = ld.rollout(model, [0.3, 0.0], [0.0, 0.0], dt=1e-3, steps=2)
    >>> caught[0].category.__name__, caught[0].message.code, caught[0].message.message[:15]
    ('LiedynWarning', 'stiff-step', 'dt is too long:')
    """

    def __init__(self, code: str, message: str, *, place: Place | None = None, hint: str | None = None):
        if code not in WARNING_CODES:
            raise ValueError(f"unknown warning code {code!r}")
        super().__init__(code, message)
        self.code: str = code
        self.message: str = message
        self.place: Place | None = place
        self.hint: str | None = hint

    def __str__(self) -> str:
        location = f"{self.place}: " if self.place and str(self.place) else ""
        hint = f" ({self.hint})" if self.hint is not None else ""
        return escape_nonprintable(f"{location}{self.message}{hint} [{self.code}]")

    def __repr__(self) -> str:
        return f"<LiedynWarning {self}>"

    @property
    def level(self) -> str:
        """The level of the message: "warning" or "information"."""
        return WARNING_CODES[self.code].level

    def _content(self) -> tuple[str, str, Place | None, str | None]:
        return self.code, self.message, self.place, self.hint

    def __eq__(self, other: object) -> bool:
        return self._content() == other._content() if isinstance(other, LiedynWarning) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._content())

    def to_dict(self) -> dict[str, Any]:
        """Return the warning as a dict for JSON, without the entries that are None."""
        place = self.place or Place()
        fields = {"level": self.level, "code": self.code, "message": self.message, "file": place.file, "line": place.line,
                  "key": place.key, "hint": self.hint}
        return {name: value for name, value in fields.items() if value is not None}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> LiedynWarning:
        """Return the warning from a dict written by `to_dict`."""
        place = Place(fields.get("file"), fields.get("line"), fields.get("key"))
        return cls(fields["code"], fields["message"], place=place if str(place) else None, hint=fields.get("hint"))


class WarningLog:
    """Warnings in the order in which they were added, without duplicates."""

    def __init__(self, warnings: Iterable[LiedynWarning] = ()):
        self._by_cause: dict[Hashable, LiedynWarning] = {}
        self.extend(warnings)

    def add(self, code: str, message: str, *, place: Place | None = None, hint: str | None = None,
            cause: Hashable = None) -> None:
        """Add a warning unless one with the same cause exists (without a cause: an equal warning)."""
        warning = LiedynWarning(code, message, place=place, hint=hint)
        self._by_cause.setdefault(warning if cause is None else cause, warning)

    def extend(self, warnings: Iterable[LiedynWarning]) -> None:
        """Add the warnings that are not equal to one in the log."""
        for warning in warnings:
            self._by_cause.setdefault(warning, warning)

    def state_dict(self) -> list[list[Any]]:
        """Return the causes and warnings as a list for JSON."""
        return [[None if cause == warning else cause, warning.to_dict()] for cause, warning in self._by_cause.items()]

    @classmethod
    def from_state_dict(cls, state: Iterable[Sequence[Any]]) -> WarningLog:
        """Return the log from a list written by `state_dict`."""
        log = cls()
        for cause, values in state:
            warning = LiedynWarning.from_dict(values)
            log._by_cause[warning if cause is None else cause] = warning
        return log

    def __iter__(self) -> Iterator[LiedynWarning]:
        return iter(self._by_cause.values())

    def __len__(self) -> int:
        return len(self._by_cause)


def of_level(level: str, messages: Iterable[LiedynWarning]) -> tuple[LiedynWarning, ...]:
    """Return the messages of a level, "warning" or "information"."""
    return tuple(message for message in messages if message.level == level)


def warn(issued: Iterable[LiedynWarning]) -> None:
    """Issue each warning once, attributed to the line outside of this package that called it. Information is not issued."""
    distinct = of_level("warning", WarningLog(issued))
    if not distinct:
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "liedyn":
        frame, level = frame.f_back, level + 1
    for warning in distinct:
        warnings.warn(warning, stacklevel=level)


def escape_nonprintable(text: str) -> str:
    r"""Return the text with nonprintable characters escaped as in Python (\\x1b), for a terminal or a plot.

    These are escape sequences, line ends and characters that change the direction of writing. Only this function escapes them.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def size_text(count: float) -> str:
    """Return a number of bytes as text with a unit in which it is at least 1."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as "1 loop" or "2 loops"."""
    return f"{number} {noun}{'s' * (number != 1)}"


T = TypeVar("T")


def summarized(kind: type[T]) -> type[T]:
    """Give a dataclass, a named tuple or a class with slots a representation on one line: its name, and its values.

    Values at their defaults, places in files and private fields are left out. Of arrays, it has the shapes, and of collections of
    elements, how many there are.
    """
    def represent(result: Any) -> str:
        if is_dataclass(result):
            items = [(item.name, item.default if item.default_factory is MISSING else item.default_factory())
                     for item in fields(result)]
        else:
            items = [(name, MISSING) for name in getattr(result, "_fields", kind.__annotations__)]
        values = {name: getattr(result, name) for name, default in items if name != "place" and not name.startswith("_")
                  and not _is_default(getattr(result, name), default)}
        title = f"{kind.__name__} {values.pop('name')}" if isinstance(values.get("name"), str) else kind.__name__
        parts = [f"{name} {_summary(value)}" for name, value in values.items()]
        return f"<{title}{': ' if parts else ''}{', '.join(parts)}>"
    kind.__repr__ = represent                               # type: ignore[method-assign]
    return kind


def _is_default(value: Any, default: Any) -> bool:
    return not hasattr(value, "shape") and default is not MISSING and bool(type(value) is type(default) and value == default)


_MOST_VALUES = 9                # of a collection in a representation; otherwise, their number


def _summary(value: Any) -> str:
    """Return a value of a representation in short."""
    if hasattr(value, "shape"):
        return str(value.shape)
    if isinstance(value, float):
        return f"{value:.6g}"
    if is_dataclass(value):
        return str(value) if str(value).startswith("<") else type(value).__name__
    if isinstance(value, (tuple, list, dict)) and not hasattr(value, "_fields"):
        if any(map(is_dataclass, value)):
            return str(len(value))
        parts = [f"{key}: {_summary(x)}" for key, x in value.items()] if isinstance(value, dict) else list(map(_summary, value))
        is_short = len(parts) <= _MOST_VALUES and sum(map(len, parts)) <= _LONGEST
        return f"({', '.join(parts)})" if is_short else str(len(parts))
    return str(value) or "''"


def first_of(items: Sequence[T], maximum: int) -> tuple[Sequence[T], int]:
    """Return the first items of a list in a message, and the number of the others.

    All are returned if there would be one other: it is about as long as "and 1 more".
    """
    first = items if len(items) <= maximum + 1 else items[:maximum]
    return first, len(items) - len(first)


def list_names(names: Sequence[str], maximum: int, separator: str = ", ") -> str:
    """Return names or texts for a message, as many as `first_of` returns, and the number of the others."""
    first, count = first_of(names, maximum)
    return separator.join(first) + (f"{' ' if separator == ', ' else separator}and {count} more" if count else "")


def close_to(word: object, options: Iterable[str], n: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return at most n of the options that resemble a word or pattern, ignoring case, the closest first.

    Options with which the word begins, and those that begin with the word, come before others that resemble it about as much:
    sine means sin, not since.
    """
    by_lower_case = {option.lower(): option for option in options}
    plain = str(word).replace("*", "").replace("?", "")[:100].lower()
    matches = difflib.get_close_matches(plain, list(by_lower_case), max(n, _COMPARED), cutoff)
    similarity = {match: difflib.SequenceMatcher(None, match, plain).ratio() + _PREFIX_BONUS
                  * (plain.startswith(match) or match.startswith(plain)) for match in matches}
    return [by_lower_case[match] for match in sorted(matches, key=similarity.__getitem__, reverse=True)[:n]]


def nearest(word: object, options: Iterable[str], n: int = 1, cutoff: float = 0.6,
            written: Callable[[str], str] = str) -> str | None:
    """Return a hint with the options that resemble an unknown word, each formatted by `written`, or None if there are none."""
    close = close_to(word, options, n, cutoff)
    return f"did you mean {' or '.join(map(written, close))}?" if close else None


def unknown_name(kind: str, name: object, names: Iterable[str], of: str = "the model has") -> NameLookupError:
    """Return the error for a name that the model does not have, with the nearest one. of: words before the names."""
    hint = nearest(name, names, written=repr) or f"{of} {list_names(list(names), 12) or 'none'}"
    return NameLookupError(f"no {kind} {name!r}; {hint}")


def _short(value: object) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[:_LONGEST - 1] + "…"

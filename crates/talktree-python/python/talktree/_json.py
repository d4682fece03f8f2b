"""JSON between Python and the library: as text, in one go.

What Python cannot keep in a value of its own stays as it is in the store: a lone surrogate is written as its escape, and an
integer of any length that Python converts is exact.
"""

from __future__ import annotations

import dataclasses
import json
import math
import operator
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from . import _time
from .message import Message


def dumps(value: Any, what: str) -> str:
    """Returns the JSON of a value; `what` names the argument in errors."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError) as error:
        # A RecursionError and a MemoryError say enough themselves.
        raise type(error)(f"{what}: {error}") from error


def _default(value: Any) -> Any:
    if isinstance(value, datetime):
        return _time.text_of(value, "a time")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


# Made once: `json.dumps` makes one for each value.
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"), default=_default)


def loads(text: str) -> Any:
    """Returns the value of a JSON text.

    An integer with more digits than Python converts (`sys.get_int_max_str_digits`) comes as a `Decimal`.
    """
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(text, parse_int=_integer)


def _integer(digits: str) -> int | Decimal:
    try:
        return int(digits)
    except ValueError:
        return Decimal(digits)


def message_text(message: object, what: str = "message") -> str:
    """Returns the JSON of a message."""
    return dumps(message_fields(message, what), what)


def messages_text(messages: object, what: str = "messages") -> str:
    """Returns the JSON of messages."""
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise TypeError(f"{what} must be an iterable of messages, not {type(messages).__name__}")
    return dumps([message_fields(it, f"{what}[{at}]") for at, it in enumerate(messages)], what)


def message_fields(message: object, what: str) -> dict[str, Any]:
    """Returns the fields of a message as the library takes them, which reads `content` itself."""
    if isinstance(message, Mapping):
        fields = dict(message)
    elif dataclasses.is_dataclass(message) and not isinstance(message, type):
        # Not asdict: it would copy the parts deeply.
        fields = {it.name: getattr(message, it.name) for it in dataclasses.fields(message)}
    else:
        raise TypeError(f"{what} must be a dict or a dataclass, not {type(message).__name__}")
    if "text" in fields and "parts" not in fields:
        text = fields.pop("text")
        if not isinstance(text, str):
            raise TypeError(f"{what}['text'] must be a str, not {type(text).__name__}")
        fields["parts"] = [{"type": "text", "text": text}]
    if not isinstance(fields.get("role"), str):
        raise TypeError(f"{what}['role'] must be a str, not {type(fields.get('role')).__name__}")
    return fields


def messages(text: str) -> list[Message]:
    """Returns the messages of a JSON list."""
    return [Message(it) for it in loads(text)]


def maybe_message(text: str) -> Message | None:
    """Returns the message of a JSON text, or None of `null`."""
    fields = loads(text)
    return None if fields is None else Message(fields)


def maybe_time_text(time: datetime | None, what: str) -> str | None:
    """Returns a time in ISO 8601, or None."""
    return None if time is None else _time.text_of(time, what)


def time(text: str) -> datetime:
    """Returns the time of a text in ISO 8601."""
    return _time.parsed(text)


def maybe_time(text: str | None) -> datetime | None:
    """Returns the time of a text in ISO 8601, or None."""
    return None if text is None else time(text)


def maybe_seconds(duration: timedelta | float | None, what: str) -> float | None:
    """Returns a duration in seconds, or None.

    Raises:
        TypeError: naming the argument, if it is neither a number nor a timedelta.
        ValueError: naming the argument, if it is negative, NaN or more than the library takes.
    """
    if duration is None:
        return None
    if isinstance(duration, timedelta):
        duration = duration.total_seconds()
    elif not hasattr(duration, "__float__") and not hasattr(duration, "__index__"):
        raise TypeError(f"{what} must be seconds or a timedelta, not {type(duration).__name__}")
    try:
        seconds = float(duration)
    except OverflowError:
        seconds = math.inf
    if not 0 <= seconds < 2**64:
        raise ValueError(f"{what} must be between 0 and {2**64 - 1} seconds, not {seconds}")
    return seconds


def is_str(value: object, what: str) -> str:
    """Returns a str.

    Raises:
        TypeError: naming the argument, if it is something else.
        UnicodeEncodeError: naming it, if it has a lone surrogate, which only the JSON of messages can hold.
    """
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        error.reason = f"{error.reason} in {what}"
        raise
    return value


def maybe_str(value: object, what: str) -> str | None:
    """Returns a str or None."""
    return None if value is None else is_str(value, what)


#: What the library takes as a count, and the fewer integers that some arguments have.
COUNTS = range(2**64)
COUNTS_OF_32_BITS = range(2**32)
MILLISECONDS = range(-(2**63), 2**63)


def count(value: object, what: str, limits: range = COUNTS) -> int:
    """Returns an integer that is within its limits.

    Raises:
        TypeError: naming the argument, if it is no integer.
        ValueError: naming the argument and the limits, if it is outside of them.
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{what} must be an int, not {type(value).__name__}") from None
    if number not in limits:
        # Python does not write integers of any length.
        given = f"one of {number.bit_length()} bits" if number.bit_length() > 128 else number
        raise ValueError(f"{what} must be between {limits[0]} and {limits[-1]}, not {given}")
    return number


def maybe_count(value: object, what: str, limits: range = COUNTS) -> int | None:
    """Returns an integer that is within its limits, or None."""
    return None if value is None else count(value, what, limits)


def check_counts(of: object, what: str, *names: str) -> None:
    """Refuses an object with attributes that are neither counts nor None.

    Raises:
        TypeError: and ValueError, as `count`; they name the first one.
    """
    for name in names:
        maybe_count(getattr(of, name), f"{what}.{name}")


def maybe_bool(value: object, what: str) -> bool | None:
    """Returns a bool or None.

    Raises:
        TypeError: naming the argument, if it is something else.
    """
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"{what} must be a bool, not {type(value).__name__}")
    return value


def strs(values: object, what: str) -> list[str]:
    """Returns a list of strs; a single str is refused, because its letters would be the items."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{what} must be an iterable of str, not {type(values).__name__}")
    return [is_str(it, f"{what}[{at}]") for at, it in enumerate(values)]


def only_known(settings: Iterable[str], of: type) -> None:
    """Refuses names of keyword arguments that a TypedDict does not have.

    Raises:
        TypeError: naming the first one.
    """
    for name in settings:
        if name not in of.__annotations__:
            raise TypeError(f"there is no setting {name!r}; there are {', '.join(of.__annotations__)}")

"""Times between Python and the library: as text in ISO 8601, in UTC."""

from __future__ import annotations

from datetime import datetime, timezone


def text_of(time: datetime, what: str) -> str:
    """Returns the text of a time; one without a time zone is local time. `what` names it in errors."""
    if not isinstance(time, datetime):
        raise TypeError(f"{what} must be a datetime, not {type(time).__name__}")
    try:
        return time.astimezone(timezone.utc).isoformat()
    except (OverflowError, ValueError) as error:
        raise ValueError(f"{what}: {time} is out of range in UTC: {error}") from error


def parsed(text: str) -> datetime:
    """Returns the time of a text; the nearest that a datetime can hold, if a store has one of another year than 1 to 9999."""
    if text.startswith(("-", "0000")):
        return datetime.min.replace(tzinfo=timezone.utc)
    if text.startswith("+"):
        return datetime.max.replace(tzinfo=timezone.utc)
    if text.endswith("Z"):
        text = text[:-1] + "+00:00"
    return datetime.fromisoformat(text)

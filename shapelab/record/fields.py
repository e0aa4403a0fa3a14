"""Types of the fields in saved files: each has a range, and unknown fields are refused, for a file may be a stranger's."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def utc(text: str) -> datetime:
    """A moment written as ISO 8601, such as 2025-01-31T10:00:00+00:00. Without a zone it is UTC."""
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def now() -> str:
    """This moment, to the second, as saved files write it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _is_a_moment(text: str) -> str:
    try:
        utc(text)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"not a moment in ISO 8601: {error}") from None
    return text


LONGEST_TEXT = 5_000  # characters: a path of the longest kind fits

Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Moment = Annotated[str, Field(max_length=40), AfterValidator(_is_a_moment)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=10**9)]
Bytes = Annotated[int, Field(ge=0, le=10**15)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Nanoseconds = Annotated[int, Field(ge=0, lt=2**63)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

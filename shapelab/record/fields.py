"""Types of the fields in saved files: each has a range, and unknown fields are refused, for a file may be a stranger's."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(max_length=500)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=10**9)]
Bytes = Annotated[int, Field(ge=0, le=10**15)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Nanoseconds = Annotated[int, Field(ge=0, lt=2**63)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

"""What was measured, as files: JSON Lines, one line for the environment and one for each shape, checked when read.

A file from a stranger is data, never code: every field has a type and a range, unknown fields are refused, and a bad
line is named by its number.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, model_validator

from shapelab.errors import BadArgument, BadFile, CannotWrite
from shapelab.files import locked, user_path, write_text_atomically
from shapelab.record.environment import Environment
from shapelab.record.fields import Count, Strict
from shapelab.record.machine_ceilings import Limits
from shapelab.record.measurement import Measurement, Request, Skipped
from shapelab.request.shape import RequestShape, whole
from shapelab.text import VERBATIM, visible

SCHEMA_VERSION = 2
READABLE = (1, 2)  # 1 had one dtype for weights and arithmetic, no servers, no settings and no requests
LARGEST_LINE = 64_000_000  # characters: 1,000 repeats of 1,400 tokens; see `check_that_it_can_be_saved`

Entry = Measurement | Request | Skipped | Limits


class Settings(Strict):
    """The repeats and the seed of a run. A sweep continues a file only with the same settings."""

    repeats: Annotated[Count, Field(ge=1)]
    seed: Annotated[int, Field(ge=0, lt=2**63)]

    @classmethod
    def of(cls, repeats: int, seed: int) -> "Settings":
        """Raises BadArgument for what is no whole number, or too large."""
        return cls(repeats=whole("repeats", repeats, 1, 10**6), seed=whole("seed", seed, 0, 2**63 - 1))


class _Header(Strict):
    schema_version: int
    environment: Environment
    settings: Settings | None = None


class _Line(Strict):
    measurement: Measurement | None = None
    request: Request | None = None
    skipped: Skipped | None = None
    limits: Limits | None = None

    @model_validator(mode="after")
    def _one_of_them(self):
        if len(self.model_fields_set) != 1 or self.entry is None:
            raise ValueError("a line holds one measurement, one request, one skipped shape or the machine's limits")
        return self

    @property
    def entry(self) -> Entry | None:
        return self.measurement or self.request or self.skipped or self.limits


@dataclass(repr=False)
class Run:
    """What was measured in one environment.

    measurements  shapes, each measured alone and several times
    requests      requests that a server or an engine worked on together
    skipped       shapes that a sweep could not measure
    limits        what the machine does at best; None where nobody measured it
    settings      repeats and seed; None where nobody kept them
    """

    environment: Environment
    measurements: list[Measurement] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    limits: Limits | None = None
    settings: Settings | None = None
    requests: list[Request] = field(default_factory=list)

    def __getitem__(self, name: str) -> Measurement:
        for measurement in self.measurements:
            if measurement.name == name:
                return measurement
        raise KeyError(f"{name!r} is not in this run; it holds {', '.join(self.names)}.")

    def __contains__(self, name: str) -> bool:
        return name in self.names

    @property
    def names(self) -> list[str]:
        return [measurement.name for measurement in self.measurements]

    def along(self, number: str) -> list[Measurement]:
        """The measurements that differ in one of the four numbers only, such as "batch_size", in its order.

        Where there are several such lines, the longest, and the first of equally long ones.
        """
        others = [name for name in ("cached_tokens", "input_tokens", "output_tokens", "batch_size") if name != number]
        lines: dict[tuple, dict[int, Measurement]] = {}
        for m in self.measurements:
            lines.setdefault(tuple(getattr(m, name) for name in others), {}).setdefault(getattr(m, number), m)
        best = max(lines.values(), key=len, default={})
        return [best[value] for value in sorted(best)]

    def __repr__(self) -> str:
        return f"<Run of {len(self.measurements)} shapes: {visible(self.environment.label)}>\n" + "\n".join(
            map(repr, self.measurements)
        )

    def to_frame(self):
        """A tidy pandas frame, one row a shape, seconds and tokens per second."""
        import pandas as pd

        return pd.DataFrame([{"name": m.name, **m.summary()} for m in self.measurements])

    def save(self, path: str | Path) -> Path:
        """Write the run as JSON Lines. Raises CannotWrite."""
        header = {"schema_version": SCHEMA_VERSION, "environment": self.environment.model_dump()}
        if self.settings:
            header["settings"] = self.settings.model_dump()
        entries = (*self.measurements, *self.requests, *self.skipped, *filter(None, [self.limits]))
        return write_text_atomically(path, json.dumps(header, allow_nan=False) + "\n" + "".join(map(_line, entries)))

    def add(self, entry: Entry, path: str | Path):
        """Take one more entry, and write it to the end of the run's file: it is on the disk before this returns.

        Raises CannotWrite; the file then holds what it held before.
        """
        self._take(entry)
        path = user_path(path)
        with locked(path):
            if not path.exists():  # somebody removed it while a shape was measured
                self.save(path)
                return
            try:
                with path.open("ab") as file:
                    before = file.tell()
                    try:
                        file.write(_line(entry).encode())
                        file.flush()
                        os.fsync(file.fileno())
                    except OSError:
                        os.truncate(path, before)  # or the next entry would continue half a line
                        raise
            except OSError as error:
                raise CannotWrite(
                    f"{path} cannot be written ({error.strerror or error}). It still holds what it held before: make room, "
                    "start the same command again, and it continues from there."
                ) from error

    def _take(self, entry: Entry):
        """If a sweep skips a shape and tries it again, the run keeps only the last outcome."""
        if isinstance(entry, Limits):
            self.limits = entry
        elif isinstance(entry, Request):
            self.requests.append(entry)
        else:
            self.skipped = [skipped for skipped in self.skipped if skipped.name != entry.name]
            (self.skipped if isinstance(entry, Skipped) else self.measurements).append(entry)

    @classmethod
    def load(cls, path: str | Path, *, unfinished: bool = False) -> "Run":
        """Read and check a run. Raises BadFile with the line and what is wrong with it.

        A last line that was cut off in the middle (the process was killed while it wrote) is left out.
        unfinished: a file without any measurement is fine.
        """
        path = user_path(path)
        try:
            with path.open(encoding="utf-8") as file:
                run = cls._from_lines(_read_lines(file, path), path)
        except (OSError, UnicodeDecodeError) as error:
            raise BadFile(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
        if not (run.measurements or run.requests or unfinished):
            raise BadFile(f"{path} holds no measurement. If a sweep was stopped early, the same command continues it.")
        return run

    @classmethod
    def _from_lines(cls, lines: Iterable[tuple[int, Mapping]], path: Path) -> "Run":
        run, measured = None, set()
        for number, line in lines:
            try:
                if run is None:
                    header = _header(line, path)
                    run = cls(header.environment, settings=header.settings)
                    continue
                entry = _Line.model_validate(line).entry
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(map(str, first["loc"])) or "the line"
                raise BadFile(f"{path}, line {number}: {_short(where)}: {_short(first['msg'])}.", number) from None
            if isinstance(entry, Measurement | Skipped) and entry.name in measured:
                name = _short(repr(entry.name))
                raise BadFile(f"{path}, line {number}: {name} was measured before. Delete one of the two lines.", number)
            if isinstance(entry, Measurement):
                measured.add(entry.name)
            run._take(entry)
        if run is None:
            raise BadFile(f"{path} is empty. `shapelab run` writes a run.")
        return run

    def _repr_html_(self) -> str:
        import pandas as pd

        with pd.option_context("display.max_colwidth", None):  # or a long name would be cut
            return self.to_frame().to_html(index=False, escape=True, na_rep="-", float_format="{:.4g}".format, classes=VERBATIM)


def check_that_it_can_be_saved(shape: RequestShape, repeats: int):
    """Refuse, before anything runs, what no line of a run's file can hold. Raises BadArgument.

    A stamp takes up to 21 characters, an event 25, and what else a repeat holds up to 800.
    """
    if repeats * (46 * (shape.output_tokens + 1) + 800) > LARGEST_LINE:
        raise BadArgument(
            f"repeats={repeats:,} of {shape} make more time stamps than a run's file can hold. Ask for fewer repeats or tokens.",
            "repeats",
        )


def _line(entry: Entry) -> str:
    return json.dumps({type(entry).__name__.lower(): entry.model_dump()}, allow_nan=False) + "\n"


def _short(text: str) -> str:
    """A stranger's words in an error message: few, and none that a terminal would obey."""
    return visible(text[:120])


def _header(line: Mapping, path: Path) -> _Header:
    version = line.get("schema_version", 1)
    if version not in READABLE:
        raise BadFile(
            f"{path} has schema version {_short(repr(version))} and this shapelab reads up to {SCHEMA_VERSION}. Update shapelab, or "
            "measure again.",
            1,
        )
    return _Header.model_validate(line)


def _read_lines(file, path: Path):
    number = 0
    while line := file.readline(LARGEST_LINE + 1):
        number += 1
        if len(line) > LARGEST_LINE:
            raise BadFile(
                f"{path}, line {number}: longer than {LARGEST_LINE:,} characters. This is not a run of shapelab.", number
            )
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):  # ValueError: not JSON, or a number of thousands of digits
            if number > 1 and not line.endswith("\n"):
                return  # cut off while it was written: what stands before it is whole
            raise BadFile(f"{path}, line {number}: not JSON. Was the file cut off?", number) from None
        if not isinstance(value, dict):
            raise BadFile(f"{path}, line {number}: a JSON object was expected.", number)
        yield number, value

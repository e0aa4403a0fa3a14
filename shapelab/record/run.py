"""What was measured, as files: JSON Lines, one line for the environment and one for each shape, checked when read.

A file from a stranger is data, never code: every field has a type and a range, unknown fields are refused, and a bad
line is named by its number.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError, model_validator

from shapelab.errors import ShapelabError
from shapelab.record.environment import Environment
from shapelab.record.fields import Strict
from shapelab.record.machine_ceilings import Limits
from shapelab.record.measurement import Measurement, Skipped

SCHEMA_VERSION = 2
READABLE = (1, 2)  # 1 had one dtype, and no servers
LARGEST_LINE = 4_000_000  # characters; a shape with 100 repeats of 1,000 tokens takes about 2 million


class _Header(Strict):
    schema_version: int
    environment: Environment


class _Line(Strict):
    measurement: Measurement | None = None
    skipped: Skipped | None = None
    limits: Limits | None = None

    @model_validator(mode="after")
    def _one_of_them(self):
        if sum(entry is not None for entry in (self.measurement, self.skipped, self.limits)) != 1:
            raise ValueError("either a measurement, a skipped shape or the machine's limits are wanted")
        return self


@dataclass(repr=False)
class Run:
    """Measurements made in one environment. limits is None where they were not measured."""

    environment: Environment
    measurements: list[Measurement] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    limits: Limits | None = None

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
        return f"<Run of {len(self.measurements)} shapes: {self.environment.label}>\n" + "\n".join(map(repr, self.measurements))

    def to_frame(self):
        """A tidy pandas frame, one row a shape, seconds and tokens per second."""
        import pandas as pd

        return pd.DataFrame([{"name": m.name, **m.summary()} for m in self.measurements])

    def save(self, path: str | Path) -> Path:
        """Write the run as JSON Lines. Raises ShapelabError when the file cannot be written."""
        path = Path(path)
        lines = [{"schema_version": SCHEMA_VERSION, "environment": self.environment.model_dump()}]
        lines += [_line(entry) for entry in (*self.measurements, *self.skipped, self.limits) if entry]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            half = path.with_name(path.name + ".part")
            half.write_text("".join(json.dumps(line, allow_nan=False) + "\n" for line in lines), encoding="utf-8")
            os.replace(half, path)  # a full disk leaves an earlier file as it was
        except OSError as error:
            raise ShapelabError(f"The run cannot be written to {path} ({error.strerror}). Choose another --out.") from error
        return path

    def add(self, entry: Measurement | Skipped | Limits, path: str | Path):
        """Take one more entry, and write it to the end of the run's file, on the disk before this returns."""
        if isinstance(entry, Limits):
            self.limits = entry
        else:
            (self.measurements if isinstance(entry, Measurement) else self.skipped).append(entry)
        try:
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(json.dumps(_line(entry), allow_nan=False) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ShapelabError(
                f"{path} cannot be written ({error.strerror}). What it held before is still in it; make room and start "
                "the same command again, and it goes on from there."
            ) from error

    @classmethod
    def load(cls, path: str | Path, *, unfinished: bool = False) -> "Run":
        """Read and check a run. Raises ShapelabError naming the file, the line and what is wrong with it.

        A last line that was cut off in the middle (the process was killed while it wrote) is left out.
        unfinished: a file without any measurement is fine.
        """
        path = Path(path)
        try:
            with path.open(encoding="utf-8") as file:
                run = cls._from_lines(_read_lines(file, path), path)
        except (OSError, UnicodeDecodeError) as error:
            raise ShapelabError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
        if not run.measurements and not unfinished:
            raise ShapelabError(f"{path} holds no measurement. Was the file cut off?")
        return run

    @classmethod
    def _from_lines(cls, lines: Iterable[tuple[int, Mapping]], path: Path) -> "Run":
        run = None
        for number, line in lines:
            try:
                if run is None:
                    _check_header(line, path)
                    run = cls(_Header.model_validate(line).environment)
                else:
                    read = _Line.model_validate(line)
                    if read.limits:
                        run.limits = read.limits
                        continue
                    entry = read.measurement or read.skipped
                    if entry.name in {*run.names, *(skipped.name for skipped in run.skipped)}:
                        raise ShapelabError(f"{path}, line {number}: {entry.name!r} is there twice; names must differ.")
                    (run.measurements if read.measurement else run.skipped).append(entry)
            except KeyError as error:
                raise ShapelabError(f"{path}, line {number}: {error} is missing. This is not a run of shapelab.") from None
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(map(str, first["loc"])) or "the line"
                raise ShapelabError(f"{path}, line {number}: {_short(where)}: {_short(first['msg'])}.") from None
        if run is None:
            raise ShapelabError(f"{path} is empty. `shapelab run --out DIR` writes a run.")
        return run

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(index=False, escape=True, na_rep="-", float_format="{:.4g}".format)


def _line(entry: Measurement | Skipped | Limits) -> dict[str, Any]:
    return {type(entry).__name__.lower(): entry.model_dump()}


def _short(text: str) -> str:
    """A stranger's words in an error message: few, and without control characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:120])


def _check_header(line: Mapping, path: Path):
    found = line["schema_version"]
    if found not in READABLE:
        raise ShapelabError(
            f"{path} has schema version {_short(repr(found))} and this shapelab reads {SCHEMA_VERSION} and older ones. Update shapelab, or measure again."
        )


def _read_lines(file, path: Path):
    number = 0
    while line := file.readline(LARGEST_LINE + 1):
        number += 1
        if len(line) > LARGEST_LINE:
            raise ShapelabError(f"{path}, line {number}: longer than {LARGEST_LINE:,} characters. This is not a run of shapelab.")
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):  # ValueError: not JSON, or a number of thousands of digits
            if number > 1 and not line.endswith("\n"):
                return  # cut off while it was written: what stands before it is whole
            raise ShapelabError(f"{path}, line {number}: not JSON. Was the file cut off?") from None
        if not isinstance(value, dict):
            raise ShapelabError(f"{path}, line {number}: a JSON object was expected.")
        yield number, value

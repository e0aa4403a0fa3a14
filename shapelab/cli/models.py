"""shapelab models: the models known by name, and shapelab's cache of converted ones."""

import shutil
from typing import Annotated

import typer

from shapelab.cli import options
from shapelab.cli.output import print_json, print_table, say
from shapelab.errors import CannotWrite
from shapelab.files import cache_dir


def models(
    clear: Annotated[bool, typer.Option("--clear", help="Empty shapelab's cache of converted models.")] = False,
    json: options.Json = False,
):
    """The models known by name: size, memory needed, where each comes from, and what is already here."""
    if clear:
        freed = _clear_cache()
        if json:
            print_json({"cache": str(cache_dir()), "removed_bytes": freed})
        else:
            say(f"Removed {freed / 1e9:.2f} GB from {cache_dir()}.", whole=True)
        return
    from shapelab.classroom.table_format import Table
    from shapelab.model.catalogue import catalogue

    entries = catalogue()
    if json:
        print_json(entries)
        return
    rows = [
        (
            e["name"],
            f"{e['parameters'] / 1e6:,.0f} M",
            f"{e['weight_bytes_fp32'] / 1e9:.2f} GB",
            f"{e['weight_bytes_16_bit'] / 1e9:.2f} GB",
            "yes" if e["cached"] else "no",
        )
        for e in entries
    ]
    print_table(Table(("name", "parameters", "fp32", "16 bits", "here"), tuple(rows), title="Models by name"))
    for e in entries:
        say(f"{e['name']}: {'; '.join(filter(None, (e['about'], e['source'])))}", whole=True)
    say("")
    say("Memory needed: the weights, in the dtype loaded, and about 1 GB for everything else.")
    say("Any hub id or local folder of a decoder-only model works too, and NAME:random with random weights.")
    say(f"Cache: {cache_dir()}", whole=True)


def _clear_cache() -> int:
    """Remove what shapelab made, and nothing else: the folder may have been chosen by the user. The bytes that were freed."""
    from shapelab.model import embedded

    patterns = (f"{embedded.NAME}-{'[0-9a-f]' * 8}-r*", ".making-*")
    ours = [path for pattern in patterns for path in cache_dir().glob(pattern) if path.is_dir() and not path.is_symlink()]
    freed = sum(file.stat().st_size for path in ours for file in path.rglob("*") if file.is_file())
    try:
        for path in ours:
            shutil.rmtree(path)
    except OSError as error:
        raise CannotWrite(f"{error.filename} cannot be removed ({error.strerror}).") from error
    return freed

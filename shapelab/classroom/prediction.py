"""Predict, then look. A prediction is committed before the answer shows and kept in a small file of the learner's."""

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import ipywidgets as widgets

from shapelab.classroom.html import Card, escape
from shapelab.errors import ShapelabError
from shapelab.files import cache_dir


def choose(key: str, question: str, options: Sequence[str]) -> widgets.VBox:
    """A question with one answer to choose and a button to commit it. The key names it when it is revealed."""
    earlier = committed(key)
    choice = widgets.RadioButtons(
        options=list(options), value=earlier if earlier in options else None, layout={"width": "max-content"}
    )
    button = widgets.Button(description="Commit", button_style="info")
    said = widgets.HTML(_said(earlier))

    def on_click(_):
        if choice.value is None:
            said.value = "Choose an answer first."
            return
        commit(key, choice.value)
        said.value = _said(choice.value)

    button.on_click(on_click)
    return widgets.VBox([widgets.HTML(f"<b>{escape(question)}</b>"), choice, widgets.HBox([button, said])])


def commit(key: str, answer: str):
    """Keep a prediction. A later one for the same key takes its place."""
    kept = {**_read(), key: {"answer": answer, "at": datetime.now(UTC).isoformat(timespec="seconds")}}
    path = _path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(".new")
        half.write_text(json.dumps(kept, indent=2), encoding="utf-8")
        os.replace(half, path)
    except OSError as error:
        raise ShapelabError(
            f"The prediction cannot be kept in {path} ({error.strerror}). Set SHAPELAB_PREDICTIONS to a file that can be written."
        ) from error


def committed(key: str) -> str | None:
    """The answer committed for a key, or None."""
    entry = _read().get(key)
    return entry.get("answer") if isinstance(entry, dict) and isinstance(entry.get("answer"), str) else None


def all_committed() -> list[tuple[str, str, str]]:
    """Every committed prediction: (key, answer, when), in the order of the keys."""
    entries = [(key, committed(key), entry) for key, entry in sorted(_read().items())]
    return [(key, answer, str(entry.get("at", ""))[:10]) for key, answer, entry in entries if answer is not None]


def reveal(key: str, measured: str, lesson: str, how: str = "Measured here") -> Card:
    """What was predicted, what was measured (or computed: say `how`), and what the difference teaches."""
    predicted = committed(key)
    if predicted is None:
        first = "You committed no prediction. Next time do: a surprise needs an expectation."
    elif predicted == measured:
        first = f"You predicted {predicted}, and {predicted} it is."
    else:
        first = f"You predicted {predicted}; {how[:1].lower()}{how[1:]}: {measured}."
    text = f"{first} {how}: {measured}. {lesson}" if predicted in (None, measured) else f"{first} {lesson}"
    return Card(text, escape(text))


def _said(answer: str | None) -> str:
    return f"Committed: {escape(answer)}" if answer else "Not committed yet."


def _path() -> Path:
    return Path(os.environ.get("SHAPELAB_PREDICTIONS") or cache_dir() / "predictions.json")


def _read() -> dict:
    try:
        kept = json.loads(_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}

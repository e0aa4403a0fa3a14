"""The first cell says what runs here, and warns of too many threads."""

from importlib.metadata import version

import pytest
import torch

from shapelab.classroom import opening


def lines() -> dict[str, str]:
    return dict(line.split(": ", 1) for line in repr(opening.greet()).splitlines())


def test_greeting():
    assert list(lines())[:3] == ["machine", "model", "versions"]
    for package in ("shapelab", "torch", "transformers", "ipywidgets"):
        assert f"{package} {version(package).split('+')[0]}" in lines()["versions"]


@pytest.mark.parametrize("threads,warned", [(1, False), (10**6, True)])
def test_too_many_threads_are_named(monkeypatch, threads, warned):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert ("careful" in lines()) == warned


def test_a_name_is_shown_as_it_is(monkeypatch):
    monkeypatch.setattr(opening, "device_name", lambda _: "a <b> & $x$ [/y]")
    card = opening.greet()
    assert "a <b> & $x$ [/y]" in repr(card)
    assert "a &lt;b&gt; &amp; $x$ [/y]" in card._repr_html_() and "mathjax_ignore" in card._repr_html_()

"""The first cell says what runs here, and warns of too many threads."""

import torch

from shapelab.classroom import opening
from shapelab.computer import cpus_usable


def test_greeting(monkeypatch):
    text = repr(opening.greet())
    for word in ("machine:", "model:", "versions: shapelab", "torch", "transformers", "ipywidgets"):
        assert word in text
    assert "careful" not in text or torch.get_num_threads() > cpus_usable()
    monkeypatch.setattr(torch, "get_num_threads", lambda: 10**6)
    assert "OMP_NUM_THREADS" in repr(opening.greet())

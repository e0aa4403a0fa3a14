"""Panels to explore with. No slider runs a model: every number is computed, or predicted from a run measured before."""

from shapelab.classroom.explorers.batch import batch_explorer
from shapelab.classroom.explorers.cost import cost_explorer
from shapelab.classroom.explorers.kv import kv_explorer
from shapelab.classroom.explorers.request import request_explorer

__all__ = ["batch_explorer", "cost_explorer", "kv_explorer", "request_explorer"]

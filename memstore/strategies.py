"""How a conversation is compressed: for `conversation.update(strategies=…)` and `context(strategy=…)`.

A strategy of one's own is a frozen class with `name` and `run`, as `Strategy` says; see
docs/reference/strategies.md.
"""

from memstore.context.strategies import Semantic, SlidingWindow
from memstore.context.strategies.base import Block, ConversationView, Strategy, compress, view_of
from memstore.context.strategies.buffers import GoalBatch, Hierarchical, SummaryBuffer, Threshold, ToolCalls

__all__ = [
    "Block",
    "ConversationView",
    "GoalBatch",
    "Hierarchical",
    "Semantic",
    "SlidingWindow",
    "Strategy",
    "SummaryBuffer",
    "Threshold",
    "ToolCalls",
    "compress",
    "view_of",
]

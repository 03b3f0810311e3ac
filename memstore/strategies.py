"""How a conversation is compressed: for `conversation.update(strategies=…)` and `context(strategy=…)`.

A strategy of one's own is a frozen class with `name`, `should_run` and `run`, as `Strategy` says; see
docs/reference/strategies.md.
"""

from memstore.context.strategies.base import Block, ConversationView, Strategy, compress, view_of
from memstore.context.strategies.buffers import Hierarchical, SummaryBuffer, Threshold
from memstore.context.strategies.goals import GoalBatch
from memstore.context.strategies.tool_calls import ToolCalls
from memstore.context.strategies.windows import Semantic, SlidingWindow

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

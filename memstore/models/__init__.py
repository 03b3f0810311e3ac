"""What is stored and what is given back: messages, summaries, facts, and the shapes of hits, contexts and receipts.

The classes of stored things say their columns too; `store/tables.py` makes tables of them. Times are timezone-aware:
`occurred_at` is when something was said, `recorded_at` is when memstore learnt it.
"""

from memstore.models.contexts import Context
from memstore.models.decisions import Compression, Decision, Reason, Sent
from memstore.models.documents import LONGEST_TTL, Document, Namespace, NewDocument
from memstore.models.erasures import Certificate, ErasureScope, Remains, Scan
from memstore.models.facts import (
    FACT_KINDS,
    FACT_STATES,
    FACT_TYPES,
    HAND,
    QUARANTINED,
    Edge,
    Entity,
    Fact,
    FactChange,
    FactColumns,
    FactKind,
    FactType,
    Finding,
    Span,
    kind_of,
)
from memstore.models.recall import Hit, HitGroup, Key, Unit
from memstore.models.receipts import Receipt
from memstore.models.replays import Gone, Missing, Replay
from memstore.models.reports import (
    Backfill,
    BackfillPlan,
    BackfillStatus,
    DeadLetter,
    DeriveReport,
    DeriverPlan,
    Drift,
    EmbeddingStatus,
    Exported,
    Job,
    JobCounts,
    Moved,
    Usage,
    Wrong,
)
from memstore.models.rows import Conversation, Json, Message, Role, Summary, Tier, Time, column
from memstore.models.sections import Amount, Section
from memstore.models.statistics import LargeUser, Statistics, Timeline
from memstore.models.tokens import ApiToken

__all__ = [
    "FACT_KINDS",
    "FACT_STATES",
    "FACT_TYPES",
    "HAND",
    "LONGEST_TTL",
    "QUARANTINED",
    "Amount",
    "ApiToken",
    "Backfill",
    "BackfillPlan",
    "BackfillStatus",
    "Certificate",
    "Compression",
    "Context",
    "Conversation",
    "DeadLetter",
    "Decision",
    "DeriveReport",
    "DeriverPlan",
    "Document",
    "Drift",
    "Edge",
    "EmbeddingStatus",
    "Entity",
    "ErasureScope",
    "Exported",
    "Fact",
    "FactChange",
    "FactColumns",
    "FactKind",
    "FactType",
    "Finding",
    "Gone",
    "Hit",
    "HitGroup",
    "Job",
    "JobCounts",
    "Json",
    "Key",
    "LargeUser",
    "Message",
    "Missing",
    "Moved",
    "Namespace",
    "NewDocument",
    "Reason",
    "Receipt",
    "Remains",
    "Replay",
    "Role",
    "Scan",
    "Section",
    "Sent",
    "Span",
    "Statistics",
    "Summary",
    "Tier",
    "Time",
    "Timeline",
    "Unit",
    "Usage",
    "Wrong",
    "column",
    "kind_of",
]

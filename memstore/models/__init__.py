"""What is stored and returned: messages, summaries, facts, hits, contexts with their receipts, reports.

The classes of stored things declare their columns too: a test compares them with the tables. Times are
timezone-aware: `occurred_at` is when something was said, `recorded_at` is when memstore learnt it.
"""

from memstore.models.contexts import (
    Amount as Amount,
    Compression as Compression,
    Context as Context,
    Decision as Decision,
    MissingItem as MissingItem,
    MissingReason as MissingReason,
    Reason as Reason,
    Receipt as Receipt,
    Replay as Replay,
    Section as Section,
    Statistics as Statistics,
)
from memstore.models.facts import (
    FACT_KINDS as FACT_KINDS,
    FACT_STATES as FACT_STATES,
    FACT_TYPES as FACT_TYPES,
    HAND as HAND,
    QUARANTINED as QUARANTINED,
    Edge as Edge,
    Entity as Entity,
    Fact as Fact,
    FactChange as FactChange,
    FactColumns as FactColumns,
    FactKind as FactKind,
    FactSpan as FactSpan,
    FactType as FactType,
    KnownFact as KnownFact,
    RememberedFact as RememberedFact,
    kind_of as kind_of,
)
from memstore.models.messages import (
    LONGEST_TTL as LONGEST_TTL,
    Chunk as Chunk,
    ChunkKey as ChunkKey,
    Conversation as Conversation,
    Document as Document,
    Hit as Hit,
    Json as Json,
    Message as Message,
    Namespace as Namespace,
    NewDocument as NewDocument,
    Role as Role,
    Summary as Summary,
    Tier as Tier,
    Time as Time,
    column as column,
)
from memstore.models.reports import (
    ApiToken as ApiToken,
    Backfill as Backfill,
    BackfillPlan as BackfillPlan,
    BackfillStatus as BackfillStatus,
    Certificate as Certificate,
    DerivationProblem as DerivationProblem,
    DeriveReport as DeriveReport,
    DeriverPlan as DeriverPlan,
    EmbeddingStatus as EmbeddingStatus,
    ErasureScope as ErasureScope,
    ExportReport as ExportReport,
    InvalidResponse as InvalidResponse,
    Job as Job,
    JobCounts as JobCounts,
    MigrationReport as MigrationReport,
    ScanResult as ScanResult,
    Usage as Usage,
)

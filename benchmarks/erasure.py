"""How long it takes to erase: a user of many messages, one of their conversations, one message; and what is left then.

python benchmarks/erasure.py [--messages 100000]

The store is synthetic: rows as derivation leaves them (a unit and a vector of 384 dimensions for each message, a fact for
ten, a summary for thirty, an event for each, a receipt for a hundred), each message with a word of its own.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

import memstore
from memstore import ids
from memstore.providers import embedder_named  # type: ignore[attr-defined]

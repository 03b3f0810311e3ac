"""The tests of the OpenAI Agents SDK for its SQLite session, with memstore's in its place."""

from __future__ import annotations

import tests.memory.test_session as suite
import tests.memory.test_session_limit as limits
from openai_session import Session
from tests.memory.test_session import *  # noqa: F403
from tests.memory.test_session_limit import *  # noqa: F403

suite.SQLiteSession = limits.SQLiteSession = Session

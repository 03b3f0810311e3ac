"""The tests of the OpenAI Agents SDK for its SQLAlchemy session, with memstore's in its place."""

from __future__ import annotations

import tests.extensions.memory.test_sqlalchemy_session as suite
from openai_session import Session
from tests.extensions.memory.test_sqlalchemy_session import *  # noqa: F403

suite.SQLAlchemySession = Session

"""The OpenAI Agents SDK with a session of memstore's: every turn is shown what matters, within 2,000 tokens.

A scripted model answers, so that no key is needed; give `Agent` the name of a model in its place.
"""

import asyncio

from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message

import memstore
from memstore.adapters.openai_agents import MemstoreSession, memory_callback


async def main() -> None:
    """Tell it something in one session, ask in another."""
    model = ScriptedModel([[assistant_message("Noted.")], [assistant_message("No satay, then.")]])
    agent = Agent(name="guide", model=model)
    with memstore.open() as memory:
        alice = memory.user("alice")
        for name, said in (("monday", "I'm allergic to peanuts."), ("friday", "What should I avoid in Lisbon?")):
            session = MemstoreSession(name, alice)
            shown = RunConfig(session_input_callback=memory_callback(session, budget=2000), tracing_disabled=True)
            print((await Runner.run(agent, said, session=session, run_config=shown)).final_output)
            memory.derive()
        print([fact.text for fact in alice.facts()])


asyncio.run(main())

"""A graph that reads what it knows of a user from LangGraph's store and keeps what it learns there: memstore's."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore

import memstore
from memstore.adapters.langgraph import MemstoreStore


class State(TypedDict):
    """A question, what was remembered for it, and the answer."""

    user: str
    question: str
    known: list[str]
    answer: str


def remember(state: State, *, store: BaseStore) -> dict[str, list[str]]:
    """Find what is known that answers to the question."""
    found = store.search(("memories", state["user"]), query=state["question"], limit=3)
    return {"known": [item.value["text"] for item in found]}


def answer(state: State) -> dict[str, str]:
    """Say what a model would be told; put yours here."""
    return {"answer": "I remember: " + "; ".join(state["known"])}


graph = StateGraph(State)
graph.add_node("remember", remember)
graph.add_node("answer", answer)
graph.add_edge(START, "remember")
graph.add_edge("remember", "answer")
graph.add_edge("answer", END)

with memstore.open() as memory:
    store = MemstoreStore(memory, user=lambda namespace: namespace[1])
    store.put(("memories", "alice"), "nuts", {"text": "Alice is allergic to peanuts."})
    store.put(("memories", "alice"), "trip", {"text": "Alice flies to Lisbon on Friday."})
    agent = graph.compile(store=store)
    print(agent.invoke({"user": "alice", "question": "What may she eat?"})["answer"])

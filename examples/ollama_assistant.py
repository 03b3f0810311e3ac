"""An assistant over Ollama that remembers between its runs: `python ollama_assistant.py "I'm allergic to peanuts."`"""

import os
import sys

import ollama

import memstore

MODEL = os.environ.get("MODEL", "qwen3:4b-instruct")
WINDOW, ANSWER = 4096, 800  # tokens

with memstore.open() as store:
    talk = store.user(os.environ.get("USER", "me")).conversation("example")
    talk.add("user", " ".join(sys.argv[1:]) or "What do you know about me?")
    context = talk.context(budget=WINDOW, reserve=ANSWER, model=f"ollama:{MODEL}", format="ollama")
    options = {"num_ctx": WINDOW, "num_predict": ANSWER}
    answer = ollama.chat(model=MODEL, messages=context.messages, options=options).message.content
    print(answer)
    talk.add("assistant", answer)
    store.derive()

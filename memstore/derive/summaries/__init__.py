"""Messages → stretches → a nest of summaries: sentences chosen, or written by a chat model."""

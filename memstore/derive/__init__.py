"""Messages become chunks with embeddings, summaries and facts; erasing derives anew what depended on what went."""

"""The public client: the store, a user, a conversation. The only package that wires all others together.

`store` opens and closes; `user` (with `user_facts`) and `conversation` are scopes that hold no state but names;
`documents` are a user's own values; `admin` is for operators; `worker` runs derivation as a program. `runtime` has the
database and the providers. Async is the source; the blocking twin in `memstore/_sync` is
generated.
"""

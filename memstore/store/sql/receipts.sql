-- lazily --
-- A receipt may be lost with the last half second before a crash; a context does not wait for the disk. No user_id here.
SET LOCAL synchronous_commit = off

-- add_receipt --
-- The record of one assembly.
INSERT INTO receipts (user_id, id, conversation_id, budget, tokens, body)
VALUES (%(user_id)s, %(id)s, %(conversation_id)s, %(budget)s, %(tokens)s, %(body)s)

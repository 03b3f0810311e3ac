-- add_receipt --
-- The record of one assembly.
INSERT INTO receipts (user_id, id, conversation_id, budget, tokens, body)
VALUES (%(user_id)s, %(id)s, %(conversation_id)s, %(budget)s, %(tokens)s, %(body)s)

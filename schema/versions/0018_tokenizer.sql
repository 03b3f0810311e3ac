-- version --
-- Chunks of before have terms by the first tokenizer, until a derivation makes them anew.
ALTER TABLE users ADD COLUMN tokenizer smallint NOT NULL DEFAULT 1

-- of_new_users --
ALTER TABLE users ALTER COLUMN tokenizer SET DEFAULT 2

-- rights --
GRANT UPDATE (terms, frequencies, length) ON item_text TO memstore_app

-- What a vector of a document is of, where that is not all of its value: null there, and in rows that are older.

alter table document_vectors add column text text;

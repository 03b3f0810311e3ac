-- An edit is in the history of the fact that it made too.
create index fact_changes_by_other on fact_changes (user_id, other_id) where other_id is not null;

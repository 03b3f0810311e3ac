-- How long calls of chat models took, so that a plan can tell how long those of a backfill will take.

alter table model_usage add column seconds double precision not null default 0;

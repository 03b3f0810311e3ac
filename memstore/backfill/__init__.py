"""A backfill derives a long history under a plan.

`plan` counts what is pending and estimates what it costs; `control` begins, pauses, resumes, cancels and verifies
backfills; `token_cap` keeps the calls of chat models within a backfill's cap. Workers do the work (`ingest.worker`).
"""

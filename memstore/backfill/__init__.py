"""A backfill derives a long history under a plan.

`plan` counts what is pending and estimates what it costs; `control` begins, pauses, resumes, cancels and verifies
backfills; Workers do the work, and keep the calls of chat models within its cap (`derive.worker`).
"""

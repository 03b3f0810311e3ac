-- Quarantine: facts that somebody says who is not believed alone wait, unrecalled, until they are confirmed.

alter table facts drop constraint facts_state_check;
alter table facts add constraint facts_state_check
    check (state in ('active', 'quarantined', 'superseded', 'retracted', 'erased'));

alter table fact_changes drop constraint fact_changes_action_check;
alter table fact_changes add constraint fact_changes_action_check
    check (action in ('superseded', 'retracted', 'edited', 'restored', 'conflicted', 'resolved', 'confirmed', 'quarantined'));

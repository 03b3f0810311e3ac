-- Types of facts that nothing gives any more: what somebody likes to do is a preference, what they are good or bad at is told as it was said.

update facts set type = 'preference' where type = 'interest';
update facts set type = 'statement' where type in ('strength', 'weakness');

-- The setting message_retention_days of users and conversations is called message_retention_days.

update users set settings = settings - 'message_retention_days' || jsonb_build_object('message_retention_days', settings->'message_retention_days')
where settings ? 'message_retention_days';
update conversations set settings = settings - 'message_retention_days' || jsonb_build_object('message_retention_days', settings->'message_retention_days')
where settings ? 'message_retention_days';

-- The setting messages_days of users and conversations is called message_retention_days.

update users set settings = settings - 'messages_days' || jsonb_build_object('message_retention_days', settings->'messages_days')
where settings ? 'messages_days';
update conversations set settings = settings - 'messages_days' || jsonb_build_object('message_retention_days', settings->'messages_days')
where settings ? 'messages_days';

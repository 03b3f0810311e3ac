-- of_space --
-- The grants of a space.
SELECT space_name AS space, member_name AS member, access, granted_at FROM grants
WHERE user_id = %(user_id)s AND ended_at IS NULL
ORDER BY member_name, member_id

-- access_of --
-- What a member may do in a space; no row without a grant.
SELECT access FROM grants WHERE user_id = %(user_id)s AND member_id = %(member_id)s AND ended_at IS NULL

-- of_member --
-- The grants of a member.
SELECT space_name AS space, member_name AS member, access, granted_at FROM grants
WHERE member_id = %(user_id)s AND ended_at IS NULL
ORDER BY space_name, user_id

-- lock --
-- The grants of a space, those that have ended too; nobody changes them until the transaction ends.
SELECT member_id, access, ended_at IS NULL AS holds FROM grants WHERE user_id = %(user_id)s ORDER BY member_id FOR UPDATE

-- grant --
-- Gives a member access, or another access.
INSERT INTO grants (user_id, member_id, space_name, member_name, access)
VALUES (%(user_id)s, %(member_id)s, %(space_name)s, %(member_name)s, %(access)s)
ON CONFLICT (user_id, member_id) DO UPDATE
SET access = excluded.access, ended_at = NULL,
    granted_at = CASE WHEN grants.ended_at IS NULL THEN grants.granted_at ELSE excluded.granted_at END

-- end --
-- Takes a grant away.
UPDATE grants SET ended_at = now() WHERE user_id = %(user_id)s AND member_id = %(member_id)s AND ended_at IS NULL

-- remove_space --
-- The grants of a space that is erased.
DELETE FROM grants WHERE user_id = %(user_id)s

-- spaces_of --
-- Every space that a member has ever been granted.
SELECT user_id, space_name FROM grants WHERE member_id = %(user_id)s ORDER BY user_id

-- forget_member --
-- A member who is erased.
DELETE FROM grants WHERE user_id = %(user_id)s AND member_id = %(member_id)s

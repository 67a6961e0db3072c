//! Reads, in SQL, the rights that custom roles and groups give a user.

/// The column `custom_rights` of the user `u`: the rights of their custom roles and of those of their groups,
/// separated by spaces; null if they have none.
macro_rules! custom_rights {
    () => {
        "(SELECT string_agg(r.rights, ' ') FROM custom_roles r WHERE r.tenant = u.tenant \
         AND r.id IN (SELECT h.role_id FROM role_holders h WHERE h.tenant = u.tenant \
         AND h.user_id = u.id UNION SELECT g.role_id FROM group_members m JOIN group_roles g \
         ON g.tenant = m.tenant AND g.group_id = m.group_id WHERE m.tenant = u.tenant \
         AND m.user_id = u.id)) AS custom_rights"
    };
}
pub(super) use custom_rights;

/// A condition: a custom role gives the user `u` a right, for themselves or by a group.
macro_rules! has_right {
    ($right:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM custom_roles r WHERE r.tenant = u.tenant \
             AND ' ' || r.rights || ' ' LIKE '% ",
            $right,
            " %' AND (EXISTS (SELECT 1 FROM role_holders h WHERE h.tenant = r.tenant \
             AND h.role_id = r.id AND h.user_id = u.id) \
             OR EXISTS (SELECT 1 FROM group_members m JOIN group_roles g ON g.tenant = m.tenant \
             AND g.group_id = m.group_id WHERE m.tenant = r.tenant AND g.role_id = r.id \
             AND m.user_id = u.id)))"
        )
    };
}
pub(super) use has_right;

//! Decides which models and servers are open to a person, and whose groups' rules hold for them.

use std::collections::{BTreeMap, BTreeSet};

use super::UserId;

/// The kind of a thing that groups name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKind {
    /// A model as `provider/model`, or all models of a provider.
    Model,
    /// An MCP server of the tenant or the installation.
    Server,
}

impl AccessKind {
    /// Every kind.
    pub const ALL: [Self; 2] = [Self::Model, Self::Server];

    /// The name on the wire and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Server => "server",
        }
    }

    /// Parses the form that [`Self::as_str`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A thing that somebody wants to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Used<'a> {
    /// A model of a provider.
    Model { provider: &'a str, model: &'a str },
    /// An MCP server.
    Server(&'a str),
}

/// A group that names something or has a rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownGroup {
    pub name: String,
    pub members: BTreeSet<UserId>,
}

/// The models and servers that groups of a tenant keep for their members.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupAccess {
    /// The groups that matter, by id.
    groups: BTreeMap<String, KnownGroup>,
    /// The ids of the groups that name a thing.
    named: BTreeMap<(AccessKind, String), BTreeSet<String>>,
}

impl GroupAccess {
    /// Collects what groups name. `named` has the id of a group with a thing that it names.
    pub fn new(
        groups: BTreeMap<String, KnownGroup>,
        named: impl IntoIterator<Item = (String, AccessKind, String)>,
    ) -> Self {
        let mut all: BTreeMap<(AccessKind, String), BTreeSet<String>> = BTreeMap::new();
        for (group, kind, name) in named {
            all.entry((kind, name)).or_default().insert(group);
        }
        Self { groups, named: all }
    }

    /// Returns true if a person may use something: no group names it, or the person is in a group that does.
    /// The one place that decides this. Who manages models and servers does not matter.
    pub fn may_use(&self, user: &UserId, what: Used<'_>) -> bool {
        let mut naming = self.naming(what).peekable();
        naming.peek().is_none() || naming.any(|group| self.is_member(group, user))
    }

    /// Returns true if at least one model of a provider may be open to a person.
    pub fn may_see_provider(&self, user: &UserId, provider: &str) -> bool {
        let Some(whole) = self.groups_of(AccessKind::Model, provider) else {
            return true;
        };
        let of_models = self.named.iter().filter(|((kind, name), _)| {
            let rest = name.strip_prefix(provider);
            *kind == AccessKind::Model && rest.is_some_and(|rest| rest.starts_with('/'))
        });
        let mut naming = whole
            .iter()
            .chain(of_models.flat_map(|(_, groups)| groups.iter()));
        naming.any(|group| self.is_member(group, user))
    }

    /// The servers that groups name and that are not open to a person.
    pub fn closed_servers(&self, user: &UserId) -> BTreeSet<String> {
        let servers = self.named.keys();
        let servers = servers.filter(|(kind, _)| *kind == AccessKind::Server);
        let closed = servers.filter(|(_, name)| !self.may_use(user, Used::Server(name)));
        closed.map(|(_, name)| name.clone()).collect()
    }

    /// The ids of the groups with rules or names in which a person is.
    pub fn of_person<'a>(&'a self, user: &UserId) -> impl Iterator<Item = &'a str> {
        let groups = self.groups.iter();
        let theirs = groups.filter(|(_, group)| group.members.contains(user));
        theirs.map(|(id, _)| id.as_str())
    }

    /// Everybody who is in one of these groups.
    pub fn people(&self) -> BTreeSet<&UserId> {
        let groups = self.groups.values();
        groups.flat_map(|group| &group.members).collect()
    }

    /// The name of a group.
    pub fn name_of(&self, group: &str) -> Option<&str> {
        self.groups.get(group).map(|group| group.name.as_str())
    }

    /// The id and the name of each group that names exactly this thing.
    pub fn that_name(&self, kind: AccessKind, name: &str) -> Vec<(&str, &str)> {
        let ids = self.groups_of(kind, name).into_iter().flatten();
        ids.map(|id| (id.as_str(), self.name_of(id).unwrap_or_default()))
            .collect()
    }

    /// Returns true if no group names anything of a kind.
    pub fn is_open(&self, kind: AccessKind) -> bool {
        !self.named.keys().any(|(named, _)| *named == kind)
    }

    fn is_member(&self, group: &str, user: &UserId) -> bool {
        let group = self.groups.get(group);
        group.is_some_and(|group| group.members.contains(user))
    }

    fn groups_of(&self, kind: AccessKind, name: &str) -> Option<&BTreeSet<String>> {
        self.named.get(&(kind, name.to_owned()))
    }

    /// The groups that name a thing, a model also by its provider.
    fn naming<'a>(&'a self, what: Used<'_>) -> impl Iterator<Item = &'a str> + use<'a> {
        let (whole, single) = match what {
            Used::Server(name) => (self.groups_of(AccessKind::Server, name), None),
            Used::Model { provider, model } => (
                self.groups_of(AccessKind::Model, provider),
                self.groups_of(AccessKind::Model, &format!("{provider}/{model}")),
            ),
        };
        let both = whole.into_iter().chain(single);
        both.flat_map(|groups| groups.iter().map(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{AccessKind, GroupAccess, KnownGroup, Used};
    use crate::domain::UserId;

    fn user(bits: u128) -> UserId {
        UserId::from_bits(bits)
    }

    fn access() -> GroupAccess {
        let group = |name: &str, members: &[u128]| KnownGroup {
            name: name.to_owned(),
            members: members.iter().map(|bits| user(*bits)).collect(),
        };
        let groups = BTreeMap::from([
            ("g1".to_owned(), group("Finance", &[1])),
            ("g2".to_owned(), group("Research", &[2, 3])),
            ("g3".to_owned(), group("Empty", &[])),
        ]);
        let named = [
            ("g1", AccessKind::Server, "ledger"),
            ("g2", AccessKind::Server, "ledger"),
            ("g3", AccessKind::Server, "vault"),
            ("g1", AccessKind::Model, "acme"),
            ("g2", AccessKind::Model, "acme/large"),
            ("g2", AccessKind::Model, "open/new/one"),
        ];
        let named = named.map(|(group, kind, name)| (group.to_owned(), kind, name.to_owned()));
        GroupAccess::new(groups, named)
    }

    #[test]
    fn what_a_group_names_is_open_to_its_members_alone() {
        let access = access();
        let model = |provider, model| Used::Model { provider, model };
        for (what, those_who_may) in [
            (Used::Server("ledger"), &[1, 2, 3][..]),
            (Used::Server("vault"), &[]),
            (Used::Server("weather"), &[1, 2, 3, 4]),
            (model("acme", "small"), &[1]),
            (model("acme", "large"), &[1, 2, 3]),
            (model("open", "old"), &[1, 2, 3, 4]),
            (model("open", "new/one"), &[2, 3]),
            (model("acme2", "large"), &[1, 2, 3, 4]),
        ] {
            for bits in 1..=4 {
                let may = those_who_may.contains(&bits);
                assert_eq!(access.may_use(&user(bits), what), may, "{what:?} {bits}");
            }
        }
        let nobody = GroupAccess::default();
        assert!(nobody.may_use(&user(1), Used::Server("ledger")));
        assert!(nobody.is_open(AccessKind::Model));
    }

    #[test]
    fn a_provider_is_seen_by_those_who_may_use_one_of_its_models() {
        let access = access();
        let sees = |provider| {
            let all = (1..=4).filter(|bits| access.may_see_provider(&user(*bits), provider));
            all.collect::<Vec<_>>()
        };
        assert_eq!(sees("acme"), [1, 2, 3]);
        assert_eq!(sees("open"), [1, 2, 3, 4]);
        let closed: Vec<_> = access.closed_servers(&user(1)).into_iter().collect();
        assert_eq!(closed, ["vault"]);
        let closed: Vec<_> = access.closed_servers(&user(4)).into_iter().collect();
        assert_eq!(closed, ["ledger", "vault"]);
    }

    #[test]
    fn the_groups_of_a_person_and_of_a_thing_are_known_by_name() {
        let access = access();
        assert_eq!(access.of_person(&user(3)).collect::<Vec<_>>(), ["g2"]);
        assert_eq!(
            access.that_name(AccessKind::Server, "ledger"),
            [("g1", "Finance"), ("g2", "Research")]
        );
        assert!(access.that_name(AccessKind::Server, "weather").is_empty());
        assert_eq!(access.people().len(), 3);
    }
}

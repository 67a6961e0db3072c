//! Limits how many containers or volumes of ours exist at once, whoever creates them.
//!
//! The engine's own list counts, so nothing is forgotten when the proxy restarts. The list is requested only
//! if there might be too many: in between, admitted objects are added up, and removed ones are not noticed
//! until the next list.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::refusal::Refusal;

/// The limit on one kind of object.
#[derive(Debug)]
pub(crate) struct Quota {
    kind: &'static str,
    /// The option that sets the limit.
    setting: &'static str,
    limit: usize,
    /// An upper bound of those that exist or are being created; `None` before the first list. Locked during
    /// the request for the list, so that nobody is admitted meanwhile.
    most: tokio::sync::Mutex<Option<usize>>,
    /// The names that are being created. Never held across an await.
    making: Mutex<BTreeMap<String, usize>>,
}

/// The permission to create something; dropping it means that the engine has answered.
#[derive(Debug)]
#[must_use]
pub(crate) struct Place {
    quota: Arc<Quota>,
    name: String,
}

impl Quota {
    pub(crate) fn new(kind: &'static str, setting: &'static str, limit: usize) -> Arc<Self> {
        Arc::new(Self {
            kind,
            setting,
            limit,
            most: tokio::sync::Mutex::default(),
            making: Mutex::default(),
        })
    }

    /// Returns a place for `name`, unless all are taken. `list` yields the names of existing objects; it is
    /// awaited only if they have to be known.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        name: &str,
        list: impl Future<Output = Result<BTreeSet<String>, Refusal>>,
    ) -> Result<Place, Refusal> {
        let mut most = self.most.lock().await;
        if let Some(known) = most.filter(|known| *known < self.limit) {
            *most = Some(known + 1);
            return Ok(self.place(name));
        }
        // Read before the list is requested: whatever is created by then is in the list.
        let mut names: BTreeSet<String> = self.making().keys().cloned().collect();
        names.extend(list.await?);
        // The engine itself refuses a second object of that name, with an error that Sepal understands.
        let is_new = names.insert(name.to_owned());
        let wanted = names.len();
        if is_new && wanted > self.limit {
            *most = Some(wanted - 1);
            return Err(Refusal::Full {
                kind: self.kind,
                limit: self.limit,
                setting: self.setting,
            });
        }
        *most = Some(wanted);
        Ok(self.place(name))
    }

    fn place(self: &Arc<Self>, name: &str) -> Place {
        *self.making().entry(name.to_owned()).or_default() += 1;
        Place {
            quota: Arc::clone(self),
            name: name.to_owned(),
        }
    }

    fn making(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut making = self.quota.making();
        if let Some(count) = making.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                making.remove(&self.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Ready, poll_fn, ready};

    use super::*;

    type ListResult = Result<BTreeSet<String>, Refusal>;

    fn quota() -> Arc<Quota> {
        Quota::new("containers", "--max-containers", 3)
    }

    /// An engine that has these.
    fn has(names: &[&str]) -> Ready<ListResult> {
        ready(Ok(names.iter().map(|name| (*name).to_owned()).collect()))
    }

    /// An engine that must not be asked.
    fn unasked() -> impl Future<Output = ListResult> {
        poll_fn(|_| panic!("it is known without asking"))
    }

    #[tokio::test]
    async fn what_an_earlier_life_made_counts_and_what_is_gone_does_not() {
        let quota = quota();
        drop(quota.admit("c", has(&["a", "b"])).await.unwrap());
        let refused = quota.admit("d", has(&["a", "b", "c"])).await.unwrap_err();
        assert_eq!(refused.status(), 429);
        assert!(
            refused.to_string().contains("`--max-containers`"),
            "{refused}"
        );
        drop(quota.admit("d", has(&["a", "c"])).await.unwrap());
        let refused = quota.admit("e", has(&["a", "c", "d"])).await;
        assert!(refused.is_err());
    }

    #[tokio::test]
    async fn the_engine_is_asked_only_where_there_might_be_too_many() {
        let quota = quota();
        drop(quota.admit("a", has(&[])).await.unwrap());
        drop(quota.admit("b", unasked()).await.unwrap());
        drop(quota.admit("c", unasked()).await.unwrap());
        // Three were created, and all but one are removed again.
        drop(quota.admit("d", has(&["c"])).await.unwrap());
        drop(quota.admit("e", unasked()).await.unwrap());
        assert!(quota.admit("f", has(&["c", "d", "e"])).await.is_err());
    }

    #[tokio::test]
    async fn what_is_being_made_counts_once_whether_it_is_listed_or_not() {
        let quota = quota();
        let places = [
            quota.admit("a", has(&[])).await.unwrap(),
            quota.admit("b", unasked()).await.unwrap(),
            quota.admit("c", unasked()).await.unwrap(),
        ];
        assert!(quota.admit("d", has(&[])).await.is_err(), "none is ready");
        assert!(quota.admit("d", has(&["a", "b"])).await.is_err());
        drop(places);
        drop(quota.admit("d", has(&["a", "b"])).await.unwrap());
    }

    #[tokio::test]
    async fn a_name_that_exists_is_the_engines_to_refuse() {
        let quota = quota();
        let listed = ["a", "b", "c"];
        drop(quota.admit("b", has(&listed)).await.unwrap());
        assert!(quota.admit("d", has(&listed)).await.is_err());
    }

    #[tokio::test]
    async fn while_the_engine_does_not_tell_nothing_is_admitted() {
        let quota = quota();
        let away = ready(Err(Refusal::Odd("nothing".to_owned())));
        assert!(quota.admit("a", away).await.is_err());
        drop(quota.admit("a", has(&["b", "c"])).await.unwrap());
        assert!(quota.admit("d", has(&["a", "b", "c"])).await.is_err());
    }
}

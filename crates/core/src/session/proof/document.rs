//! Collects the decisions of a session in one document, which proves them without the journal. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::record::DecisionRecord;
use super::verify::{BrokenCommit, Verifier};
use crate::domain::{Digest, SessionId, SessionKey, TenantId, Timestamp};
use crate::session::event::Event;

/// The name of the form.
const FORMAT: &str = "sepal-decisions-1";

/// The decisions of a session, with the chain that binds them to its journal (docs/audit.md).
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionDocument {
    format: &'static str,
    tenant: TenantId,
    session: SessionId,
    /// The version of the last commit.
    through: u64,
    commits: Vec<DocumentCommit>,
    /// The link of the last commit.
    head: Option<Digest>,
    /// The arguments that the records name by their hash; `None` = they are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<BTreeMap<Digest, Value>>,
    #[serde(skip)]
    verifier: Verifier,
}

/// A commit of the session, without its content.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct DocumentCommit {
    version: u64,
    at: Timestamp,
    content: Digest,
    /// `None` if an earlier release wrote the commit, which bound no records.
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<Vec<DecisionRecord>>,
    link: Digest,
}

/// The document without its signature.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Statement<'a> {
    #[serde(flatten)]
    document: &'a DecisionDocument,
    key: &'a str,
    signed_at: Timestamp,
}

impl DecisionDocument {
    /// Begins the document of a session, with or without the arguments of its calls.
    pub fn new(key: &SessionKey, has_arguments: bool) -> Self {
        Self {
            format: FORMAT,
            tenant: key.tenant.clone(),
            session: key.session.clone(),
            through: 0,
            commits: Vec::new(),
            head: None,
            arguments: has_arguments.then(BTreeMap::new),
            verifier: Verifier::default(),
        }
    }

    /// Verifies and adds the next stored commit.
    pub fn take(&mut self, body: &[u8]) -> Result<(), BrokenCommit> {
        let verified = self.verifier.take(body)?;
        if let Some(known) = &mut self.arguments {
            for arguments in verified.commit.events.iter().flat_map(arguments_of) {
                let hash = Digest::of_json(arguments);
                known.entry(hash).or_insert_with(|| arguments.clone());
            }
        }
        self.through = verified.commit.version;
        self.head = Some(verified.link.clone());
        self.commits.push(DocumentCommit {
            version: verified.commit.version,
            at: verified.commit.at,
            content: verified.content,
            records: verified.records,
            link: verified.link,
        });
        Ok(())
    }

    /// The version of the last commit; 0 = none.
    pub fn through(&self) -> u64 {
        self.through
    }

    /// Writes the document, with the signature that `sign` makes over its canonical JSON (RFC 8785) by the
    /// private half of `key`.
    pub fn signed(
        mut self,
        (key, signed_at): (&str, Timestamp),
        sign: impl FnOnce(&Value) -> String,
    ) -> Result<Vec<u8>, serde_json::Error> {
        let records = self.commits.iter().flat_map(|commit| &commit.records);
        let named = records.flatten().flat_map(DecisionRecord::arguments);
        let named: BTreeSet<Digest> = named.cloned().collect();
        if let Some(arguments) = &mut self.arguments {
            arguments.retain(|hash, _| named.contains(hash));
        }
        let statement = Statement {
            document: &self,
            key,
            signed_at,
        };
        let mut document = serde_json::to_value(&statement)?;
        let signature = sign(&document);
        if let Value::Object(members) = &mut document {
            members.insert("signature".to_owned(), signature.into());
        }
        serde_json_canonicalizer::to_vec(&document)
    }
}

/// The arguments that an event brings.
fn arguments_of(event: &Event) -> Vec<&Value> {
    if let Event::Queued { calls } = event {
        calls.iter().map(|call| &call.args).collect()
    } else if let Event::ViewCalled { call, .. } = event {
        vec![&call.args]
    } else if let Event::Consented { edited, .. } | Event::Decided { edited, .. } = event {
        edited.iter().map(|edited| &edited.args).collect()
    } else {
        Vec::new()
    }
}

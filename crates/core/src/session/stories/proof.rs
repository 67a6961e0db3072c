//! Tests that a journal proves itself: any change of a stored commit, and any lost, repeated or moved one, is
//! found and named.

use serde_json::{Value, json};

use crate::domain::Digest;
use crate::session::proof::{
    BrokenCommit, Chain, Defect, LinkedCommit, Verifier, link_after, link_of_stored, verify,
};
use crate::session::properties::world::{
    World, approve, digests, policy, proposal, reject, rule, say,
};
use crate::session::{Command, Control, Decision, Edit, Outcome, PolicyEffect};

/// A session with an edited, a rejected, a rule-approved and an unknown call.
fn story() -> World {
    let mut world = World::new();
    world.rules.policy = policy(vec![
        rule("reads", "read_*", PolicyEffect::Allow),
        rule("careful", "write_a", PolicyEffect::Ask),
    ]);
    world.submit(&say("go")).unwrap();
    let calls = ["write_a", "write_b", "read_a", "write_c"]
        .map(|tool| proposal(tool, json!({"path": tool, "size": 1.5, "name": "é\n"})));
    world.answer("I will", calls.to_vec());
    let calls = world.queue();
    let args = json!({"path": "elsewhere"});
    let (digest, equal) = digests("write_a", &args);
    let shown = world
        .state
        .control
        .call(&calls[0])
        .unwrap()
        .digest()
        .cloned();
    world
        .submit(&Command::Decide(Decision {
            call: calls[0].clone(),
            approved: true,
            take_back: false,
            reason: Some("safer".into()),
            edit: Some(Edit {
                args,
                unedited: shown.clone(),
                digest,
                equal,
                invalid: None,
            }),
            dry_run: None,
            digest: shown,
            by: World::person(),
            role: None,
        }))
        .unwrap();
    world.submit(&reject(&calls[1], Some("not there"))).unwrap();
    world.submit(&approve(&calls[3])).unwrap();
    world.finish(&calls[0]);
    world.finish(&calls[2]);
    world.end(&calls[3], Outcome::Unknown { cause: None });
    world.answer("done", vec![]);
    world
}

fn stored(world: &World) -> Vec<Vec<u8>> {
    let mut chain = Chain::default();
    let bodies = world.journal.iter();
    bodies.map(|commit| chain.append(commit).unwrap()).collect()
}

fn verified(bodies: &[Vec<u8>]) -> Result<Option<Digest>, BrokenCommit> {
    verify(bodies.iter().map(Vec::as_slice))
}

fn broken(bodies: &[Vec<u8>]) -> (u64, Defect) {
    let BrokenCommit { version, defect } = verified(bodies).unwrap_err();
    (version, defect)
}

fn all_records(bodies: &[Vec<u8>]) -> Vec<Value> {
    let mut verifier = Verifier::default();
    let commits = bodies.iter().map(|body| verifier.take(body).unwrap());
    let records = commits.flat_map(|commit| commit.records.unwrap());
    records
        .map(|record| serde_json::to_value(record).unwrap())
        .collect()
}

#[test]
fn a_link_is_the_hash_of_content_records_and_the_link_before() {
    let bodies = stored(&story());
    let mut prev = Digest::ZERO.to_owned();
    for (commit, body) in story().journal.iter().zip(&bodies) {
        let stored = link_of_stored(body).unwrap();
        let content = Digest::of_bytes(&commit.to_bytes().unwrap());
        assert_eq!(
            (stored.version, &stored.content),
            (commit.version, &content)
        );
        let form = json!({
            "at": commit.at.0,
            "content": content,
            "prev": prev,
            "records": stored.records.clone().unwrap(),
            "version": commit.version,
        });
        let link = stored.link.unwrap();
        assert_eq!(link, Digest::of_json(&form));
        prev = link.as_str().to_owned();
    }
    assert_eq!(verified(&bodies).unwrap().unwrap().as_str(), prev);
}

#[test]
fn every_changed_byte_names_its_commit() {
    let bodies = stored(&story());
    let mut verifier = Verifier::default();
    for (version, body) in (1..).zip(&bodies) {
        let mut changed = body.clone();
        for place in 0..body.len() {
            for mask in [0x01, 0x20, 0x80] {
                changed[place] ^= mask;
                let found = verifier.clone().take(&changed);
                assert_eq!(
                    found.map_err(|broken| broken.version),
                    Err(version),
                    "byte {place} with {mask:#x}"
                );
                changed[place] ^= mask;
            }
        }
        verifier.take(body).unwrap();
    }
}

#[test]
fn a_dropped_a_doubled_and_a_moved_commit_are_found() {
    let bodies = stored(&story());
    let all = bodies.len();
    assert!(all > 8, "{all}");
    for place in 0..all {
        let version = place as u64 + 1;
        let mut doubled = bodies.clone();
        doubled.insert(place, bodies[place].clone());
        assert_eq!(broken(&doubled), (version + 1, Defect::Doubled));
        // Without its last commits, a journal is one that ended earlier. Only a seal tells.
        if place + 1 == all {
            continue;
        }
        let mut dropped = bodies.clone();
        dropped.remove(place);
        let missing = Defect::Missing { found: version + 1 };
        assert_eq!(broken(&dropped), (version, missing.clone()));
        let mut moved = bodies.clone();
        moved.swap(place, place + 1);
        assert_eq!(broken(&moved), (version, missing));
        if place > 1 {
            let mut repeated = bodies.clone();
            repeated[place] = bodies[place - 2].clone();
            let moved = Defect::Moved { found: version - 2 };
            assert_eq!(broken(&repeated), (version, moved));
        }
    }
}

/// Somebody who knows the form can write a commit anew, with a fitting link. The next commit tells.
#[test]
fn a_commit_that_is_written_anew_breaks_the_next_one() {
    let mut world = story();
    let bodies = stored(&world);
    let place = world.journal.len() / 2;
    world.journal[place].at.0 += 1;
    let mut forged = stored(&world);
    assert_ne!(forged[place], bodies[place]);
    assert!(
        verified(&forged).is_ok(),
        "all later ones written anew, too"
    );
    forged.truncate(place + 1);
    forged.extend_from_slice(&bodies[place + 1..]);
    assert_eq!(broken(&forged), (place as u64 + 2, Defect::Changed));
}

#[test]
fn records_that_do_not_follow_from_the_events_are_found() {
    let bodies = stored(&story());
    let mut verifier = Verifier::default();
    let mut prev = None;
    for body in &bodies {
        let mut other = link_of_stored(body).unwrap();
        other.records = Some(Digest::of_bytes(b"others"));
        let link = other.link_after(prev.as_ref());
        let known = link_of_stored(body).unwrap();
        let text = String::from_utf8(body.clone()).unwrap();
        let text = text
            .replace(known.link.clone().unwrap().as_str(), link.as_str())
            .replacen(
                known.records.unwrap().as_str(),
                other.records.unwrap().as_str(),
                1,
            );
        let found = verifier.clone().take(text.as_bytes()).unwrap_err();
        assert_eq!(found.defect, Defect::OtherRecords);
        verifier.take(body).unwrap();
        prev = known.link;
    }
}

/// Journals of earlier releases have no links. The first commit with one binds all before it.
#[test]
fn the_first_link_binds_the_commits_of_earlier_releases() {
    let world = story();
    let old = 4;
    let mut bodies: Vec<Vec<u8>> = Vec::new();
    let mut link = None;
    for commit in &world.journal[..old] {
        let body = commit.to_bytes().unwrap();
        link = Some(link_after(&body, link.as_ref()).unwrap());
        bodies.push(body);
    }
    let mut control = Control::default();
    for commit in &world.journal {
        if commit.version > old as u64 {
            let linked = LinkedCommit::new(&control, link.as_ref(), commit).unwrap();
            bodies.push(linked.body);
            link = Some(linked.link);
        }
        control.apply(commit);
    }
    assert_eq!(verified(&bodies).unwrap(), link);
    let first = Verifier::default().take(&bodies[0]).unwrap();
    assert_eq!(first.records, None);
    for place in 0..old {
        let mut changed = bodies.clone();
        let last = changed[place].len() - 3;
        changed[place][last] ^= 1;
        let (version, _) = broken(&changed);
        assert!(version <= old as u64 + 1, "{version}");
    }
}

#[test]
fn the_records_tell_who_asked_decided_changed_and_ran_what() {
    let world = story();
    let records = all_records(&stored(&world));
    let acts: Vec<&str> = records
        .iter()
        .map(|record| record["act"].as_str().unwrap())
        .collect();
    assert_eq!(&acts[..2], ["session.created", "message.sent"]);
    let decided: Vec<&Value> = records
        .iter()
        .filter(|record| record["act"] == "call.decided")
        .collect();
    let [by_rule, edited, rejected, approved] = decided[..] else {
        panic!("{decided:?}");
    };
    assert_eq!(by_rule["by"]["kind"], "rule");
    assert_eq!(by_rule["by"]["name"], "reads");
    assert_eq!(by_rule["card"], Value::Null, "nobody was shown a card");
    let hash = |args: Value| json!(Digest::of_json(&args));
    let after = hash(json!({"path": "elsewhere"}));
    assert_eq!(edited["edit"]["after"], after);
    assert_eq!(edited["call"]["arguments"], after);
    let before = hash(json!({"path": "write_a", "size": 1.5, "name": "é\n"}));
    assert_eq!(edited["edit"]["before"], before);
    assert_eq!(edited["edit"]["by"]["name"], "Ana");
    assert_eq!(edited["by"]["kind"], "person");
    let asked = records
        .iter()
        .find(|record| record["act"] == "call.asked")
        .unwrap();
    assert_eq!(asked["requirement"]["approvers"], json!(["owner"]));
    assert_eq!(asked["card"], edited["card"], "the card as it was asked");
    assert_eq!(asked["rule"], json!({"id": "careful", "name": "careful"}));
    assert_eq!(rejected["verdict"], "rejected");
    assert_eq!(rejected["reason"], json!(Digest::of_bytes(b"not there")));
    assert_eq!(approved["verdict"], "approved");
    let started: Vec<&Value> = records
        .iter()
        .filter(|record| record["act"] == "call.started")
        .map(|record| &record["call"]["digest"])
        .collect();
    for decision in [by_rule, edited, approved] {
        assert!(started.contains(&&decision["call"]["digest"]), "{decision}");
    }
    let ended = |status: &str| {
        let is_end = |record: &&Value| record["act"] == "call.ended" && record["status"] == status;
        records.iter().filter(is_end).count()
    };
    let ends = ["completed", "rejected", "unknown"].map(ended);
    assert_eq!(ends, [2, 1, 1]);
    let text = serde_json::to_string(&records).unwrap();
    for secret in [
        "elsewhere",
        "safer",
        "not there",
        "\"go\"",
        "I will",
        "done",
    ] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

/// Every later release must verify stored journals. A change of these hashes breaks that: leave a new field out
/// where it is empty.
#[test]
fn the_form_of_records_and_links_stays() {
    let head = verified(&stored(&story())).unwrap().unwrap();
    assert_eq!(
        head.as_str(),
        "0b7cc565a271663ed945e77e9060d64baedbf6e3670d619f499ef62b574be889"
    );
}

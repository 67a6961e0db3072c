//! Fuzzes the packets of socket clients through to the session's decision.

use super::connection::inbound;
use super::handshake::{HandshakeAuth, check_session_name};
use crate::agent::{SessionAction, SubmitOptions};
use crate::domain::{Caller, JournalId, Rights, Role, Tenant, TenantId, User, UserId};
use crate::gateway::wire::{self, ParsedCommand};
use crate::session::Command;
use crate::session::properties::world::{World, proposal, say};

/// Asserts S0.2.
#[test]
fn socket_payloads() {
    sepal_fuzz::check("socket_payloads", |input| {
        let Ok(text) = std::str::from_utf8(input) else {
            return;
        };
        if let Ok(auth) = serde_json::from_str::<Option<HandshakeAuth>>(text) {
            check_handshake(auth.unwrap_or_default());
        }
        // Each line is one packet of the same client.
        let mut world = waiting();
        for packet in text.lines().take(64) {
            send(&mut world, packet);
        }
    });
}

/// Creates a session in which two calls wait for a decision.
fn waiting() -> World {
    let mut world = World::new();
    world.submit(&say("go")).unwrap();
    let call = || proposal("write_a", serde_json::json!({"n": 1}));
    world.answer("I will", vec![call(), call()]);
    world
}

/// `World` checks the invariants after each command.
fn send(world: &mut World, packet: &str) {
    let Ok(serde_json::Value::Array(whole)) = serde_json::from_str(packet) else {
        return;
    };
    let Some(name) = whole.first().and_then(serde_json::Value::as_str) else {
        return;
    };
    let args = inbound::read(packet).unwrap();
    assert_eq!(args, whole[1..]);
    match wire::parse(&caller(), name, &args) {
        Err(refusal) => {
            let message = wire::refused(&refusal).message;
            assert!(message.len() <= 1_024 + 6 * packet.len(), "{message}");
        }
        Ok(ParsedCommand::Resume { journal, .. }) => {
            assert!(journal.is_none_or(|id| id.as_str().starts_with(JournalId::PREFIX)));
        }
        Ok(ParsedCommand::Submit(ask)) => {
            check_options(&ask.action, &ask.options);
            match ask.action {
                SessionAction::Command(command) => drop(world.submit(&command)),
                SessionAction::Decide { decision, args } => {
                    assert!(args.is_none_or(|args| args.is_object()));
                    drop(world.submit(&Command::Decide(decision)));
                }
                SessionAction::Choose(wanted) => assert!(!wanted.is_empty()),
                SessionAction::CallByView(asked) => {
                    assert!(asked.args.is_object() && asked.at.server.is_empty());
                }
                SessionAction::UpdateAssistant { .. } => {}
            }
        }
        Ok(ParsedCommand::Fork(request)) => assert!(request.then.len() <= 2),
    }
}

/// Asserts that only a message brings attachments, and only a decision a gesture.
fn check_options(action: &SessionAction, options: &SubmitOptions) {
    let has_proof = options.proof.is_some();
    let without_proof = SubmitOptions {
        proof: None,
        ..options.clone()
    };
    match action {
        SessionAction::Decide { .. } | SessionAction::Command(Command::DecideAll { .. }) => {
            assert_eq!(without_proof, SubmitOptions::default());
        }
        SessionAction::Command(Command::Say { .. }) => assert!(!has_proof),
        SessionAction::Command(_)
        | SessionAction::Choose(_)
        | SessionAction::CallByView(_)
        | SessionAction::UpdateAssistant { .. } => {
            assert_eq!(*options, SubmitOptions::default());
        }
    }
}

fn check_handshake(auth: HandshakeAuth) {
    let journal = auth.journal_id.as_deref().and_then(JournalId::parse);
    assert_eq!(
        journal.as_ref().map(JournalId::as_str).is_some(),
        journal.is_some()
    );
    let _ = (auth.token, auth.last_seq);
    let name = auth.session_id.unwrap_or_default();
    if check_session_name(&name).is_ok() {
        assert!(
            name.len() <= 64 && !name.contains(['/', '.', '\0']),
            "{name}"
        );
    }
}

fn caller() -> Caller {
    let tenant = Tenant {
        id: TenantId::from_bits(1),
        name: "acme".into(),
    };
    let user = User {
        id: UserId::from_bits(7),
        tenant: tenant.id.clone(),
        name: "Ana".into(),
        role: Role::Member,
        installation_admin: false,
    };
    Caller {
        user,
        tenant,
        custom_rights: Rights::NONE,
        credential: None,
        grant: None,
    }
}

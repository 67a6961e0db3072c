//! Mail through a relay that speaks TLS, whose certificate the machine trusts or does not.

use rcgen::Certificate;
use serde_json::json;
use tempfile::TempDir;

use super::{ENV, HUSH, will_ask};
use crate::model_stub::ModelStub;
use crate::rest::Client;
use crate::support::{Relayed, Server, TestSocket, person, vouched_for};

/// A server that mails through this relay and trusts that authority; calls wait in it for somebody who
/// wants mail.
async fn mailing(
    relay: &Relayed,
    authority: &Certificate,
) -> (TempDir, Server, TestSocket, ModelStub) {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let trusted = folder.path().join("authority.pem");
    std::fs::write(&trusted, authority.pem()).unwrap();
    let model = ModelStub::start().await;
    let url = relay.url();
    let mut env = ENV.to_vec();
    env.extend([
        ("SSL_CERT_FILE", trusted.to_str().unwrap()),
        ("SPL_SMTP_URL", url.as_str()),
        ("SPL_SMTP_FROM", "Sepal <sepal@house.example>"),
        ("SPL_NOTIFICATIONS_MAIL_DELAY", "0"),
    ]);
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &[]);
    let client = Client::at(server.address, &ana.key);
    let setting = json!({ "address": "ana@sepal.example", "isOn": true });
    let set = client.put("/api/notifications/mail", setting).await;
    set.ok(200);
    will_ask(&model, 2);
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    socket.say("look").await;
    socket.wait_for_approval().await;
    (folder, server, socket, model)
}

#[tokio::test]
async fn a_relay_with_tls_gets_the_mail_if_its_certificate_is_trusted() {
    let (tls, authority) = vouched_for();
    let relay = Relayed::behind(Some(tls)).await;
    let (_folder, _server, socket, _model) = mailing(&relay, &authority).await;
    let mails = relay.wait_for(1).await;
    let text = mails[0].text.replace("=\r\n", "");
    assert!(text.contains(&socket.session()), "{text}");
    assert!(!text.contains(HUSH), "{text}");
}

#[tokio::test]
async fn a_relay_whose_certificate_nobody_vouches_for_gets_neither_password_nor_mail() {
    let (tls, _) = vouched_for();
    let (_, authority_of_others) = vouched_for();
    let relay = Relayed::behind(Some(tls)).await;
    let (_folder, _server, _socket, _model) = mailing(&relay, &authority_of_others).await;
    assert_eq!(relay.distrusted().await, 0);
}

//! Sends mail by SMTP through the operator's relay.

use std::time::Duration;

use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use percent_encoding::percent_decode_str;
use secrecy::{ExposeSecret as _, SecretString};
use url::{Host, Url};

/// The time limit of each SMTP step.
const STEP: Duration = Duration::from_secs(10);
/// The longest address that RFC 5321 allows, in bytes.
const MAX_ADDRESS: usize = 254;

/// A plain-text message to one person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// Identifies the message; the same for each attempt, so that a relay or mail reader can detect
    /// duplicates.
    pub id: String,
    pub to: String,
    pub subject: String,
    /// The body as plain text.
    pub body: String,
}

/// The reason why a mail was not sent.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// The address of `notifications.smtp.url` is invalid.
    #[error("`notifications.smtp.url` is no address of an SMTP relay")]
    Relay,
    /// A recipient or sender address is invalid.
    #[error("`{0}` is no mail address")]
    Address(String),
    /// The relay refuses the mail permanently.
    #[error("the relay refuses the mail")]
    Refused(#[source] lettre::transport::smtp::Error),
    /// The relay cannot accept the mail at present.
    #[error("the relay does not take the mail now")]
    Away(#[source] lettre::transport::smtp::Error),
    /// The message could not be built.
    #[error("the mail cannot be written")]
    Form(#[source] lettre::error::Error),
}

/// Sends mail through one relay. Cheap to clone.
#[derive(Clone)]
pub struct Mailer {
    relay: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Mailer {
    /// Creates a mailer for `smtps://` (TLS from the start, port 465) or `smtp://` (STARTTLS, port 587), with
    /// the user and password of the address, if any. `smtp://` is unencrypted (port 25) only to a loopback
    /// address or with `?tls=none`, so a password never leaves the machine unencrypted by mistake.
    pub fn open(url: &SecretString, from: &str) -> Result<Self, MailError> {
        let url = Url::parse(url.expose_secret()).map_err(|_| MailError::Relay)?;
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or(MailError::Relay)?.to_owned();
        let parameters = || TlsParameters::new(host.clone()).map_err(MailError::Away);
        let (tls, port) = match url.scheme() {
            "smtps" => (Tls::Wrapper(parameters()?), 465),
            "smtp" if is_plain(&url) => (Tls::None, 25),
            "smtp" => (Tls::Required(parameters()?), 587),
            _ => return Err(MailError::Relay),
        };
        let mut relay = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&host)
            .port(url.port().unwrap_or(port))
            .tls(tls)
            .timeout(Some(STEP));
        if let Some(password) = url.password() {
            relay = relay.credentials(Credentials::new(
                decoded(url.username())?,
                decoded(password)?,
            ));
        }
        Ok(Self {
            relay: relay.build(),
            from: from
                .parse()
                .map_err(|_| MailError::Address(from.to_owned()))?,
        })
    }

    /// Hands a mail to the relay; on success the relay has accepted it.
    pub async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let to: Address = mail
            .to
            .parse()
            .map_err(|_| MailError::Address(mail.to.clone()))?;
        let id = format!("<{}@{}>", mail.id, self.from.email.domain());
        let message = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(&mail.subject)
            .message_id(Some(id))
            .header(ContentType::TEXT_PLAIN)
            .body(mail.body.clone())
            .map_err(MailError::Form)?;
        match self.relay.send(message).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_permanent() => Err(MailError::Refused(error)),
            Err(error) => Err(MailError::Away(error)),
        }
    }
}

/// Returns true if the text has the form of a mail address. Whether the mailbox exists can be found out only
/// by sending mail.
pub fn is_mail_address(text: &str) -> bool {
    text.len() <= MAX_ADDRESS
        && text
            .parse::<Address>()
            .is_ok_and(|it| it.domain().contains('.'))
}

fn is_plain(url: &Url) -> bool {
    let is_own = match url.host() {
        // The URL parser does not recognize addresses in URLs with the scheme `smtp`.
        Some(Host::Domain(name)) => {
            let bare = name.trim_start_matches('[').trim_end_matches(']');
            name == "localhost"
                || bare
                    .parse()
                    .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
        }
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    is_own
        || url
            .query_pairs()
            .any(|(name, value)| name == "tls" && value == "none")
}

fn decoded(text: &str) -> Result<String, MailError> {
    let text = percent_decode_str(text).decode_utf8();
    Ok(text.map_err(|_| MailError::Relay)?.into_owned())
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::{Mailer, is_mail_address, is_plain};
    use crate::install_tls;

    #[test]
    fn an_address_has_one_mailbox_and_a_domain() {
        let longest = format!("ana@{}.example", "a".repeat(250));
        for (text, expected) in [
            ("ana@sepal.example", true),
            ("ana.b+c@mail.sepal.example", true),
            ("ana@sepal", false),
            ("ana", false),
            ("", false),
            ("Ana <ana@sepal.example>", false),
            ("ana@sepal.example, bob@sepal.example", false),
            ("ana@sepal.example\r\nBcc: bob@sepal.example", false),
            (&longest, false),
        ] {
            assert_eq!(is_mail_address(text), expected, "{text}");
        }
    }

    #[test]
    fn a_password_is_not_sent_unencrypted_unless_somebody_says_so() {
        for (url, expected) in [
            ("smtp://user:hush@mail.example", false),
            ("smtp://127.0.0.1:2525", true),
            ("smtp://localhost", true),
            ("smtp://[::1]:25", true),
            ("smtp://mail.example?tls=none", true),
        ] {
            assert_eq!(is_plain(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn what_is_no_relay_or_sender_is_told() {
        install_tls();
        let open = |url: &str, from| Mailer::open(&url.to_owned().into(), from).map(|_| ());
        assert!(open("smtps://u:p%40@mail.example", "Sepal <sepal@mail.example>").is_ok());
        for (url, from) in [
            ("http://mail.example", "sepal@mail.example"),
            ("smtp://", "sepal@mail.example"),
            ("smtp://mail.example", "sepal"),
        ] {
            assert!(open(url, from).is_err(), "{url} {from}");
        }
    }
}

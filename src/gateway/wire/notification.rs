//! Builds outgoing notices: bodies of webhooks (docs/notifications.md), and mail.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::agent::{BatchNotice, MailText, NotificationForms};
use crate::domain::{SessionId, Timestamp};
use crate::store::records::NotificationEvent;

/// The maximum number of characters of a title in a subject.
const SUBJECT_CHARS: usize = 80;

/// Builds the forms of notices, with links to the page.
pub struct NotificationWire {
    /// The public address of the page, without a slash at its end.
    pub base_url: String,
}

impl NotificationWire {
    fn session(&self, session: &SessionId) -> String {
        format!("{}/s/{session}", self.base_url)
    }
}

impl NotificationForms for NotificationWire {
    fn webhook(&self, notice: &BatchNotice) -> String {
        let kind = match notice.event {
            NotificationEvent::Waiting => "approvals.waiting",
            NotificationEvent::Decided => "approvals.decided",
        };
        let data = json!({
            "sessionId": notice.session.session.as_str(),
            "title": notice.title,
            "person": notice.person,
            "tools": notice.tools,
            "calls": notice.calls,
            "waitingSince": notice.waiting_since.to_rfc3339(),
            "expiresAt": notice.expires_at.map(Timestamp::to_rfc3339),
            "url": self.session(&notice.session.session),
        });
        message(kind, notice.at, &data)
    }

    fn webhook_trial(&self, at: Timestamp) -> String {
        message("webhook.test", at, &json!({ "url": self.base_url }))
    }

    fn mail(&self, notice: &BatchNotice) -> MailText {
        let calls = match notice.calls {
            1 => "1 call waits".to_owned(),
            calls => format!("{calls} calls wait"),
        };
        // A line break could begin another mail header, or forge a line of our text.
        let plain = |text: &str| text.replace(char::is_control, " ");
        let title = notice.title.as_deref().map(plain);
        let title = title.filter(|_| !notice.is_for_others);
        let named = if notice.is_for_others {
            Some(format!(" in a session of {}", plain(&notice.person)))
        } else {
            title.as_deref().map(|title| format!(" in \"{title}\""))
        };
        let short = title.map(|title| match title.char_indices().nth(SUBJECT_CHARS) {
            Some((end, _)) => format!(": {}…", title.get(..end).unwrap_or_default()),
            None => format!(": {title}"),
        });
        let tools: String = notice.tools.iter().fold(String::new(), |mut lines, tool| {
            // Writing into a `String` never fails.
            let _ = writeln!(lines, "- {}", plain(tool));
            lines
        });
        let decide = match self.session(&notice.session.session) {
            _ if notice.is_for_others => String::new(),
            session => format!("Decide: {session}\n"),
        };
        let expiry = notice.expires_at.map(|at| {
            let at = at.to_rfc3339();
            format!("Calls that nobody has decided by {at} are rejected.\n")
        });
        let expiry = expiry.unwrap_or_default();
        let body = format!(
            "{calls} for your decision{}, since {}:\n\n{tools}\n{expiry}{}All calls that \
             wait for you: {base}/approvals\n\nYou get this mail because mail about waiting calls is on: \
             {base}/settings/notifications\n",
            named.unwrap_or_default(),
            notice.waiting_since.to_rfc3339(),
            decide,
            base = self.base_url,
        );
        MailText {
            subject: format!("{calls}{}", short.unwrap_or_default()),
            body,
        }
    }
}

fn message(kind: &str, at: Timestamp, data: &Value) -> String {
    json!({ "type": kind, "timestamp": at.to_rfc3339(), "data": data }).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::NotificationWire;
    use crate::agent::{BatchNotice, NotificationForms as _};
    use crate::domain::{SessionId, SessionKey, TenantId, Timestamp};
    use crate::store::records::NotificationEvent;

    fn notice(title: &str) -> BatchNotice {
        BatchNotice {
            event: NotificationEvent::Waiting,
            at: Timestamp(1_000),
            session: SessionKey {
                tenant: TenantId::from_bits(1),
                session: SessionId::from_bits(2),
            },
            title: Some(title.to_owned()),
            tools: vec!["write_file".to_owned(), "odd\r\ntool".to_owned()],
            calls: 2,
            waiting_since: Timestamp(0),
            expires_at: None,
            person: "ana".to_owned(),
            is_for_others: false,
        }
    }

    fn wire() -> NotificationWire {
        NotificationWire {
            base_url: "https://sepal.example/agents".to_owned(),
        }
    }

    #[test]
    fn a_webhook_reads_who_waits_for_what_and_where_it_is_decided() {
        let body: Value = serde_json::from_str(&wire().webhook(&notice("Sail"))).unwrap();
        let session = "ses_00000000000000000000000000000002";
        assert_eq!(
            body,
            json!({
                "type": "approvals.waiting",
                "timestamp": "1970-01-01T00:00:01.000Z",
                "data": {
                    "sessionId": session,
                    "title": "Sail",
                    "person": "ana",
                    "tools": ["write_file", "odd\r\ntool"],
                    "calls": 2,
                    "waitingSince": "1970-01-01T00:00:00.000Z",
                    "expiresAt": null,
                    "url": format!("https://sepal.example/agents/s/{session}"),
                },
            })
        );
    }

    #[test]
    fn a_session_whose_title_is_not_told_has_none_anywhere() {
        let untold = BatchNotice {
            title: None,
            ..notice("")
        };
        let mail = wire().mail(&untold);
        assert_eq!(mail.subject, "2 calls wait");
        let first = mail.body.lines().next().unwrap();
        assert_eq!(
            first,
            "2 calls wait for your decision, since 1970-01-01T00:00:00.000Z:"
        );
        let body: Value = serde_json::from_str(&wire().webhook(&untold)).unwrap();
        assert_eq!(body["data"]["title"], Value::Null);
    }

    #[test]
    fn a_title_of_several_lines_begins_no_header_and_no_line_of_ours() {
        let mail = wire().mail(&notice("Sail\r\nBcc: bob@sepal.example"));
        assert_eq!(mail.subject, "2 calls wait: Sail  Bcc: bob@sepal.example");
        assert!(
            !mail.body.contains("\nBcc") && !mail.body.contains("\ntool"),
            "{}",
            mail.body
        );
        let long = wire().mail(&notice(&"é".repeat(300)));
        assert_eq!(long.subject.chars().count(), "2 calls wait: ".len() + 81);
    }
}

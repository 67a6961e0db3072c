//! A stand-in for a mail relay: strict about the protocol, keeps what it takes.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, split,
};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::DEADLINE;

/// A mail as it came.
#[derive(Debug, Clone)]
pub(crate) struct TakenMail {
    pub(crate) from: String,
    pub(crate) to: Vec<String>,
    /// Headers and body.
    pub(crate) text: String,
}

impl TakenMail {
    /// A header that stands in one line, once.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        let head = self.text.split("\r\n\r\n").next().unwrap();
        let start = format!("{name}: ");
        let mut lines = head.lines().filter_map(|line| line.strip_prefix(&start));
        let found = lines.next().unwrap_or_else(|| panic!("no {name}: {head}"));
        assert_eq!(lines.next(), None, "{name} stands twice: {head}");
        found
    }
}

#[derive(Default)]
struct Taken {
    mails: Vec<TakenMail>,
    /// What the next mails are answered with in place of 250.
    answers: VecDeque<u16>,
}

/// The stand-in.
pub(crate) struct Relayed {
    address: SocketAddr,
    has_tls: bool,
    taken: Arc<Mutex<Taken>>,
    /// Mails that came, refused ones too.
    count: watch::Sender<usize>,
    /// Clients that went away over its certificate.
    distrust: watch::Sender<usize>,
    _server: AbortOnDropHandle<()>,
}

impl Relayed {
    pub(crate) async fn start() -> Self {
        Self::behind(None).await
    }

    /// With TLS from the start, if there is something to speak it with. Whoever does not get that far says
    /// nothing here.
    pub(crate) async fn behind(tls: Option<TlsAcceptor>) -> Self {
        let has_tls = tls.is_some();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let taken = Arc::<Mutex<Taken>>::default();
        let count = watch::Sender::new(0);
        let state = (Arc::clone(&taken), count.clone());
        let distrust = watch::Sender::new(0);
        let hung_up = distrust.clone();
        let tasks = TaskTracker::new();
        let each = tasks.clone();
        let server = tasks.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (tls, state, hung_up) = (tls.clone(), state.clone(), hung_up.clone());
                each.spawn(async move {
                    match tls {
                        None => serve(stream, state).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, state).await;
                            } else {
                                hung_up.send_modify(|count| *count += 1);
                            }
                        }
                    }
                });
            }
        });
        Self {
            address,
            has_tls,
            taken,
            count,
            distrust,
            _server: AbortOnDropHandle::new(server),
        }
    }

    /// What `notifications.smtp.url` says that leads here.
    pub(crate) fn url(&self) -> String {
        if self.has_tls {
            return format!("smtps://ana:h%40sh@localhost:{}", self.address.port());
        }
        format!("smtp://ana:h%40sh@{}", self.address)
    }

    /// The next mails are answered with these.
    pub(crate) fn will_answer(&self, codes: &[u16]) {
        self.taken.lock().unwrap().answers.extend(codes);
    }

    /// Waits until a client goes away over its certificate; what it gave before that.
    pub(crate) async fn distrusted(&self) -> usize {
        let mut counted = self.distrust.subscribe();
        let waiting = counted.wait_for(|counted| *counted > 0);
        let waited = tokio::time::timeout(DEADLINE, waiting).await;
        assert!(waited.is_ok(), "everybody trusts it");
        *self.count.borrow()
    }

    /// All that came, once there are so many.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<TakenMail> {
        let mut counted = self.count.subscribe();
        let waiting = counted.wait_for(|counted| *counted >= count);
        let waited = tokio::time::timeout(DEADLINE, waiting).await;
        let mails = self.taken.lock().unwrap().mails.clone();
        assert!(waited.is_ok(), "{} of {count}: {mails:#?}", mails.len());
        mails
    }
}

/// One conversation (RFC 5321); whatever comes out of order ends it.
async fn serve(
    stream: impl AsyncRead + AsyncWrite,
    (taken, count): (Arc<Mutex<Taken>>, watch::Sender<usize>),
) {
    let (read, mut write) = split(stream);
    let mut lines = BufReader::new(read);
    let mut say = async |text: &str| {
        write.write_all(format!("{text}\r\n").as_bytes()).await?;
        write.flush().await
    };
    say("220 relay.example ESMTP").await.unwrap();
    let mut mail: Option<TakenMail> = None;
    let (mut is_greeted, mut is_known) = (false, false);
    loop {
        let Some(line) = line(&mut lines).await else {
            return;
        };
        let words: Vec<&str> = line.split(' ').collect();
        match words[0].to_ascii_uppercase().as_str() {
            "EHLO" => {
                is_greeted = true;
                say("250-relay.example").await.unwrap();
                say("250 AUTH PLAIN").await.unwrap();
            }
            "AUTH" => {
                assert!(is_greeted, "{line}");
                // \0ana\0h@sh
                assert_eq!(words[1..], ["PLAIN", "AGFuYQBoQHNo"]);
                is_known = true;
                say("235 2.7.0 welcome").await.unwrap();
            }
            "MAIL" => {
                assert!(is_known && mail.is_none(), "{line}");
                let from = path(&line, "MAIL FROM:");
                let (to, text) = (Vec::new(), String::new());
                mail = Some(TakenMail { from, to, text });
                say("250 2.1.0 sender").await.unwrap();
            }
            "RCPT" => {
                mail.as_mut().unwrap().to.push(path(&line, "RCPT TO:"));
                say("250 2.1.5 recipient").await.unwrap();
            }
            "DATA" => {
                let mut mail = mail.take().unwrap();
                assert!(!mail.to.is_empty());
                say("354 go on").await.unwrap();
                while let Some(line) = line_of_data(&mut lines).await {
                    mail.text.push_str(&line);
                    mail.text.push_str("\r\n");
                }
                let answer = keep(&taken, mail);
                count.send_modify(|count| *count += 1);
                say(&format!("{answer} that is so")).await.unwrap();
            }
            "RSET" | "NOOP" => say("250 2.0.0 well").await.unwrap(),
            "QUIT" => {
                let _ = say("221 2.0.0 bye").await;
                return;
            }
            _ => panic!("{line}"),
        }
    }
}

/// Keeps a mail, and says what it is answered with.
fn keep(taken: &Mutex<Taken>, mail: TakenMail) -> u16 {
    let mut taken = taken.lock().unwrap();
    taken.mails.push(mail);
    taken.answers.pop_front().unwrap_or(250)
}

/// A line without its end; none = nobody is there any more.
async fn line(lines: &mut (impl tokio::io::AsyncBufRead + Unpin)) -> Option<String> {
    let mut line = String::new();
    let bytes = lines.read_line(&mut line).await.ok()?;
    if bytes == 0 {
        return None;
    }
    let whole = line.strip_suffix("\r\n");
    Some(
        whole
            .unwrap_or_else(|| panic!("a bare end: {line:?}"))
            .to_owned(),
    )
}

/// A line of a mail; none = that was the last.
async fn line_of_data(lines: &mut (impl tokio::io::AsyncBufRead + Unpin)) -> Option<String> {
    let line = line(lines).await.unwrap();
    assert!(line.len() <= 998 && line.is_ascii(), "{line}");
    match line.strip_prefix('.') {
        Some("") => None,
        // Doubled by the sender.
        Some(rest) => Some(rest.to_owned()),
        None => Some(line),
    }
}

/// The address between the brackets.
fn path(line: &str, start: &str) -> String {
    let rest = line.strip_prefix(start).unwrap_or_else(|| panic!("{line}"));
    let path = rest.split(' ').next().unwrap();
    let bare = path
        .strip_prefix('<')
        .and_then(|path| path.strip_suffix('>'));
    bare.unwrap_or_else(|| panic!("{line}")).to_owned()
}

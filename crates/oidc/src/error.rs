//! Defines the errors of a sign-in at a provider. Their texts are for the log: they quote the provider.

/// The reason a provider lets nobody in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The provider cannot be reached, or its metadata or keys cannot be read.
    #[error("the provider does not answer: {0}")]
    Unavailable(String),
    /// The provider refuses this installation: the client's id, secret or address is wrong.
    #[error("the provider refuses this client: {0}")]
    ClientRefused(String),
    /// The code is not valid, or not any more.
    #[error("the provider does not take its own code: {0}")]
    CodeRefused(String),
    /// A token is forged, expired, or meant for somebody else.
    #[error("the token is not valid: {0}")]
    Token(String),
}

/// A text with the chain of its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

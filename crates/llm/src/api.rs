//! Selects one of OpenAI's two APIs for a server.

use std::fmt;
use std::str::FromStr;

/// The OpenAI API that a server is addressed with; other vendors have only one API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Api {
    /// Responses at the vendor's own address, Chat Completions elsewhere.
    #[default]
    Auto,
    /// Responses, the vendor's newer API.
    Responses,
    /// Chat Completions, the API that most servers support.
    ChatCompletions,
}

/// The text names no API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`api` is `auto`, `responses` or `chat-completions`")]
pub struct UnknownApi;

impl Api {
    /// The name of the API in settings and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Responses => "responses",
            Self::ChatCompletions => "chat-completions",
        }
    }
}

impl FromStr for Api {
    type Err = UnknownApi;

    /// Parses a name; `chat` is the name that older releases used for Chat Completions.
    fn from_str(text: &str) -> Result<Self, UnknownApi> {
        match text.trim() {
            "auto" => Ok(Self::Auto),
            "responses" => Ok(Self::Responses),
            "chat-completions" | "chat" => Ok(Self::ChatCompletions),
            _ => Err(UnknownApi),
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::{Api, UnknownApi};

    #[test]
    fn an_interface_has_one_name_and_chat_is_an_old_one() {
        for api in [Api::Auto, Api::Responses, Api::ChatCompletions] {
            assert_eq!(api.to_string().parse(), Ok(api));
        }
        assert_eq!("chat".parse(), Ok(Api::ChatCompletions));
        for text in ["", "soap", "Responses "] {
            assert_eq!(text.parse::<Api>(), Err(UnknownApi), "{text}");
        }
    }
}

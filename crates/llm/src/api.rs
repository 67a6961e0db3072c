//! Which of OpenAI's two interfaces a server is spoken to in.

use std::fmt;
use std::str::FromStr;

/// Which of OpenAI's interfaces a server is spoken to in; other vendors have one only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Api {
    /// Responses at the vendor's own address, Chat Completions anywhere else.
    #[default]
    Auto,
    /// The vendor's newer one.
    Responses,
    /// The one that most servers speak.
    ChatCompletions,
}

/// A text that names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`api` is `auto`, `responses` or `chat-completions`")]
pub struct UnknownApi;

impl Api {
    /// The name in settings and records.
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

    /// `chat` is what older releases called Chat Completions.
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

//! Finds chat models by their names: providers also list models for embeddings, speech and images, and do
//! not say which is which. Pure.

/// Parts of the names of models that are not for chat.
const OTHER: &[&str] = &[
    "audio",
    "babbage",
    "bge-",
    "computer-use",
    "dall-e",
    "davinci",
    "deep-research",
    "embed",
    "image",
    "imagen",
    "moderation",
    "rerank",
    "realtime",
    "sora",
    "speech",
    "stable-diffusion",
    "transcribe",
    "tts",
    "veo-",
    "whisper",
];

/// Returns true if a model with that name can chat. A name without any known part counts as chat.
pub(super) fn is_chat(id: &str) -> bool {
    let id = id.to_ascii_lowercase();
    !OTHER.iter().any(|word| id.contains(word))
}

#[cfg(test)]
mod tests {
    use super::is_chat;

    #[test]
    fn what_is_no_conversation_is_known_by_its_name() {
        for id in [
            "gpt-4o",
            "gpt-4.1-mini",
            "o3",
            "claude-sonnet-4-5",
            "gemini-2.0-flash-exp",
            "llama3.2:3b",
            "qwen2.5-coder",
            "scripted",
        ] {
            assert!(is_chat(id), "{id}");
        }
        for id in [
            "text-embedding-3-small",
            "nomic-embed-text",
            "gpt-4o-audio-preview",
            "gpt-4o-realtime-preview",
            "whisper-1",
            "TTS-1-hd",
            "dall-e-3",
            "omni-moderation-latest",
            "gpt-image-1",
            "davinci-002",
        ] {
            assert!(!is_chat(id), "{id}");
        }
    }
}

//! What is left out of a request: what is known of the model by its name, and what the server
//! refused before.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::effort::{self, Generation, RARE_WORDS};
use crate::domain::Effort;
use crate::llm::Request;

/// Models of which something is remembered.
const MOST_MODELS: usize = 256;

/// A part of a request that some servers or models take none of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// That usage is streamed.
    StreamOptions,
    Temperature,
    /// How much the model may think.
    Effort,
    /// That it tells in short what it thinks.
    Summary,
    /// That it hands over what it thinks, encrypted.
    Encrypted,
    /// What it thought before.
    Thoughts,
    CacheKey,
    ToolChoice,
    /// That arguments follow their schema to the letter.
    Strict,
    /// That the vendor searches tools.
    ToolSearch,
    /// The longest answer by its old name.
    MaxTokens,
}

impl Part {
    /// How the vendor calls it.
    fn name(self) -> &'static str {
        match self {
            Self::StreamOptions => "stream_options",
            Self::Temperature => "temperature",
            Self::Effort => "reasoning.effort",
            Self::Summary => "reasoning.summary",
            Self::Encrypted => "reasoning.encrypted_content",
            Self::Thoughts => "reasoning",
            Self::CacheKey => "prompt_cache_key",
            Self::ToolChoice => "tool_choice",
            Self::Strict => "strict",
            Self::ToolSearch => "tool_search",
            Self::MaxTokens => "max_tokens",
        }
    }
}

/// What a refusal teaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lesson {
    /// The part is not taken.
    Part(Part),
    /// That word for an effort is not taken.
    Effort(&'static str),
    /// What the model thought before cannot be read in this request; it may be in others.
    StaleThoughts,
}

impl fmt::Display for Lesson {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Part(part) => write!(formatter, "`{}`", part.name()),
            Self::Effort(word) => write!(formatter, "effort `{word}`"),
            Self::StaleThoughts => formatter.write_str("thoughts of this history"),
        }
    }
}

/// What is left out of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Omitted {
    parts: BTreeSet<Part>,
    /// Words for efforts.
    words: BTreeSet<&'static str>,
    has_stale_thoughts: bool,
}

impl Omitted {
    /// What is known before anybody is asked.
    pub(super) fn known(request: &Request, has_vendor_models: bool) -> Self {
        let mut omitted = Self::default();
        if !has_vendor_models {
            omitted.words.extend(RARE_WORDS);
            return omitted;
        }
        let generation = Generation::of(&request.model);
        omitted.words.extend(generation.refused_words());
        match generation {
            Generation::Plain => {
                let parts = [Part::Effort, Part::Summary, Part::Encrypted, Part::Thoughts];
                omitted.parts.extend(parts);
            }
            Generation::O | Generation::Gpt5 => {
                omitted.parts.insert(Part::Temperature);
            }
            // They take one only where they do not think.
            Generation::Gpt51 | Generation::Gpt52 => {
                if request.effort.is_some_and(|effort| effort != Effort::Off) {
                    omitted.parts.insert(Part::Temperature);
                }
            }
            Generation::Unknown => {}
        }
        omitted
    }

    pub(super) fn has(&self, part: Part) -> bool {
        self.parts.contains(&part) || part == Part::Thoughts && self.has_stale_thoughts
    }

    /// The nearest word for an effort that is taken.
    pub(super) fn word(&self, effort: Effort) -> Option<&'static str> {
        if self.has(Part::Effort) {
            return None;
        }
        let mut words = effort::words(effort).iter().copied();
        words.find(|word| !self.words.contains(word))
    }

    pub(super) fn learn(&mut self, lesson: Lesson) {
        match lesson {
            Lesson::Part(part) => {
                self.parts.insert(part);
            }
            Lesson::Effort(word) => {
                self.words.insert(word);
            }
            Lesson::StaleThoughts => self.has_stale_thoughts = true,
        }
    }

    pub(super) fn extend(&mut self, other: &Self) {
        self.parts.extend(&other.parts);
        self.words.extend(&other.words);
    }

    /// What a person asked for and does not get, in words.
    fn told(&self, request: &Request) -> Vec<(Part, String)> {
        let model = &request.model;
        let mut told = Vec::new();
        if let Some(temperature) = request.temperature
            && self.has(Part::Temperature)
        {
            let text =
                format!("temperature {temperature} is left out: the model `{model}` takes none");
            told.push((Part::Temperature, text));
        }
        if let Some(effort) = request.effort
            && self.word(effort).is_none()
        {
            let text = format!("effort `{effort}` is left out: the model `{model}` takes none");
            told.push((Part::Effort, text));
        }
        told
    }
}

/// What a server refused before, by model.
#[derive(Debug, Default)]
pub(super) struct Learned(
    /// The newest last. Never held across an await.
    Mutex<Vec<(String, Known)>>,
);

/// What is known of a model.
#[derive(Debug, Default)]
struct Known {
    omitted: Omitted,
    /// What was told already.
    told: BTreeSet<Part>,
}

impl Learned {
    /// What was learned of a model.
    pub(super) fn of(&self, model: &str) -> Omitted {
        let models = self.models();
        let known = models.iter().find(|(name, _)| name == model);
        known
            .map(|(_, known)| known.omitted.clone())
            .unwrap_or_default()
    }

    /// Remembers what a request went well without, and gives what has to be told for the first time.
    pub(super) fn keep(
        &self,
        request: &Request,
        omitted: &Omitted,
        lessons: &[Lesson],
    ) -> Vec<String> {
        let mut told = omitted.told(request);
        if told.is_empty() && lessons.is_empty() {
            return Vec::new();
        }
        let mut models = self.models();
        let at = models.iter().position(|(name, _)| *name == request.model);
        let at = at.unwrap_or_else(|| {
            if models.len() >= MOST_MODELS {
                models.remove(0);
            }
            models.push((request.model.clone(), Known::default()));
            models.len() - 1
        });
        let Some((_, known)) = models.get_mut(at) else {
            return Vec::new();
        };
        for lesson in lessons {
            if *lesson != Lesson::StaleThoughts {
                known.omitted.learn(*lesson);
            }
        }
        told.retain(|(part, _)| known.told.insert(*part));
        told.into_iter().map(|(_, text)| text).collect()
    }

    fn models(&self) -> MutexGuard<'_, Vec<(String, Known)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Learned, Lesson, MOST_MODELS, Omitted, Part};
    use crate::domain::Effort;
    use crate::llm::Request;

    fn request(model: &str, effort: Option<Effort>, temperature: Option<f64>) -> Request {
        Request {
            model: model.to_owned(),
            effort,
            temperature,
            ..Request::default()
        }
    }

    /// The word of an effort, and whether a temperature is sent, by what the model's name says.
    #[test]
    fn the_name_of_a_model_says_what_it_takes() {
        fn check(model: &str, effort: Effort, word: Option<&str>, has_temperature: bool) {
            let request = request(model, Some(effort), Some(0.5));
            let omitted = Omitted::known(&request, true);
            assert_eq!(omitted.word(effort), word, "{model} {effort}");
            let sent = !omitted.has(Part::Temperature);
            assert_eq!(sent, has_temperature, "{model} {effort}");
        }
        check("gpt-4o", Effort::High, None, true);
        check("o3", Effort::Off, Some("low"), false);
        check("gpt-5", Effort::Off, Some("minimal"), false);
        check("gpt-5", Effort::Max, Some("high"), false);
        check("gpt-5.1", Effort::Off, Some("none"), true);
        check("gpt-5.1", Effort::Low, Some("low"), false);
        check("gpt-5.2", Effort::Max, Some("xhigh"), false);
        check("gpt-6-luna", Effort::Max, Some("max"), true);
        check("gpt-6-luna", Effort::Off, Some("none"), true);
        let plain = request("qwen3", None, Some(0.5));
        let others = Omitted::known(&plain, false);
        assert_eq!(others.word(Effort::Max), Some("high"));
        assert_eq!(others.word(Effort::Minimal), Some("low"));
        assert!(!others.has(Part::Temperature));
        let silent = Omitted::known(&request("gpt-5.1", None, Some(0.5)), true);
        assert!(
            !silent.has(Part::Temperature),
            "it does not think by itself"
        );
    }

    #[test]
    fn what_is_left_out_is_said_once_for_each_model() {
        let learned = Learned::default();
        let tell = |model: &str| {
            let request = request(model, Some(Effort::High), Some(0.2));
            let omitted = Omitted::known(&request, true);
            learned.keep(&request, &omitted, &[])
        };
        assert_eq!(
            tell("gpt-4o"),
            ["effort `high` is left out: the model `gpt-4o` takes none"]
        );
        assert_eq!(tell("gpt-4o"), [""; 0]);
        assert_eq!(
            tell("o3"),
            ["temperature 0.2 is left out: the model `o3` takes none"]
        );
    }

    #[test]
    fn a_lesson_is_remembered_for_its_model_and_stale_thoughts_are_not() {
        let learned = Learned::default();
        let request = request("m", Some(Effort::Max), None);
        let lessons = [
            Lesson::Part(Part::CacheKey),
            Lesson::Effort("max"),
            Lesson::StaleThoughts,
        ];
        let mut omitted = Omitted::default();
        for lesson in lessons {
            omitted.learn(lesson);
        }
        assert!(omitted.has(Part::Thoughts));
        learned.keep(&request, &omitted, &lessons);
        let known = learned.of("m");
        assert!(known.has(Part::CacheKey) && !known.has(Part::Thoughts));
        assert_eq!(known.word(Effort::Max), Some("xhigh"));
        assert_eq!(learned.of("other"), Omitted::default());
        for at in 0..MOST_MODELS {
            let model = format!("m{at}");
            let request = Request {
                model,
                ..request.clone()
            };
            learned.keep(&request, &omitted, &lessons);
        }
        assert_eq!(learned.of("m"), Omitted::default(), "the oldest goes");
    }
}

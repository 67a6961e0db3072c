//! Decides which parts are left out of a request: by the model's name, and by earlier refusals.

use std::collections::BTreeSet;

use super::effort::{self, Generation, RARE_WORDS};
use crate::Request;
use crate::request::learned;
use sepal_core::domain::Effort;

/// A part of a request that some servers or models refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// Streaming of the usage.
    StreamOptions,
    Temperature,
    /// The thinking effort.
    Effort,
    /// A summary of the model's reasoning.
    Summary,
    /// The model's reasoning in encrypted form.
    Encrypted,
    /// The model's earlier reasoning.
    Thoughts,
    CacheKey,
    ToolChoice,
    /// Arguments that strictly follow their schema.
    Strict,
    /// The vendor's tool search.
    ToolSearch,
    /// Compaction by the vendor.
    Compaction,
    /// The output limit under its old name.
    MaxTokens,
}

/// The lesson of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lesson {
    /// The part is refused.
    Part(Part),
    /// The effort word is refused.
    Effort(&'static str),
    /// The earlier reasoning in this request is unreadable; in other requests it may be readable.
    StaleThoughts,
}

impl learned::Part for Lesson {
    fn is_lasting(self) -> bool {
        self != Self::StaleThoughts
    }
}

/// The parts that are left out of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Omitted {
    parts: BTreeSet<Part>,
    /// Effort words that are refused.
    words: BTreeSet<&'static str>,
    has_stale_thoughts: bool,
}

impl Omitted {
    /// The omissions that are known before the first request.
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
            // These models accept a temperature only if they do not think.
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

    /// The nearest effort word that is accepted; `None` if effort is left out.
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

    /// Messages for people about the settings that were asked for and are not sent.
    pub(super) fn told(&self, request: &Request) -> Vec<(Lesson, String)> {
        let model = &request.model;
        let mut told = Vec::new();
        if let Some(temperature) = request.temperature
            && self.has(Part::Temperature)
        {
            let text =
                format!("temperature {temperature} is left out: the model `{model}` takes none");
            told.push((Lesson::Part(Part::Temperature), text));
        }
        if let Some(effort) = request.effort
            && self.word(effort).is_none()
        {
            let text = format!("effort `{effort}` is left out: the model `{model}` takes none");
            told.push((Lesson::Part(Part::Effort), text));
        }
        if request.compacting.is_some() && self.has(Part::Compaction) {
            told.push((Lesson::Part(Part::Compaction), request.not_compacted()));
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::{Lesson, Omitted, Part};
    use crate::Request;
    use crate::request::learned::Part as _;
    use sepal_core::domain::Effort;

    fn request(model: &str, effort: Option<Effort>, temperature: Option<f64>) -> Request {
        Request {
            model: model.to_owned(),
            effort,
            temperature,
            ..Request::default()
        }
    }

    /// Checks the effort word, and whether a temperature is sent, by the model's name.
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
    fn what_is_left_out_is_said_of_its_part() {
        fn check(model: &str, part: Part, expected: &str) {
            let request = request(model, Some(Effort::High), Some(0.2));
            let told = Omitted::known(&request, true).told(&request);
            assert_eq!(told, [(Lesson::Part(part), expected.to_owned())]);
        }
        check(
            "gpt-4o",
            Part::Effort,
            "effort `high` is left out: the model `gpt-4o` takes none",
        );
        check(
            "o3",
            Part::Temperature,
            "temperature 0.2 is left out: the model `o3` takes none",
        );
    }

    #[test]
    fn a_lesson_is_left_out_and_stale_thoughts_may_be_taken_again() {
        let mut omitted = Omitted::default();
        let lessons = [
            (Lesson::Part(Part::CacheKey), true),
            (Lesson::Effort("max"), true),
            (Lesson::StaleThoughts, false),
        ];
        for (lesson, is_lasting) in lessons {
            omitted.learn(lesson);
            assert_eq!(lesson.is_lasting(), is_lasting, "{lesson:?}");
        }
        assert!(omitted.has(Part::CacheKey) && omitted.has(Part::Thoughts));
        assert_eq!(omitted.word(Effort::Max), Some("xhigh"));
    }
}

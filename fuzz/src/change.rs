//! Changed copies of inputs: what libFuzzer does, without its eyes.

use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::{Index, select};

/// The largest input that is made by changing.
const MAX_BYTES: usize = 16 * 1024;
/// Changes of one input.
const MAX_CHANGES: usize = 8;

/// One change. Places are shares of the input's length, so that each fits every input.
#[derive(Debug, Clone)]
enum Change {
    Put(Index, u8),
    Flip(Index, u8),
    Remove(Index, Index),
    Cut(Index),
    Insert(Index, Vec<u8>),
    /// A run of the input, that often.
    Repeat(Index, Index, usize),
    /// A word, that often: depth.
    Pile(Index, Vec<u8>, usize),
    /// A part of another input.
    Splice(Index, Index, Index),
    /// The digits at that place become another number.
    Number(Index, &'static str),
}

/// Numbers at the borders of the types that we have.
const NUMBERS: [&str; 10] = [
    "0",
    "-1",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e400",
    "-0.0",
    "0.1e-320",
];

/// Copies of `inputs` with one to [`MAX_CHANGES`] changes, and `words` put into them.
pub(crate) fn changed(inputs: Vec<Vec<u8>>, words: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let places = || any::<Index>();
    let change = prop_oneof![
        (places(), any::<u8>()).prop_map(|(at, byte)| Change::Put(at, byte)),
        (places(), 0..8_u8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        (places(), places()).prop_map(|(from, to)| Change::Remove(from, to)),
        places().prop_map(Change::Cut),
        (places(), select(words.clone())).prop_map(|(at, word)| Change::Insert(at, word)),
        (places(), places(), 1..40_usize).prop_map(|(from, to, n)| Change::Repeat(from, to, n)),
        (places(), select(words), prop_oneof![Just(130), Just(3_000)])
            .prop_map(|(at, word, n)| Change::Pile(at, word, n)),
        (places(), places(), places()).prop_map(|(at, from, to)| Change::Splice(at, from, to)),
        (places(), select(&NUMBERS[..])).prop_map(|(at, number)| Change::Number(at, number)),
    ];
    let changes = proptest::collection::vec(change, 1..=MAX_CHANGES);
    (places(), places(), changes).prop_map(move |(first, second, changes)| {
        let mut input: Vec<u8> = first.get(&inputs).clone();
        for change in &changes {
            apply(&mut input, change, second.get(&inputs).as_slice());
            input.truncate(MAX_BYTES);
        }
        input
    })
}

fn apply(input: &mut Vec<u8>, change: &Change, other: &[u8]) {
    let at = |place: &Index, len: usize| place.index(len + 1);
    let run = |from: &Index, to: &Index, len: usize| {
        let (from, to) = (at(from, len), at(to, len));
        from.min(to)..from.max(to)
    };
    let put = |input: &mut Vec<u8>, at: usize, bytes: &[u8]| {
        input.splice(at..at, bytes.iter().copied());
    };
    let len = input.len();
    match change {
        Change::Put(place, byte) if len > 0 => input[place.index(len)] = *byte,
        Change::Flip(place, bit) if len > 0 => input[place.index(len)] ^= 1 << bit,
        Change::Put(..) | Change::Flip(..) => {}
        Change::Remove(from, to) => drop(input.drain(run(from, to, len))),
        Change::Cut(place) => input.truncate(at(place, len)),
        Change::Insert(place, word) => put(input, at(place, len), word),
        Change::Repeat(from, to, times) => {
            let run = run(from, to, len);
            let copies = input[run.clone()].repeat(*times);
            put(input, run.end, &copies);
        }
        Change::Pile(place, word, times) => put(input, at(place, len), &word.repeat(*times)),
        Change::Splice(place, from, to) => {
            put(input, at(place, len), &other[run(from, to, other.len())]);
        }
        Change::Number(place, number) => {
            let after = &input[at(place, len)..];
            let Some(begin) = after.iter().position(u8::is_ascii_digit) else {
                return;
            };
            let begin = len - after.len() + begin;
            let digits = input[begin..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit());
            let end = begin + digits.count();
            input.splice(begin..end, number.bytes());
        }
    }
}

//! Computes the weight of a regular expression, and detects patterns that need backtracking.

/// The maximum repetition count that is used; a larger count exceeds every bound anyway.
const MAX_REPEAT: u64 = 1_000_000;

/// Returns true if a pattern uses look-around or backreferences, which only a backtracking engine supports.
pub(crate) fn needs_backtracking(pattern: &str) -> bool {
    let mut letters = pattern.chars().peekable();
    let mut is_class = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                let next = letters.next();
                let refers = matches!(next, Some('1'..='9' | 'k'));
                if refers && !is_class {
                    return true;
                }
            }
            '[' => is_class = true,
            ']' => is_class = false,
            '(' if !is_class => {
                let mut ahead = letters.clone();
                if ahead.next() != Some('?') {
                    continue;
                }
                match (ahead.next(), ahead.next()) {
                    (Some('=' | '!'), _) | (Some('<'), Some('=' | '!')) => return true,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    false
}

/// Returns roughly the number of characters that a pattern matches, with its repetitions expanded: an engine
/// without backtracking keeps at most that many states for each character of a text.
pub(crate) fn weight(pattern: &str) -> u64 {
    // For each open group: its weight so far, and the weight of its last part, which a repetition applies
    // to.
    let mut groups = vec![(1_u64, 0_u64)];
    let mut letters = pattern.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => {
                let class = letters.next().map(|(_, class)| class);
                let is_large = matches!(class, Some('p' | 'P' | 'w' | 'W' | 'd' | 'D' | 's' | 'S'));
                part(&mut groups, if is_large { 8 } else { 1 });
            }
            '[' => {
                let mut weight = 1;
                while let Some((_, inner)) = letters.next() {
                    match inner {
                        ']' => break,
                        '\\' => {
                            letters.next();
                            weight += 4;
                        }
                        _ => {}
                    }
                }
                part(&mut groups, weight);
            }
            '(' => groups.push((1, 0)),
            ')' => {
                let inner = groups.pop().map_or(1, |(sum, _)| sum);
                if groups.is_empty() {
                    groups.push((1, 0));
                }
                part(&mut groups, inner);
            }
            '{' => {
                let rest = pattern.get(at + 1..).unwrap_or_default();
                if let Some(times) = repeated(rest)
                    && let Some((sum, last)) = groups.last_mut()
                {
                    let whole = last.saturating_mul(times.max(1));
                    *sum = sum.saturating_add(whole - *last);
                    *last = whole;
                    letters.find(|(_, letter)| *letter == '}');
                } else {
                    part(&mut groups, 1);
                }
            }
            _ => part(&mut groups, 1),
        }
    }
    let open = groups.iter().map(|(sum, _)| *sum);
    open.fold(0, u64::saturating_add)
}

fn part(groups: &mut [(u64, u64)], weight: u64) {
    if let Some((sum, last)) = groups.last_mut() {
        *sum = sum.saturating_add(weight);
        *last = weight;
    }
}

/// Returns the larger number of `{n}`, `{n,}` or `{n,m}`; `None` if it is not a repetition.
fn repeated(rest: &str) -> Option<u64> {
    let (inside, _) = rest.split_once('}')?;
    let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
    let number = |text: &str| match text {
        "" => Some(0),
        text if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(text.parse().unwrap_or(MAX_REPEAT).min(MAX_REPEAT))
        }
        _ => None,
    };
    if least.is_empty() {
        return None;
    }
    Some(number(least)?.max(number(most)?))
}

#[cfg(test)]
mod tests {
    use super::{needs_backtracking, weight};

    #[test]
    fn what_needs_backtracking_is_known() {
        for (pattern, needs) in [
            ("^[a-z]+$", false),
            ("(?:a|b)+", false),
            ("(?P<name>a)", false),
            ("(?<name>a)", false),
            (r"a\\1", false),
            ("[(?=]", false),
            ("(?=a)", true),
            ("^(?!-)a", true),
            ("(?<=a)b", true),
            ("(?<!a)b", true),
            (r"(a)\1", true),
            (r"(?<n>a)\k<n>", true),
        ] {
            assert_eq!(needs_backtracking(pattern), needs, "{pattern}");
        }
    }

    #[test]
    fn repetitions_are_written_out() {
        for (pattern, least, most) in [
            ("abc", 3, 6),
            ("[a-z]{10}", 10, 12),
            ("(ab){10}", 20, 40),
            ("((a{10}){10}){10}", 1_000, 4_000),
            ("a{2,}", 2, 4),
            ("a{", 2, 4),
            ("a{9999999999999999999999}", 1_000_000, 2_000_000),
            ("^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{12}$", 26, 40),
        ] {
            let weight = weight(pattern);
            assert!((least..=most).contains(&weight), "{pattern}: {weight}");
        }
    }
}

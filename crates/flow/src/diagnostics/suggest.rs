//! What a mistyped name was probably meant to be.

/// Names longer than this are not compared: nobody mistypes them by hand, and comparing is quadratic.
const NAME_CHARS_MAX: usize = 64;

/// The known name that differs least, when it differs little enough to be meant.
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let length = name.chars().count();
    if length > NAME_CHARS_MAX {
        return None;
    }
    // One slip in a name of two letters makes half of another name.
    let mut limit = if length < 3 { 0 } else { length / 3 };
    let name = lower(name);
    let mut near = None;
    for candidate in known {
        // Each character more or less is a slip. Names that are much longer or shorter need not be compared.
        let characters = candidate.chars().count();
        if characters > NAME_CHARS_MAX || characters.abs_diff(length) > limit {
            continue;
        }
        let Some(slips) = within(&name, &lower(candidate), limit) else { continue };
        if slips < characters && near.is_none_or(|(least, _)| slips < least) {
            near = Some((slips, candidate));
            // Only a nearer one is of interest from here on.
            limit = slips.saturating_sub(1);
            if slips == 0 {
                break;
            }
        }
    }
    near.map(|(_, candidate)| candidate)
}

fn lower(text: &str) -> Vec<char> {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// How many slips lie between two names, by characters: one left out, one too many, a wrong one, or two in the wrong
/// order; `None` where there are more than a limit.
fn within(a: &[char], b: &[char], limit: usize) -> Option<usize> {
    // More than any two names have.
    const MANY: usize = usize::MAX / 2;
    let limit = limit.min(MANY - 1);
    let first = (0..=b.len()).map(|at| if at <= limit { at } else { MANY });
    let (mut before, mut last, mut row) = (vec![MANY; b.len() + 1], first.collect(), vec![MANY; b.len() + 1]);
    for (i, left) in a.iter().enumerate() {
        row.fill(MANY);
        row[0] = i + 1;
        // Farther apart than the limit are only more slips.
        let band = i.saturating_sub(limit)..b.len().min(i.saturating_add(limit).saturating_add(1));
        for (j, right) in b.iter().enumerate().take(band.end).skip(band.start) {
            let last: &Vec<usize> = &last;
            let mut least = (last[j] + usize::from(left != right)).min(row[j] + 1).min(last[j + 1] + 1);
            if i > 0 && j > 0 && *left == b[j - 1] && a[i - 1] == *right {
                least = least.min(before[j - 1] + 1);
            }
            row[j + 1] = least;
        }
        std::mem::swap(&mut before, &mut last);
        std::mem::swap(&mut last, &mut row);
    }
    Some(last[b.len()]).filter(|slips| *slips <= limit)
}

#[cfg(test)]
mod tests {
    use super::{lower, nearest, within};

    fn distance(a: &str, b: &str) -> usize {
        within(&lower(a), &lower(b), usize::MAX).expect("no limit")
    }

    #[test]
    fn a_limit_leaves_out_what_is_over_it_and_nothing_else() {
        let names =
            ["", "a", "ab", "ba", "abc", "bca", "stepId", "stpeId", "tsepdI", "stepKind", "kind", "abab"];
        for (a, b) in names.iter().flat_map(|a| names.map(|b| (*a, b))) {
            let slips = distance(a, b);
            for limit in 0..9 {
                let within = within(&lower(a), &lower(b), limit);
                assert_eq!(within, Some(slips).filter(|slips| *slips <= limit), "{a} {b} {limit}");
            }
        }
    }

    #[test]
    fn finds_what_was_meant() {
        assert_eq!(nearest("stepkind", ["stepId", "stepKind"]), Some("stepKind"));
        assert_eq!(
            nearest("taks", ["task", "report_dir"]),
            Some("task"),
            "two in the wrong order are one slip"
        );
        assert_eq!((distance("ab", "ba"), distance("abc", "ca"), distance("", "ab")), (1, 3, 2));
        assert_eq!(nearest("c", ["a", "b"]), None, "another letter is another name");
        assert_eq!(nearest("ng", ["ok", "no"]), None);
        assert_eq!(nearest("OK", ["ok", "ng"]), Some("ok"));
        assert_eq!(nearest("nxt", ["repeat", "next"]), Some("next"));
        assert_eq!(nearest("zzz", ["stepId", "stepKind"]), None);
        assert_eq!(nearest(&"x".repeat(100), [&*"x".repeat(99)]), None);
    }
}

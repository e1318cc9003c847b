//! Suggestions for mistyped names.

/// Longer names are not compared: they are not typed by hand, and the comparison is quadratic.
const NAME_CHARS_MAX: usize = 64;

/// The known name with the smallest edit distance, if the distance is small enough.
pub fn find_nearest_name<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let length = name.chars().count();
    if length > NAME_CHARS_MAX {
        return None;
    }
    // One edit in a name of two letters changes half of the name.
    let mut limit = if length < 3 { 0 } else { length / 3 };
    let name = lowercase_chars(name);
    let mut near = None;
    for candidate in known {
        // Each extra or missing character costs an edit, so names of very different length need no comparison.
        let characters = candidate.chars().count();
        if characters > NAME_CHARS_MAX || characters.abs_diff(length) > limit {
            continue;
        }
        let Some(slips) = measure_edit_distance(&name, &lowercase_chars(candidate), limit) else { continue };
        if slips < characters && near.is_none_or(|(least, _)| slips < least) {
            near = Some((slips, candidate));
            // From here on, only a smaller distance matters.
            limit = slips.saturating_sub(1);
            if slips == 0 {
                break;
            }
        }
    }
    near.map(|(_, candidate)| candidate)
}

fn lowercase_chars(text: &str) -> Vec<char> {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// The edit distance between two names in characters (deletion, insertion, substitution, transposition); `None` if it
/// exceeds the limit.
fn measure_edit_distance(a: &[char], b: &[char], limit: usize) -> Option<usize> {
    // More than the distance of any two names.
    const MANY: usize = usize::MAX / 2;
    let limit = limit.min(MANY - 1);
    let first = (0..=b.len()).map(|at| if at <= limit { at } else { MANY });
    let (mut before, mut last, mut row) = (vec![MANY; b.len() + 1], first.collect(), vec![MANY; b.len() + 1]);
    for (i, left) in a.iter().enumerate() {
        row.fill(MANY);
        row[0] = i + 1;
        // Cells farther from the diagonal than the limit exceed the limit.
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
    use super::{find_nearest_name, lowercase_chars, measure_edit_distance};

    fn distance(a: &str, b: &str) -> usize {
        measure_edit_distance(&lowercase_chars(a), &lowercase_chars(b), usize::MAX).expect("no limit")
    }

    #[test]
    fn only_distances_over_the_limit_are_excluded() {
        let names =
            ["", "a", "ab", "ba", "abc", "bca", "stepId", "stpeId", "tsepdI", "stepKind", "kind", "abab"];
        for (a, b) in names.iter().flat_map(|a| names.map(|b| (*a, b))) {
            let slips = distance(a, b);
            for limit in 0..9 {
                let within = measure_edit_distance(&lowercase_chars(a), &lowercase_chars(b), limit);
                assert_eq!(within, Some(slips).filter(|slips| *slips <= limit), "{a} {b} {limit}");
            }
        }
    }

    #[test]
    fn suggests_the_nearest_name() {
        assert_eq!(find_nearest_name("stepkind", ["stepId", "stepKind"]), Some("stepKind"));
        assert_eq!(
            find_nearest_name("taks", ["task", "report_dir"]),
            Some("task"),
            "two in the wrong order are one slip"
        );
        assert_eq!((distance("ab", "ba"), distance("abc", "ca"), distance("", "ab")), (1, 3, 2));
        assert_eq!(find_nearest_name("c", ["a", "b"]), None, "another letter is another name");
        assert_eq!(find_nearest_name("ng", ["ok", "no"]), None);
        assert_eq!(find_nearest_name("OK", ["ok", "ng"]), Some("ok"));
        assert_eq!(find_nearest_name("nxt", ["repeat", "next"]), Some("next"));
        assert_eq!(find_nearest_name("zzz", ["stepId", "stepKind"]), None);
        assert_eq!(find_nearest_name(&"x".repeat(100), [&*"x".repeat(99)]), None);
    }
}

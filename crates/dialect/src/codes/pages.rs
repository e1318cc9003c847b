//! All manual pages together.

use cuegate_flow::Code;

/// Names codes and writes their manual pages: one place for both, so that no code is without a page.
macro_rules! pages {
    ($($constant:ident = $name:literal: $page:literal)*) => {
        $(pub(crate) const $constant: &str = $name;)*

        /// The manual pages of this file's codes.
        pub(super) const PAGES: &[cuegate_flow::Code] =
            &[$(cuegate_flow::Code { name: $name, page: concat!($name, ": ", $page) }),*];
    };
}
pub(super) use pages;

/// Every code that loading a definition can report, besides `no-entry`, `step-name`, `unknown-target` and
/// `unknown-variable`,
/// which the check of the flow has.
pub fn codes() -> Vec<Code> {
    let files = [
        super::files::PAGES,
        super::agents::PAGES,
        super::complete::PAGES,
        super::check_flow::PAGES,
        super::steps::PAGES,
        super::prompts::PAGES,
        super::validators::PAGES,
        super::pieces::PAGES,
    ];
    let mut codes: Vec<Code> = files.into_iter().flatten().copied().collect();
    codes.sort_by_key(|code| code.name);
    codes
}

#[cfg(test)]
mod tests {
    use super::codes;

    #[test]
    fn every_code_is_unique_kebab_case_and_has_a_page() {
        let codes = codes();
        for pair in codes.windows(2) {
            assert_ne!(pair[0].name, pair[1].name);
        }
        for code in codes {
            assert!(
                code.name
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            );
            assert!(
                code.page.starts_with(&format!("{}: ", code.name)) && code.page.ends_with('\n'),
                "{}",
                code.name
            );
            assert!(code.page.matches("\n\n").count() >= 2, "{}: what it means, and what to do", code.name);
            assert!(code.page.lines().all(|line| line.chars().count() <= 110), "{}", code.name);
        }
    }
}

//! Definitions in, findings and drafts out. One program, so that it is built and linked once.
//!
//! Helpers beside tests are test code too, which `cfg(test)` tells clippy.

#[cfg(test)]
mod checks_agent;
#[cfg(test)]
mod checks_effect;
#[cfg(test)]
mod checks_matter;
#[cfg(test)]
mod checks_prompts;
#[cfg(test)]
mod checks_steps;
#[cfg(test)]
mod checks_unread;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod lowering;
#[cfg(test)]
mod piece_corpus;
#[cfg(test)]
mod piece_effect;
#[cfg(test)]
mod piece_findings;
#[cfg(test)]
mod piece_fuzz;
#[cfg(test)]
mod piece_normalized;
#[cfg(test)]
mod piece_page;
#[cfg(test)]
mod piece_prompts;
#[cfg(test)]
mod piece_support;
#[cfg(test)]
mod schema_cases;
#[cfg(test)]
mod support;

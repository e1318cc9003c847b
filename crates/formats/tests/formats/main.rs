//! Definitions in, findings and drafts out. One program, so that it is built and linked once.
//!
//! Helpers beside tests are test code too, which `cfg(test)` tells clippy.

#[cfg(test)]
mod behavior;
#[cfg(test)]
mod behavior_runs;
#[cfg(test)]
mod check_flow;
#[cfg(test)]
mod check_flow_random;
#[cfg(test)]
mod check_flow_runs;
#[cfg(test)]
mod checks_agent;
#[cfg(test)]
mod checks_answers;
#[cfg(test)]
mod checks_conditions;
#[cfg(test)]
mod checks_effect;
#[cfg(test)]
mod checks_matter;
#[cfg(test)]
mod checks_prompts;
#[cfg(test)]
mod checks_rows;
#[cfg(test)]
mod checks_sandbox;
#[cfg(test)]
mod checks_steps;
#[cfg(test)]
mod checks_unread;
#[cfg(test)]
mod checks_verdict;
#[cfg(test)]
mod complete;
#[cfg(test)]
mod complete_random;
#[cfg(test)]
mod complete_runs;
#[cfg(test)]
mod composite_runs;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod findings_step;
#[cfg(test)]
mod flow_findings;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod known_keys;
mod large;
#[cfg(test)]
mod levers;
#[cfg(test)]
mod lowering;
#[cfg(test)]
#[cfg(test)]
#[cfg(test)]
mod piece_answers;
#[cfg(test)]
mod piece_corpus;
#[cfg(test)]
mod piece_effect;
#[cfg(test)]
mod piece_findings;
#[cfg(test)]
mod piece_fuzz;
#[cfg(test)]
mod piece_hints;
#[cfg(test)]
mod piece_joins;
#[cfg(test)]
mod piece_members;
#[cfg(test)]
mod piece_normalized;
#[cfg(test)]
mod piece_prompts;
#[cfg(test)]
mod piece_random;
#[cfg(test)]
mod piece_runs;
#[cfg(test)]
mod piece_slips;
#[cfg(test)]
mod piece_support;
#[cfg(test)]
mod registry_ask_runs;
#[cfg(test)]
mod registry_drive;
#[cfg(test)]
mod registry_file_runs;
#[cfg(test)]
mod registry_guard_runs;
#[cfg(test)]
mod registry_page;
#[cfg(test)]
mod registry_word_runs;
#[cfg(test)]
mod schema_cases;
#[cfg(test)]
mod schemas_agree;
#[cfg(test)]
mod schemas_fit;
#[cfg(test)]
mod schemas_keys;
#[cfg(test)]
mod shown_where;
#[cfg(test)]
mod sizes;
#[cfg(test)]
mod support;
#[cfg(test)]
mod told_texts;
#[cfg(test)]
mod typos;
#[cfg(test)]
mod whole_schemas;

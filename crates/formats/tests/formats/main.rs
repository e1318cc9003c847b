//! Definitions in, findings and drafts out. One program, so that it is built and linked once.
//!
//! Helpers beside tests are test code too, which `cfg(test)` tells clippy.

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod finding_cases;
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
mod older {
    pub(crate) mod behavior;
    pub(crate) mod behavior_runs;
    pub(crate) mod check_flow;
    pub(crate) mod check_flow_random;
    pub(crate) mod check_flow_runs;
    pub(crate) mod complete;
    pub(crate) mod complete_random;
    pub(crate) mod complete_runs;
}
#[cfg(test)]
mod takt {
    pub(crate) mod answers;
    pub(crate) mod corpus;
    pub(crate) mod effect;
    pub(crate) mod findings;
    pub(crate) mod fuzz;
    pub(crate) mod generations;
    pub(crate) mod hints;
    pub(crate) mod joins;
    pub(crate) mod members;
    pub(crate) mod normalized;
    pub(crate) mod prompts;
    pub(crate) mod random;
    pub(crate) mod runs;
    pub(crate) mod takt_support;
    pub(crate) mod workflows;
}
#[cfg(test)]
mod registry {
    pub(crate) mod agent_checks;
    pub(crate) mod answer_checks;
    pub(crate) mod ask_runs;
    pub(crate) mod composite_runs;
    pub(crate) mod condition_checks;
    pub(crate) mod drive;
    pub(crate) mod effect_checks;
    pub(crate) mod file_runs;
    pub(crate) mod front_matter_checks;
    pub(crate) mod guard_runs;
    pub(crate) mod page;
    pub(crate) mod prompt_checks;
    pub(crate) mod recorded_rows;
    pub(crate) mod sandbox_checks;
    pub(crate) mod step_checks;
    pub(crate) mod unread_checks;
    pub(crate) mod verdict_checks;
    pub(crate) mod word_runs;
}
#[cfg(test)]
mod schemas {
    pub(crate) mod agree;
    pub(crate) mod cases;
    pub(crate) mod fit;
    pub(crate) mod keys;
    pub(crate) mod whole;
}

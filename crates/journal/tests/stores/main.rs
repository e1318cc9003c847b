//! Tests of the journals: a common suite, and tests of each implementation.

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod format;
mod held;
#[cfg(test)]
mod other_process;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod suites;

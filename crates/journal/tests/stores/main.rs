//! Tests of the journals, each implementation by itself and all of them by one suite.

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod format;
#[cfg(test)]
mod other_process;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod suites;

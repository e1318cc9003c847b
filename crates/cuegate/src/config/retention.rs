//! `[retention]`: how much of past runs is kept.

use serde::Deserialize;

use super::limit_values::PositiveCount;
use super::sandbox::deserialize_size;

/// `[retention]`: the limits of `cuegate gc`; without any it removes no run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionConfig {
    /// The most runs, the newest ones.
    pub runs: Option<PositiveCount>,
    /// Days since the end of a run.
    pub days: Option<PositiveCount>,
    /// The size of `.cuegate`, in bytes.
    #[serde(deserialize_with = "deserialize_size")]
    pub size: Option<u64>,
}

//! Texts that somebody else wrote: what is hidden in them is removed, and prompts mark them as data.

pub(crate) mod fence_key;
pub(crate) mod hidden_text;

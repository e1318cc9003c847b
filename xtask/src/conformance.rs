pub(crate) fn conformance(_dir: &std::path::Path) -> Result<(), String> { Err("not yet".to_owned()) }

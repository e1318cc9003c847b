//! `[sandbox]`: what the sandbox of every run shows, passes on and limits.

use cuegate_flow::model::sandbox::Host;
use cuegate_runner::sandbox::{SandboxLimits, SandboxOptions};
use serde::{Deserialize, Deserializer, de::Error as _};

/// `[sandbox]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxConfig {
    /// Where validators, quality gates and baseline checks run.
    pub validators: ExecutionSide,
    /// Writable folders of package managers, such as `~/.cargo/registry`.
    pub caches: Vec<String>,
    /// Further files and folders that are shown.
    pub readable: Vec<String>,
    /// Further environment variables that are passed on; `NAME*` passes all that begin so.
    pub environment: Vec<String>,
    /// Further hosts that are allowed.
    #[serde(deserialize_with = "deserialize_hosts")]
    pub hosts: Vec<Host>,
    /// The limit of private memory of one process: `8G`. By default three quarters of the machine's.
    #[serde(deserialize_with = "deserialize_size")]
    pub memory: Option<u64>,
    /// The limit of processes and threads.
    pub processes: Option<u64>,
    /// The limit of open files of one process.
    pub open_files: Option<u64>,
    /// The limit of the size of one file: `10G`.
    #[serde(deserialize_with = "deserialize_size")]
    pub file_size: Option<u64>,
    /// The limit of the size of the private `/tmp`: `4G`.
    #[serde(deserialize_with = "deserialize_size")]
    pub tmp_size: Option<u64>,
}

/// Where a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecutionSide {
    /// In the sandbox.
    #[default]
    Inside,
    /// Without the sandbox, with the rights of the user.
    Outside,
}

/// The default limits. They stop what runs away, not what is large.
const PROCESSES: u64 = 8192;
const OPEN_FILES: u64 = 65_536;
const FILE_SIZE: u64 = 64 << 30;
const TMP_SIZE: u64 = 16 << 30;

impl SandboxConfig {
    /// The settings in the form that the sandbox takes.
    pub fn options(&self) -> SandboxOptions {
        SandboxOptions {
            validators_outside: self.validators == ExecutionSide::Outside,
            caches: self.caches.clone(),
            readable: self.readable.clone(),
            environment: self.environment.clone(),
            hosts: self.hosts.clone(),
            limits: SandboxLimits {
                memory: self.memory.or_else(three_quarters_of_memory),
                processes: self.processes.or(Some(PROCESSES)),
                open_files: self.open_files.or(Some(OPEN_FILES)),
                file_size: self.file_size.or(Some(FILE_SIZE)),
                tmp_size: self.tmp_size.or(Some(TMP_SIZE)),
            },
        }
    }
}

/// Three quarters of the machine's memory, in bytes.
fn three_quarters_of_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some((kib << 10) / 4 * 3).filter(|limit| *limit >= MEMORY_MIN)
}

/// A smaller limit would stop usual programs, which reserve more than they use.
const MEMORY_MIN: u64 = 2 << 30;

fn deserialize_hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Host>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    let host = |name: &String| {
        Host::parse(name).map_err(|why| D::Error::custom(format!("`{name}` is not a host: {why}")))
    };
    names.iter().map(host).collect()
}

/// Reads a number of bytes, or a text such as `512M` or `8G`.
pub(super) fn deserialize_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a number of bytes, or a size such as `512M` or `8G`")]
    enum BytesOrText {
        Bytes(u64),
        Text(String),
    }
    let bytes = match BytesOrText::deserialize(deserializer)? {
        BytesOrText::Bytes(bytes) => Some(bytes),
        BytesOrText::Text(text) => parse_size(&text),
    };
    let at_least = 1 << 20;
    match bytes {
        Some(bytes) if bytes >= at_least => Ok(Some(bytes)),
        _ => Err(D::Error::custom("expected a size of at least 1M, such as `512M` or `8G`")),
    }
}

pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim().trim_end_matches(['B', 'b']).trim_end_matches('i');
    let (number, shift) = match text.chars().last()? {
        'K' | 'k' => (&text[..text.len() - 1], 10),
        'M' | 'm' => (&text[..text.len() - 1], 20),
        'G' | 'g' => (&text[..text.len() - 1], 30),
        'T' | 't' => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    number.trim().parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("1M", Some(1 << 20)),
            ("8 GiB", Some(8 << 30)),
            ("512MB", Some(512 << 20)),
            ("7", Some(7)),
            ("x", None),
        ] {
            assert_eq!(parse_size(text), bytes, "{text}");
        }
        assert_eq!(parse_size("99999999T"), None);
    }

    #[test]
    fn settings_are_checked() {
        let read =
            |text: &str| toml::from_str::<SandboxConfig>(text).map_err(|error| error.message().to_owned());
        let read_well =
            read("validators = \"outside\"\nhosts = [\"*.example.com\"]\nmemory = \"8G\"").unwrap();
        assert!(read_well.options().validators_outside && read_well.options().limits.memory == Some(8 << 30));
        insta::assert_snapshot!(read("validators = \"off\"").unwrap_err(), @"unknown variant `off`, expected `inside` or `outside`");
        insta::assert_snapshot!(read("hosts = [\"https://a\"]").unwrap_err(), @"`https://a` is not a host: it is an address of a page: a host has no `https://` and no path");
        insta::assert_snapshot!(read("memory = \"8X\"").unwrap_err(), @"expected a size of at least 1M, such as `512M` or `8G`");
        insta::assert_snapshot!(read("memory = true").unwrap_err(), @"a number of bytes, or a size such as `512M` or `8G`");
    }
}

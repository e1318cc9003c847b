//! Whether a recorded run was made on this machine in this folder.
//!
//! A journal is believed about the past and not about rights: a repository may bring a run folder, and machines share a journal.
//! So what a run may do is signed when it starts, with a key of the user, and counts later only if the signature is right.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use cuegate_engine::RunStarted;
use cuegate_journal::{RunId, random_token};
use cuegate_runner::{RunWriter, StateDir, now_ms, user_key_path};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha2::Sha256;

use super::start_run::Host;
use crate::Failure;

/// The file with the signatures of a run, a line each, in its folder.
const FILE: &str = "rights";
/// The limit of the size of a file that is read, in bytes.
const SIZE_MAX: u64 = 64 << 10;

/// Signs what a run may do before its first record, so that a kill leaves no run without. Where that fails the run goes on
/// later as one of another machine.
///
/// # Errors
/// When the journal refuses the run.
pub(super) fn sign_new_run(host: &Host, run: &RunId, started: &RunStarted) -> Result<(), Failure> {
    RunWriter::claim_lease(&*host.journal, run, now_ms())?;
    let _ = sign_rights(&host.home, run, started);
    Ok(())
}

/// Signs what a run may do, for whoever continues it here.
///
/// # Errors
/// When the key or the folder of the run cannot be read or written.
pub(crate) fn sign_rights(home: &StateDir, run: &RunId, started: &RunStarted) -> io::Result<()> {
    let signature = compute_signature(&read_or_create_key()?, home, run, started);
    let folder = home.run(run);
    fs::create_dir_all(&folder)?;
    if read_signatures(&folder).lines().any(|line| line == signature) {
        return Ok(());
    }
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(folder.join(FILE))?;
    file.write_all(format!("{signature}\n").as_bytes())
}

/// Whether what a run may do was signed on this machine, by this user, for this folder.
pub(crate) fn are_rights_own(home: &StateDir, run: &RunId, started: &RunStarted) -> bool {
    let Ok(Some(key)) = read_key() else { return false };
    let signature = compute_signature(&key, home, run, started);
    read_signatures(&home.run(run)).lines().any(|line| line == signature)
}

fn read_signatures(folder: &Path) -> String {
    let mut text = String::new();
    // A FIFO would be waited for.
    if folder.join(FILE).symlink_metadata().is_ok_and(|about| about.is_file())
        && let Ok(file) = fs::File::open(folder.join(FILE))
    {
        let _ = file.take(SIZE_MAX).read_to_string(&mut text);
    }
    text
}

/// The signature of what a run may do, as hexadecimal digits.
fn compute_signature(key: &[u8], home: &StateDir, run: &RunId, started: &RunStarted) -> String {
    let rights = json!({
        "run": run.as_str(),
        "root": home.root().as_os_str().as_encoded_bytes(),
        "sandboxed": started.sandboxed,
        "settings": started.settings,
        "agents": started.agents,
        "provider": started.provider,
        "script": started.script,
        "definition": [json!(started.sources), json!(started.base), json!(started.file), json!(started.set), json!(started.load)],
        "finalize": started.finalize,
        "github": started.github,
        "place": started.place,
    });
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    mac.update(rights.to_string().as_bytes());
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The key of the user. `None` if there is none yet.
///
/// # Errors
/// When others may read it, or it is no regular file.
fn read_key() -> io::Result<Option<Vec<u8>>> {
    let path = key_path()?;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let about = file.metadata()?;
    if !about.is_file() || about.uid() != rustix::process::geteuid().as_raw() || about.mode() & 0o077 != 0 {
        let why = format!("`{}` is not a file that only you may read", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    let mut key = Vec::new();
    file.take(SIZE_MAX).read_to_end(&mut key)?;
    Ok(Some(key).filter(|key| !key.is_empty()))
}

fn read_or_create_key() -> io::Result<Vec<u8>> {
    if let Some(key) = read_key()? {
        return Ok(key);
    }
    let path = key_path()?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // It gets its name when it is whole; another process may be first.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(format!("{}{}", random_token(), random_token()).as_bytes())?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(&path) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => return Err(error.error),
        _ => {}
    }
    read_key()?.ok_or_else(|| io::Error::other("the key is empty"))
}

fn key_path() -> io::Result<PathBuf> {
    user_key_path().ok_or_else(|| io::Error::other("neither `XDG_STATE_HOME` nor `HOME` is set"))
}

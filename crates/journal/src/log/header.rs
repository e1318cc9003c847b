//! The header of a log: what the file is, and who holds the run.
//!
//! Each of the two parts fits into one sector of a disk, which is written as a whole or not at all.

use sha2::{Digest as _, Sha256};

use super::frame::{read_u32, read_u64};
use crate::{Lease, Owner, RunId};

/// The length of the header, in bytes; the first frame follows.
pub(super) const HEADER_LENGTH: u64 = 4096;
/// Where the lease lies.
pub(super) const LEASE_OFFSET: u64 = SECTOR as u64;
/// The size of a part.
pub(super) const SECTOR: usize = 512;
/// The newest format that this program writes. A program reads a newer format as if it were its own, so a new format may
/// only add.
pub(super) const VERSION: u32 = 1;

/// How a log begins, for `file(1)` and for us.
const MAGIC: [u8; 16] = *b"cuegate run log\n";
/// Where the checksum of a part lies.
const CHECKSUM: usize = SECTOR - 32;

/// What a log is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogIdentity {
    pub version: u32,
    pub created_at_ms: i64,
    /// When it was created, in nanoseconds since the Unix epoch by the clock of the machine: orders runs of one
    /// millisecond.
    pub created_ns: u64,
    pub run: String,
}

impl LogIdentity {
    pub(super) fn encode(&self) -> [u8; SECTOR] {
        let mut sector = [0; SECTOR];
        sector[..16].copy_from_slice(&MAGIC);
        sector[16..20].copy_from_slice(&self.version.to_le_bytes());
        sector[24..32].copy_from_slice(&self.created_at_ms.to_le_bytes());
        sector[32..40].copy_from_slice(&self.created_ns.to_le_bytes());
        put_text(&mut sector, 40, &self.run);
        seal_sector(&mut sector, "");
        sector
    }

    /// Reads the first sector; the damage if it is none of a log.
    pub(super) fn parse(sector: &[u8]) -> Result<Self, &'static str> {
        if sector.len() < SECTOR || sector[..16] != MAGIC {
            return Err("it is not the log of a run");
        }
        let run = text_at(sector, 40)
            .filter(|_| is_sealed(sector, ""))
            .ok_or("its header does not match its checksum")?;
        Ok(LogIdentity {
            version: read_u32(sector, 16),
            created_at_ms: read_u64(sector, 24).cast_signed(),
            created_ns: read_u64(sector, 32),
            run: run.to_owned(),
        })
    }
}

/// Who holds a run, and how often it was acquired.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LeaseState {
    pub token: u64,
    pub owner: Option<Owner>,
}

impl LeaseState {
    /// The lease, if the run is held.
    pub(super) fn lease(&self, run: &RunId) -> Option<Lease> {
        Some(Lease { run: run.clone(), token: self.token, owner: self.owner.clone()? })
    }

    /// `None` if the names of the owner do not fit.
    pub(super) fn encode(&self, run: &RunId) -> Option<[u8; SECTOR]> {
        let mut sector = [0; SECTOR];
        sector[..8].copy_from_slice(&self.token.to_le_bytes());
        if let Some(owner) = &self.owner {
            sector[8] = 1;
            sector[12..16].copy_from_slice(&owner.pid.to_le_bytes());
            sector[16..24].copy_from_slice(&owner.started.to_le_bytes());
            let mut at = 24;
            for text in [&owner.boot, &owner.namespace, &owner.host] {
                if at + 4 + text.len() > CHECKSUM {
                    return None;
                }
                at = put_text(&mut sector, at, text);
            }
        }
        seal_sector(&mut sector, run.as_str());
        Some(sector)
    }

    /// `None` if it does not match its checksum.
    pub(super) fn parse(sector: &[u8], run: &RunId) -> Option<Self> {
        if sector.len() < SECTOR || !is_sealed(sector, run.as_str()) {
            return None;
        }
        let token = read_u64(sector, 0);
        if sector[8] == 0 {
            return Some(LeaseState { token, owner: None });
        }
        let boot = text_at(sector, 24)?;
        let namespace = text_at(sector, 28 + boot.len())?;
        let host = text_at(sector, 32 + boot.len() + namespace.len())?;
        let owner = Owner {
            pid: read_u32(sector, 12),
            started: read_u64(sector, 16),
            boot: boot.to_owned(),
            namespace: namespace.to_owned(),
            host: host.to_owned(),
            seen: None,
        };
        Some(LeaseState { token, owner: Some(owner) })
    }
}

/// Puts a text with its length; returns where it ends.
fn put_text(sector: &mut [u8], at: usize, text: &str) -> usize {
    let end = at + 4 + text.len();
    sector[at..at + 4].copy_from_slice(&(text.len() as u32).to_le_bytes());
    sector[at + 4..end].copy_from_slice(text.as_bytes());
    end
}

fn text_at(sector: &[u8], at: usize) -> Option<&str> {
    if at + 4 > CHECKSUM {
        return None;
    }
    let end = at.checked_add(4)?.checked_add(read_u32(sector, at) as usize).filter(|end| *end <= CHECKSUM)?;
    str::from_utf8(&sector[at + 4..end]).ok()
}

fn seal_sector(sector: &mut [u8; SECTOR], run: &str) {
    let checksum = sum_sector(sector, run);
    sector[CHECKSUM..].copy_from_slice(&checksum);
}

fn is_sealed(sector: &[u8], run: &str) -> bool {
    sector[CHECKSUM..SECTOR] == sum_sector(sector, run)
}

fn sum_sector(sector: &[u8], run: &str) -> [u8; 32] {
    let mut sum = Sha256::new();
    sum.update(run.as_bytes());
    sum.update(&sector[..CHECKSUM]);
    sum.finalize().into()
}

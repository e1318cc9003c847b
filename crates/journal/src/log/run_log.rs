//! The log of one run, as one process has it open.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::count_file::CountFile;
use super::file_io::{
    FileIdentity, FileLock, create_folder, file_identity, io_error, open_file, open_or_create_file,
    read_range, remove_folder_if_there, sync_folder,
};
use super::frame::{BlobPlace, Frame, encode_frame, place_blobs};
use super::header::{HEADER_LENGTH, LEASE_OFFSET, LeaseState, LogIdentity, SECTOR, VERSION};
use super::held_lock;
use super::inbox::Inbox;
use super::log_copy::LogCopy;
use super::reader::{Cursor, Found, FrameReader};
use crate::{Blob, Digest, Error, Lease, Liveness, Message, NewRecord, Owner, Record, RunId};

/// The log in the folder of a run.
pub(super) const LOG_FILE: &str = "log";
/// The log that is to take the place of one without records.
const NEW_LOG_FILE: &str = "log.new";
/// How far a log is filled with zeros in advance, in bytes: a quarter of its length, within these bounds.
const AHEAD_MIN: u64 = 64 << 10;
const AHEAD_MAX: u64 = 1 << 20;
/// How many bytes of records are read at once.
const PAGE_LENGTH: usize = 256 << 10;
/// How often a part of a header is read again that another process may be writing.
pub(super) const TRIES: u32 = 5;

/// The log of one run.
#[derive(Debug)]
pub(super) struct RunLog {
    run: RunId,
    folder: PathBuf,
    path: PathBuf,
    file: Arc<File>,
    identity: Option<FileIdentity>,
    created: LogIdentity,
    index: LogIndex,
    /// Where the last reader of records stopped.
    last_read: Option<Cursor>,
    /// How far the file is known to be zeros, if this process has written to it.
    zeroed: Option<u64>,
    count_file: CountFile,
}

/// What is known of the records without reading them again.
#[derive(Debug, Default)]
struct LogIndex {
    /// The place after the last record that was seen; `None` if no record was looked at yet.
    end: Option<Cursor>,
    /// Where texts lie and how long they are, by the first half of their digest.
    blobs: HashMap<u128, (u64, u32)>,
    /// The messages that records have consumed.
    consumed: BTreeSet<u64>,
}

impl LogIndex {
    fn place_blobs(&mut self, places: &[BlobPlace]) {
        let places = places.iter().map(|place| (shorten_digest(&place.digest), (place.offset, place.length)));
        self.blobs.extend(places);
    }

    fn end(&self) -> Cursor {
        self.end.unwrap_or(Cursor::START)
    }
}

/// Records that were read at once, and where the next ones begin; `None` at the end.
pub(super) struct RecordPage {
    pub records: Vec<Record>,
    pub next: Option<Cursor>,
    /// What is wrong behind them.
    pub damage: Option<Error>,
}

impl RunLog {
    /// Creates the log of a run in its folder.
    pub(super) fn create(folder: &Path, run: &RunId, at_ms: i64, is_synced: bool) -> Result<(), Error> {
        create_folder(folder)?;
        let path = folder.join(LOG_FILE);
        let file = open_or_create_file(&path)?;
        let _lock = FileLock::take(&file, &path, "create a run")?;
        // A process may have been killed between creating the file and writing its header.
        if file.metadata().map_err(io_error(&path, "look at"))?.len() > 0 {
            return Err(Error::Exists { run: run.clone() });
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let identity = LogIdentity {
            version: VERSION,
            created_at_ms: at_ms,
            created_ns: u64::try_from(now.as_nanos()).unwrap_or(u64::MAX),
            run: run.to_string(),
        };
        let mut header = vec![0; HEADER_LENGTH as usize];
        header[..SECTOR].copy_from_slice(&identity.encode());
        let lease = LeaseState::default().encode(run).expect("a free lease has no names");
        header[SECTOR..2 * SECTOR].copy_from_slice(&lease);
        file.write_all_at(&header, 0).map_err(io_error(&path, "write"))?;
        if is_synced {
            file.sync_all().map_err(io_error(&path, "sync"))?;
            // The folder may have been created by somebody who did not wait for the disk.
            sync_folder(folder)?;
            sync_folder(folder.parent().unwrap_or(Path::new("")))?;
        }
        Ok(())
    }

    /// Opens the log in the folder of a run; `None` if there is none.
    pub(super) fn open(folder: &Path, run: &RunId, is_writable: bool) -> Result<Option<RunLog>, Error> {
        let path = folder.join(LOG_FILE);
        let Some(file) = open_file(&path, is_writable)? else { return Ok(None) };
        let sector = read_sector(&file, 0).map_err(io_error(&path, "read"))?;
        if sector.is_empty() {
            return Ok(None);
        }
        let damaged = |what: String| Error::Damaged { path: path.clone(), what };
        let created = LogIdentity::parse(&sector).map_err(|what| damaged(what.to_owned()))?;
        if created.run != run.as_str() {
            return Err(damaged(format!("it is the log of run `{}`", created.run)));
        }
        Ok(Some(RunLog {
            run: run.clone(),
            folder: folder.to_owned(),
            identity: file_identity(&path),
            file: Arc::new(file),
            created,
            index: LogIndex::default(),
            last_read: None,
            zeroed: None,
            count_file: CountFile::of(folder),
            path,
        }))
    }

    /// When the run was created: in milliseconds by the caller's clock, and in nanoseconds by the machine's.
    pub(super) fn created(&self) -> (i64, u64) {
        (self.created.created_at_ms, self.created.created_ns)
    }

    /// Whether the file is still the one at its path.
    pub(super) fn is_in_place(&self) -> bool {
        self.identity.is_some() && file_identity(&self.path) == self.identity
    }

    /// Whether this process has written records.
    pub(super) fn is_written(&self) -> bool {
        self.zeroed.is_some()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn refuse_newer(&self) -> Result<(), Error> {
        match self.created.version > VERSION {
            true => Err(Error::TooNew {
                path: self.path.clone(),
                found: self.created.version,
                supported: VERSION,
            }),
            false => Ok(()),
        }
    }

    pub(super) fn read_lease(&self) -> Result<LeaseState, Error> {
        for _ in 0..TRIES {
            let sector = read_sector(&self.file, LEASE_OFFSET).map_err(io_error(&self.path, "read"))?;
            if let Some(state) = LeaseState::parse(&sector, &self.run) {
                return Ok(state);
            }
            // Another process may be writing it.
            thread::sleep(Duration::from_millis(1));
        }
        Err(self.damaged("its lease does not match its checksum".to_owned()))
    }

    /// The lease, if the run is held, with what its lock says of the holder. `may_write`: a file may be made to learn the time
    /// of the server.
    pub(super) fn read_holder(&self, may_write: bool) -> Result<Option<Lease>, Error> {
        let Some(mut lease) = self.read_lease()?.lease(&self.run) else { return Ok(None) };
        if !lease.owner.is_here() {
            lease.owner.seen = held_lock::see_holder(&self.folder, &lease.owner, may_write);
        }
        Ok(Some(lease))
    }

    fn write_lease(&self, state: &LeaseState, is_synced: bool) -> Result<(), Error> {
        let sector = state.encode(&self.run).ok_or_else(|| Error::TooLong { run: self.run.clone() })?;
        self.file.write_all_at(&sector, LEASE_OFFSET).map_err(io_error(&self.path, "write"))?;
        if is_synced {
            self.file.sync_data().map_err(io_error(&self.path, "sync"))?;
        }
        Ok(())
    }

    /// Takes the lease if the run is free or its holder is dead.
    pub(super) fn acquire(&mut self, owner: &Owner, is_synced: bool) -> Result<Lease, Error> {
        self.refuse_newer()?;
        let _lock = FileLock::take(&self.file, &self.path, "acquire a lease")?;
        if let Some(lease) = self.read_holder(true)?
            && lease.owner.liveness() != Liveness::Dead
        {
            return Err(Error::Held { lease: Box::new(lease) });
        }
        let held = self.read_lease()?;
        if *owner == Owner::current() {
            held_lock::lock_run(&self.folder)?;
        }
        let taken = LeaseState { token: held.token + 1, owner: Some(owner.clone()) };
        self.write_lease(&taken, is_synced)?;
        Ok(Lease { run: self.run.clone(), token: taken.token, owner: owner.clone() })
    }

    /// Releases a lease, and gives back the zeros after the last record.
    pub(super) fn release(&mut self, lease: &Lease) -> Result<(), Error> {
        self.refuse_newer()?;
        let file = self.file.clone();
        let _lock = FileLock::take(&file, &self.path, "release a lease")?;
        let held = self.read_lease()?;
        if held.token != lease.token || held.owner.is_none() {
            return Ok(());
        }
        if held.owner.as_ref() == Some(&Owner::current()) {
            held_lock::unlock_run(&self.folder);
        }
        if self.zeroed.take().is_some() {
            self.refresh_index()?;
            self.file.set_len(self.index.end().offset).map_err(io_error(&self.path, "cut"))?;
        }
        // Also where records did not wait: a run that nobody holds is on the disk as a whole.
        self.write_lease(&LeaseState { token: held.token, owner: None }, true)
    }

    /// Moves the folder of the run away, at once, for whoever holds its lease.
    pub(super) fn move_away(&mut self, lease: &Lease, to: &Path) -> Result<(), Error> {
        let _lock = FileLock::take(&self.file, &self.path, "remove a run")?;
        let held = self.read_lease()?;
        if held.owner.is_none() || held.token != lease.token {
            return Err(Error::LeaseLost { run: self.run.clone(), token: lease.token });
        }
        held_lock::unlock_run(&self.folder);
        remove_folder_if_there(to)?;
        fs::rename(&self.folder, to).map_err(io_error(&self.folder, "move"))
    }

    /// Appends a record; see [`Journal::append`](crate::Journal::append).
    pub(super) fn append(
        &mut self,
        lease: &Lease,
        expected_seq: u64,
        record: NewRecord<'_>,
        is_synced: bool,
    ) -> Result<(), Error> {
        self.refuse_newer()?;
        let file = self.file.clone();
        let _lock = FileLock::take(&file, &self.path, "append a record")?;
        let held = self.read_lease()?;
        if held.owner.is_none() || held.token != lease.token {
            return Err(Error::LeaseLost { run: self.run.clone(), token: lease.token });
        }
        self.refresh_index()?;
        let end = self.index.end();
        if end.seq != expected_seq {
            return Err(Error::Conflict { run: self.run.clone(), expected: expected_seq, found: end.seq });
        }
        self.refuse_consumed(&record)?;
        let mut blobs: Vec<&Blob> = Vec::new();
        for blob in record.blobs {
            if !blobs.contains(&blob) && !self.index.blobs.contains_key(&shorten_digest(&blob.digest())) {
                blobs.push(blob);
            }
        }
        let frame = encode_frame(&self.run, end.seq, &record, &blobs, is_synced)
            .ok_or_else(|| Error::TooLong { run: self.run.clone() })?;
        let next = Cursor { seq: end.seq + 1, offset: end.offset + frame.len() as u64 };
        if let Err(error) = self.write_frame(&frame, end.offset, next.offset, is_synced) {
            // How much of it was written is unknown: what follows is cut off before the next record.
            self.zeroed = None;
            return Err(error);
        }
        self.index.end = Some(next);
        self.index.consumed.extend(record.consumes.iter().map(|id| id.0));
        self.index.place_blobs(&place_blobs(&frame, end.offset, &blobs));
        // After a loss of power the count could be ahead of a log that is not synced.
        if is_synced { self.count_file.set(next.seq) } else { Ok(()) }
    }

    /// Appends records of another run, and one more; see [`Journal::append_copy`](crate::Journal::append_copy).
    pub(super) fn append_copy(
        &mut self,
        lease: &Lease,
        source: &RunLog,
        count: u64,
        then: NewRecord<'_>,
        is_synced: bool,
    ) -> Result<(), Error> {
        self.refuse_newer()?;
        let file = self.file.clone();
        let _lock = FileLock::take(&file, &self.path, "append records")?;
        let held = self.read_lease()?;
        if held.owner.is_none() || held.token != lease.token {
            return Err(Error::LeaseLost { run: self.run.clone(), token: lease.token });
        }
        self.refresh_index()?;
        let found = self.index.end().seq;
        if found > 0 {
            return Err(Error::Conflict { run: self.run.clone(), expected: 0, found });
        }
        // A new file takes the place of this one at once, so that a kill leaves no part of the records.
        let path = self.folder.join(NEW_LOG_FILE);
        let header = read_range(&self.file, 0, HEADER_LENGTH).map_err(io_error(&self.path, "read"))?;
        let mut copy = LogCopy::create(&path, &self.run, &header, is_synced)?;
        let mut failed = None;
        source.walk(Cursor::START, &mut |frame, _| {
            if copy.length() == count {
                return false;
            }
            failed = copy.add_frame(frame, &source.file).err();
            failed.is_none()
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if copy.length() < count {
            return Err(Error::Conflict { run: source.run.clone(), expected: count, found: copy.length() });
        }
        copy.add_record(&then)?;
        let written = copy.finish()?;
        fs::rename(&path, &self.path).map_err(io_error(&self.path, "replace"))?;
        if is_synced {
            sync_folder(&self.folder)?;
        }
        self.identity = file_identity(&self.path);
        (self.file, self.index, self.last_read, self.zeroed) =
            (Arc::new(written), LogIndex::default(), None, None);
        if is_synced { self.count_file.set(count + 1) } else { Ok(()) }
    }

    /// Writes a frame into zeros.
    fn write_frame(&mut self, frame: &[u8], at: u64, end: u64, is_synced: bool) -> Result<(), Error> {
        let failed = |doing| io_error(&self.path, doing);
        if self.zeroed.is_none() {
            // What a killed process left behind the last record is none.
            self.file.set_len(at).map_err(failed("cut"))?;
        }
        let zeroed = self.zeroed.unwrap_or(at);
        let mut reserved = None;
        if end > zeroed && is_synced {
            reserved = self.write_with_zeros(frame, at, end)?;
        }
        if reserved.is_none() {
            self.file.write_all_at(frame, at).map_err(failed("write"))?;
        }
        if is_synced {
            self.file.sync_data().map_err(failed("sync"))?;
        }
        self.zeroed = Some(reserved.unwrap_or(zeroed.max(end)));
        Ok(())
    }

    /// Writes a frame and zeros after it; returns where they end. `None` if the disk has no space for so many.
    fn write_with_zeros(&self, frame: &[u8], at: u64, end: u64) -> Result<Option<u64>, Error> {
        let ahead = (end / 4).clamp(AHEAD_MIN, AHEAD_MAX);
        let whole = (end + ahead).next_multiple_of(HEADER_LENGTH);
        let mut bytes = frame.to_vec();
        bytes.resize((whole - at) as usize, 0);
        if self.file.write_all_at(&bytes, at).is_ok() {
            return Ok(Some(whole));
        }
        self.file.set_len(at).map_err(io_error(&self.path, "cut"))?;
        Ok(None)
    }

    /// Fails if a message to consume is not in the inbox, or is to be consumed twice.
    fn refuse_consumed(&mut self, record: &NewRecord<'_>) -> Result<(), Error> {
        if record.consumes.is_empty() {
            return Ok(());
        }
        let mut waiting: BTreeSet<u64> = self.list_waiting()?.iter().map(|message| message.id.0).collect();
        match record.consumes.iter().find(|id| !waiting.remove(&id.0)) {
            Some(&id) => Err(Error::NoSuchMessage { run: self.run.clone(), id }),
            None => Ok(()),
        }
    }

    /// Posts a message.
    pub(super) fn post(
        &mut self,
        at_ms: i64,
        body: &[u8],
        is_synced: bool,
    ) -> Result<crate::MessageId, Error> {
        self.refuse_newer()?;
        self.refresh_index()?;
        let used = self.index.consumed.last().copied();
        Inbox::of(&self.folder, &self.run).post(at_ms, body, used, is_synced)
    }

    /// The messages that no record has consumed.
    pub(super) fn list_waiting(&mut self) -> Result<Vec<Message>, Error> {
        let inbox = Inbox::of(&self.folder, &self.run);
        let used = self.index.consumed.last().copied();
        if used.is_none() && !inbox.exists() {
            return Ok(Vec::new());
        }
        // Read before the records, which may consume what is posted meanwhile.
        let mut messages = inbox.read(used)?;
        self.refresh_index()?;
        messages.retain(|message| !self.index.consumed.contains(&message.id.0));
        Ok(messages)
    }

    /// A text by its digest.
    pub(super) fn blob(&mut self, digest: &Digest) -> Result<Option<Vec<u8>>, Error> {
        let refreshed = self.refresh_index();
        // What is whole before a damage can be read.
        let Some(&(offset, length)) = self.index.blobs.get(&shorten_digest(digest)) else {
            return refreshed.map(|()| None);
        };
        let bytes =
            read_range(&self.file, offset, u64::from(length)).map_err(io_error(&self.path, "read"))?;
        match Digest::for_bytes(&bytes) == *digest {
            true => Ok(Some(bytes)),
            false => Err(self.damaged(format!("the content of blob {digest} does not match its digest"))),
        }
    }

    /// Whether there is a record. That some are lost is found by reading them.
    pub(super) fn has_records(&self) -> Result<bool, Error> {
        if self.count_file.get()? > 0 {
            return Ok(true);
        }
        let mut has_one = false;
        self.walk(Cursor::START, &mut |_, _| {
            has_one = true;
            false
        })?;
        Ok(has_one)
    }

    /// Where to read from to get the records from `from_seq` on, as far as known.
    pub(super) fn cursor_before(&self, from_seq: u64) -> Cursor {
        let known = [self.index.end, self.last_read].into_iter().flatten();
        let before = known.filter(|cursor| cursor.seq <= from_seq);
        before.max_by_key(|cursor| cursor.seq).unwrap_or(Cursor::START)
    }

    /// Reads records from a place on, of which those before `from_seq` are left out.
    pub(super) fn read_page(&mut self, from: Cursor, from_seq: u64) -> Result<RecordPage, Error> {
        let (mut at, mut length, mut records) = (from, 0, Vec::new());
        let mut is_end = true;
        let walked = self.walk(from, &mut |frame, place| {
            at = place;
            if frame.head.seq >= from_seq {
                length += frame.body.len();
                records.push(Record {
                    seq: frame.head.seq,
                    at_ms: frame.head.at_ms,
                    body: frame.body.to_vec(),
                });
            }
            is_end = length < PAGE_LENGTH;
            is_end
        });
        self.last_read = Some(at);
        Ok(RecordPage { records, next: (!is_end).then_some(at), damage: walked.err() })
    }

    /// Takes new records into the index.
    fn refresh_index(&mut self) -> Result<(), Error> {
        if let Some(end) = self.index.end {
            // Nearly always there is nothing new: zeros, or the end of the file.
            let mut around = [0; 16];
            let read =
                self.file.read_at(&mut around, end.offset - 8).map_err(io_error(&self.path, "read"))?;
            let is_cut = read < 8 || (read < 16 && self.zeroed.is_some_and(|zeroed| zeroed > end.offset));
            if is_cut {
                return Err(self.damaged("it was cut while it was in use".to_owned()));
            }
            if around[8..] == [0; 8] {
                return Ok(());
            }
        }
        let mut index = std::mem::take(&mut self.index);
        let mut end = index.end();
        let walked = self.walk(end, &mut |frame, next| {
            end = next;
            index.consumed.extend(&frame.consumes);
            index.place_blobs(&frame.blobs);
            true
        });
        index.end = walked.is_ok().then_some(end).or(index.end);
        self.index = index;
        walked
    }

    /// Visits the whole frames from a place on, each with the place after it, until `visit` says that it is enough.
    fn walk(&self, from: Cursor, visit: &mut dyn FnMut(&Frame<'_>, Cursor) -> bool) -> Result<(), Error> {
        // Read before the log, which only grows.
        let noted = self.count_file.get()?;
        let failed = || io_error(&self.path, "read");
        let mut reader = FrameReader::new(&self.file, &self.run);
        let (mut at, mut doubts) = (from, 0);
        loop {
            let is_bad = match reader.frame_at(at).map_err(failed())? {
                Found::Frame(frame) => {
                    (at, doubts) = (at.after(&frame.head), 0);
                    match visit(&frame, at) {
                        true => continue,
                        false => return Ok(()),
                    }
                }
                Found::End => false,
                Found::Bad => true,
            };
            // Whoever reads from the start looks behind the end, too.
            let has_more = (is_bad || noted > at.seq || from == Cursor::START)
                && self.has_records_behind(&mut reader, at)?;
            if !has_more && noted <= at.seq {
                return Ok(());
            }
            // Another process may have written this record, and those behind it, since it was read.
            if doubts < TRIES {
                doubts += 1;
                reader.reread();
                continue;
            }
            let (seq, run) = (at.seq, &self.run);
            return Err(match (is_bad, has_more) {
                (true, _) => self.damaged(format!("record {seq} of run `{run}` does not match its checksum")),
                (false, true) => {
                    self.damaged(format!("record {seq} of run `{run}` is missing, and later ones are there"))
                }
                (false, false) => Error::RecordsLost {
                    path: self.path.clone(),
                    run: run.clone(),
                    found: seq,
                    noted,
                    note: self.count_file.path().to_owned(),
                },
            });
        }
    }

    /// Whether a whole record follows behind a place where none is, so that the one that was there is damaged. After a
    /// loss of power, and only then, records that did not wait for the disk may be there without earlier ones.
    fn has_records_behind(&self, reader: &mut FrameReader<'_>, at: Cursor) -> Result<bool, Error> {
        let failed = || io_error(&self.path, "read");
        if !reader.has_frame_behind(at, false).map_err(failed())? {
            return Ok(false);
        }
        let boot = Owner::current().boot;
        let lost_power = self.read_lease()?.owner.is_some_and(|owner| owner.boot != boot || boot.is_empty());
        Ok(!lost_power || reader.has_frame_behind(at, true).map_err(failed())?)
    }

    fn damaged(&self, what: String) -> Error {
        Error::Damaged { path: self.path.clone(), what }
    }
}

/// Reads a sector; empty if the file is.
fn read_sector(file: &File, offset: u64) -> io::Result<Vec<u8>> {
    let mut sector = vec![0; SECTOR];
    let mut filled = 0;
    while filled < SECTOR {
        match file.read_at(&mut sector[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    sector.truncate(filled);
    Ok(sector)
}

/// Enough of a digest to find a text by.
pub(super) fn shorten_digest(digest: &Digest) -> u128 {
    u128::from_le_bytes(digest.as_bytes()[..16].try_into().expect("a digest has 32 bytes"))
}

//! The inbox of a run: the messages that any process may post.
//!
//! A message stays in the file. Whether it is consumed, the records of the run say.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::file_io::{FileLock, io_error, open_file, open_or_create_file, sync_folder};
use super::frame::{ALIGNMENT, read_u32, read_u64};
use super::run_log::TRIES;
use crate::{Error, Message, MessageId, RunId};

/// The file in the folder of a run.
pub(super) const INBOX_FILE: &str = "inbox";
/// How each message begins.
const MAGIC: [u8; 4] = *b"Cuem";
/// The length of the header: the number of messages, and its checksum.
const HEADER_LENGTH: usize = 64;
/// The length of what precedes the body of a message.
const HEAD_LENGTH: usize = 56;
/// Bytes of it that the checksum covers.
const SUMMED: usize = 24;

/// The inbox of one run.
pub(super) struct Inbox<'r> {
    run: &'r RunId,
    path: PathBuf,
}

/// What is in the file.
struct InboxContent {
    messages: Vec<Message>,
    /// Where the next message goes.
    end: u64,
}

impl<'r> Inbox<'r> {
    pub(super) fn of(folder: &Path, run: &'r RunId) -> Self {
        Inbox { run, path: folder.join(INBOX_FILE) }
    }

    pub(super) fn exists(&self) -> bool {
        self.path.exists()
    }

    /// All messages that were ever posted, oldest first. `used` is the greatest id that a record has consumed.
    pub(super) fn read(&self, used: Option<u64>) -> Result<Vec<Message>, Error> {
        let messages = match open_file(&self.path, false)? {
            Some(file) => self.read_while_written(&file)?,
            None => Vec::new(),
        };
        let last = messages.last().map(|message| message.id.0);
        match used.filter(|used| last < Some(*used)) {
            Some(used) => Err(self.damaged(format!("message {used} of run `{}` is missing", self.run))),
            None => Ok(messages),
        }
    }

    /// Reads without the lock: another process may be writing the header.
    fn read_while_written(&self, file: &File) -> Result<Vec<Message>, Error> {
        let mut read = self.read_content(file);
        for _ in 0..TRIES {
            if !matches!(read, Err(Error::Damaged { .. })) {
                break;
            }
            thread::sleep(Duration::from_millis(1));
            read = self.read_content(file);
        }
        Ok(read?.messages)
    }

    /// Adds a message. `used` is the greatest id that a record has consumed: if the file was lost, ids go on after it.
    pub(super) fn post(
        &self,
        at_ms: i64,
        body: &[u8],
        used: Option<u64>,
        is_synced: bool,
    ) -> Result<MessageId, Error> {
        let failed = |doing| io_error(&self.path, doing);
        let is_new = !self.path.exists();
        let file = open_or_create_file(&self.path)?;
        let _lock = FileLock::take(&file, &self.path, "post a message")?;
        let InboxContent { messages, end } = self.read_content(&file)?;
        let last = messages.last().map(|message| message.id.0).max(used);
        let id = MessageId(last.map_or(1, |last| last + 1));
        let length = u32::try_from(body.len()).map_err(|_| Error::TooLong { run: self.run.clone() })?;
        let mut bytes = Vec::with_capacity(HEAD_LENGTH + body.len());
        bytes.extend(MAGIC);
        bytes.extend(length.to_le_bytes());
        bytes.extend(id.0.to_le_bytes());
        bytes.extend(at_ms.to_le_bytes());
        let checksum = sum_parts(self.run, &[&bytes, body]);
        bytes.extend(checksum);
        bytes.extend(body);
        // What a killed process left is no message.
        file.set_len(end).map_err(failed("cut"))?;
        file.write_all_at(&bytes, end).map_err(failed("write"))?;
        if is_synced {
            file.sync_data().map_err(failed("sync"))?;
        }
        let count = (messages.len() as u64 + 1).to_le_bytes();
        let mut header = Vec::from(count);
        header.extend(sum_parts(self.run, &[&count]));
        header.resize(HEADER_LENGTH, 0);
        file.write_all_at(&header, 0).map_err(failed("write"))?;
        if is_new && is_synced {
            file.sync_data().map_err(failed("sync"))?;
            sync_folder(self.path.parent().unwrap_or(Path::new("")))?;
        }
        Ok(id)
    }

    fn read_content(&self, file: &File) -> Result<InboxContent, Error> {
        let mut bytes = Vec::new();
        let mut chunk = vec![0; 16 << 10];
        loop {
            match file.read_at(&mut chunk, bytes.len() as u64) {
                Ok(0) => break,
                Ok(read) => bytes.extend(&chunk[..read]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => return Err(io_error(&self.path, "read")(source)),
            }
        }
        let (mut messages, mut at) = (Vec::<Message>::new(), HEADER_LENGTH);
        while let Some(message) = bytes.get(at..).and_then(|rest| parse_message(self.run, rest)) {
            if messages.last().is_some_and(|last| last.id >= message.id) {
                break;
            }
            at += (HEAD_LENGTH + message.body.len()).next_multiple_of(ALIGNMENT as usize);
            messages.push(message);
        }
        let header = bytes.get(..HEADER_LENGTH).filter(|header| header.iter().any(|byte| *byte != 0));
        let noted = match header {
            // A process was killed before it had posted the first message.
            None => 0,
            Some(header) if header[8..40] == sum_parts(self.run, &[&header[..8]]) => read_u64(header, 0),
            Some(_) => return Err(self.damaged("its header does not match its checksum".to_owned())),
        };
        if noted > messages.len() as u64 {
            let what = format!(
                "message {} of run `{}` is missing or does not match its checksum",
                messages.len() + 1,
                self.run
            );
            return Err(self.damaged(what));
        }
        Ok(InboxContent { messages, end: at as u64 })
    }

    fn damaged(&self, what: String) -> Error {
        Error::Damaged { path: self.path.clone(), what }
    }
}

/// Reads the message with which some bytes begin; `None` if it is not whole.
fn parse_message(run: &RunId, bytes: &[u8]) -> Option<Message> {
    if bytes.len() < HEAD_LENGTH || bytes[..4] != MAGIC {
        return None;
    }
    let body = bytes.get(HEAD_LENGTH..HEAD_LENGTH.checked_add(read_u32(bytes, 4) as usize)?)?;
    let is_whole = bytes[SUMMED..HEAD_LENGTH] == sum_parts(run, &[&bytes[..SUMMED], body]);
    is_whole.then(|| Message {
        id: MessageId(read_u64(bytes, 8)),
        at_ms: read_u64(bytes, 16).cast_signed(),
        body: body.to_vec(),
    })
}

fn sum_parts(run: &RunId, parts: &[&[u8]]) -> [u8; 32] {
    let mut sum = Sha256::new();
    sum.update(run.as_str().as_bytes());
    sum.update([0]);
    for part in parts {
        sum.update(part);
    }
    sum.finalize().into()
}

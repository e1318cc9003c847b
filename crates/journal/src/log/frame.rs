//! How a record is laid out in a log.
//!
//! A frame is: the head, the ids of the messages that the record consumes, the table of its texts, its body, and the
//! texts. All numbers are little endian. The checksum covers all of it, so that a frame is whole or none.

use sha2::{Digest as _, Sha256};

use crate::{Blob, Digest, NewRecord, RunId};

/// The length of the head, in bytes.
pub(super) const HEAD_LENGTH: usize = 80;
/// Frames begin at multiples of this.
pub(super) const ALIGNMENT: u64 = 8;
/// How each frame begins.
pub(super) const MAGIC: [u8; 4] = *b"Cueg";

/// Bytes of the head that the checksum covers.
const SUMMED: usize = 48;
/// The length of an entry of the table of texts: a digest, a length, padding.
const ENTRY_LENGTH: usize = 40;
/// The record was written with a wait for the disk: all before it is there, or is damaged.
const SYNCED: u32 = 1;

/// The head of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameHead {
    /// Whether its writer waited for the disk.
    pub is_synced: bool,
    pub seq: u64,
    pub at_ms: i64,
    /// The length of the whole frame, in bytes.
    pub length: u64,
    body: u32,
    consumes: u32,
    blobs: u32,
    checksum: [u8; 32],
}

/// Where a text lies in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlobPlace {
    pub digest: Digest,
    pub offset: u64,
    /// In bytes.
    pub length: u32,
}

/// A verified frame.
#[derive(Debug)]
pub(super) struct Frame<'b> {
    pub head: FrameHead,
    pub consumes: Vec<u64>,
    pub blobs: Vec<BlobPlace>,
    pub body: &'b [u8],
}

impl FrameHead {
    /// Reads a head. `None` if these bytes are no head.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < HEAD_LENGTH || bytes[..4] != MAGIC {
            return None;
        }
        Some(FrameHead {
            is_synced: read_u32(bytes, 4) & SYNCED != 0,
            seq: read_u64(bytes, 8),
            at_ms: read_u64(bytes, 16).cast_signed(),
            body: read_u32(bytes, 24),
            consumes: read_u32(bytes, 28),
            blobs: read_u32(bytes, 32),
            length: read_u64(bytes, 40),
            checksum: bytes[SUMMED..HEAD_LENGTH].try_into().ok()?,
        })
    }

    /// The length of the part before the texts, in bytes.
    pub(super) fn length_before_texts(&self) -> usize {
        HEAD_LENGTH + 8 * self.consumes as usize + ENTRY_LENGTH * self.blobs as usize + self.body as usize
    }
}

impl<'b> Frame<'b> {
    /// Reads the frame of these bytes, which begin at `offset`. `None` if the checksum or a length is wrong.
    pub(super) fn parse(run: &RunId, head: FrameHead, bytes: &'b [u8], offset: u64) -> Option<Self> {
        if sum_frame(run, &bytes[..SUMMED], &bytes[HEAD_LENGTH..]) != head.checksum {
            return None;
        }
        let table = HEAD_LENGTH + 8 * head.consumes as usize;
        let body = table + ENTRY_LENGTH * head.blobs as usize;
        let texts = head.length_before_texts();
        if texts > bytes.len() {
            return None;
        }
        let consumes = (HEAD_LENGTH..table).step_by(8).map(|at| read_u64(bytes, at)).collect();
        let mut text = offset + texts as u64;
        let blobs = bytes[table..body].chunks_exact(ENTRY_LENGTH).map(|entry| {
            let digest = Digest::from_bytes(entry[..32].try_into().expect("a digest has 32 bytes"));
            let place = BlobPlace { digest, offset: text, length: read_u32(entry, 32) };
            text += u64::from(place.length);
            place
        });
        let blobs: Vec<BlobPlace> = blobs.collect();
        (text.next_multiple_of(ALIGNMENT) == offset + head.length).then_some(Frame {
            head,
            consumes,
            blobs,
            body: &bytes[body..texts],
        })
    }
}

/// Writes a record as a frame. `None` if it is longer than a frame can say: 4 GiB for the body or a text.
pub(super) fn encode_frame(
    run: &RunId,
    seq: u64,
    record: &NewRecord<'_>,
    blobs: &[&Blob],
    is_synced: bool,
) -> Option<Vec<u8>> {
    let texts: usize = blobs.iter().map(|blob| blob.bytes().len()).sum();
    let summed = HEAD_LENGTH + 8 * record.consumes.len() + ENTRY_LENGTH * blobs.len() + record.body.len();
    let length = (summed + texts).next_multiple_of(ALIGNMENT as usize);
    let mut frame = Vec::with_capacity(length);
    frame.extend(MAGIC);
    frame.extend(if is_synced { SYNCED } else { 0 }.to_le_bytes());
    frame.extend(seq.to_le_bytes());
    frame.extend(record.at_ms.to_le_bytes());
    frame.extend(u32::try_from(record.body.len()).ok()?.to_le_bytes());
    frame.extend(u32::try_from(record.consumes.len()).ok()?.to_le_bytes());
    frame.extend(u32::try_from(blobs.len()).ok()?.to_le_bytes());
    frame.extend([0; 4]);
    frame.extend((length as u64).to_le_bytes());
    frame.extend([0; 32]);
    for id in record.consumes {
        frame.extend(id.0.to_le_bytes());
    }
    for blob in blobs {
        frame.extend(blob.digest().as_bytes());
        frame.extend(u32::try_from(blob.bytes().len()).ok()?.to_le_bytes());
        frame.extend([0; 4]);
    }
    frame.extend(record.body);
    for blob in blobs {
        frame.extend(blob.bytes());
    }
    frame.resize(length, 0);
    let checksum = sum_frame(run, &frame[..SUMMED], &frame[HEAD_LENGTH..]);
    frame[SUMMED..HEAD_LENGTH].copy_from_slice(&checksum);
    Some(frame)
}

/// Where the texts of a frame are that [`encode_frame`] made, if it is written at `offset`.
pub(super) fn place_blobs(frame: &[u8], offset: u64, blobs: &[&Blob]) -> Vec<BlobPlace> {
    let head = FrameHead::parse(frame).expect("it was just written");
    let mut at = offset + head.length_before_texts() as u64;
    let place = |blob: &&Blob| {
        let length = blob.bytes().len() as u32;
        let place = BlobPlace { digest: blob.digest(), offset: at, length };
        at += u64::from(length);
        place
    };
    blobs.iter().map(place).collect()
}

/// The run is part of the sum, so that no frame of another run is taken for one of this run.
fn sum_frame(run: &RunId, head: &[u8], rest: &[u8]) -> [u8; 32] {
    let mut sum = Sha256::new();
    sum.update(run.as_str().as_bytes());
    sum.update([0]);
    sum.update(head);
    sum.update(rest);
    sum.finalize().into()
}

pub(super) fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(super) fn read_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

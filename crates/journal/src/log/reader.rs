//! Reads the frames of a log one after another.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::frame::{ALIGNMENT, Frame, FrameHead, HEAD_LENGTH, MAGIC};
use super::header::HEADER_LENGTH;
use crate::RunId;

/// The number of bytes that are read at once.
const WINDOW: usize = 64 << 10;

/// A place between two frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The record that begins here.
    pub seq: u64,
    pub offset: u64,
}

impl Cursor {
    pub(super) const START: Cursor = Cursor { seq: 0, offset: HEADER_LENGTH };

    /// The place after a frame.
    pub(super) fn after(self, frame: &FrameHead) -> Cursor {
        Cursor { seq: self.seq + 1, offset: self.offset + frame.length }
    }
}

/// What stands at a place.
#[derive(Debug)]
pub(super) enum Found<'b> {
    Frame(Frame<'b>),
    /// Zeros, or the end of the file.
    End,
    /// Neither: a frame that was cut off while it was written, or damage.
    Bad,
}

/// Reads a log through a window, so that small frames do not cost a system call each.
pub(super) struct FrameReader<'f> {
    file: &'f File,
    run: &'f RunId,
    window: Vec<u8>,
    /// Where the window begins in the file.
    start: u64,
    /// The size of the file when it was last needed.
    size: u64,
}

impl<'f> FrameReader<'f> {
    pub(super) fn new(file: &'f File, run: &'f RunId) -> Self {
        FrameReader { file, run, window: Vec::new(), start: 0, size: 0 }
    }

    /// What stands at a place.
    pub(super) fn frame_at(&mut self, at: Cursor) -> io::Result<Found<'_>> {
        let head = self.bytes(at.offset, HEAD_LENGTH)?;
        if head.iter().all(|byte| *byte == 0) {
            return Ok(Found::End);
        }
        let Some(head) = FrameHead::parse(head).filter(|head| head.seq == at.seq) else {
            return Ok(Found::Bad);
        };
        let end = at.offset.saturating_add(head.length);
        if end > self.size {
            self.size = self.file.metadata()?.len();
        }
        let length = head.length as usize;
        if length < head.length_before_texts() || end > self.size {
            return Ok(Found::Bad);
        }
        let run = self.run;
        let bytes = self.bytes(at.offset, length)?;
        Ok(match bytes.len() == length {
            true => Frame::parse(run, head, bytes, at.offset).map_or(Found::Bad, Found::Frame),
            false => Found::Bad,
        })
    }

    /// Whether a whole frame of a later record follows somewhere behind this place; with `synced` one whose writer waited
    /// for the disk.
    pub(super) fn has_frame_behind(&mut self, at: Cursor, synced: bool) -> io::Result<bool> {
        let size = self.file.metadata()?.len();
        let mut offset = at.offset + ALIGNMENT;
        while offset < size {
            let bytes = self.bytes(offset, WINDOW)?;
            if bytes.len() <= HEAD_LENGTH {
                break;
            }
            // A head can lie across the end of the window.
            let next = offset + ((bytes.len() - HEAD_LENGTH) as u64).next_multiple_of(ALIGNMENT);
            let starts = (0..bytes.len()).step_by(ALIGNMENT as usize);
            let heads: Vec<(u64, FrameHead)> = starts
                .filter(|at| bytes[*at..].starts_with(&MAGIC))
                .filter_map(|at| Some((offset + at as u64, FrameHead::parse(&bytes[at..])?)))
                .collect();
            for (offset, head) in heads {
                let later = Cursor { seq: head.seq, offset };
                if (head.is_synced || !synced)
                    && head.seq > at.seq
                    && matches!(self.frame_at(later)?, Found::Frame(_))
                {
                    return Ok(true);
                }
            }
            offset = next;
        }
        Ok(false)
    }

    /// Forgets what was read.
    pub(super) fn reread(&mut self) {
        self.window.clear();
    }

    /// The bytes at an offset; fewer at the end of the file.
    fn bytes(&mut self, offset: u64, length: usize) -> io::Result<&[u8]> {
        let is_inside =
            offset >= self.start && offset + length as u64 <= self.start + self.window.len() as u64;
        if !is_inside {
            self.window.resize(length.max(WINDOW), 0);
            let mut filled = 0;
            while filled < self.window.len() {
                match self.file.read_at(&mut self.window[filled..], offset + filled as u64) {
                    Ok(0) => break,
                    Ok(read) => filled += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            self.window.truncate(filled);
            self.start = offset;
        }
        let from = (offset - self.start) as usize;
        Ok(&self.window[from..self.window.len().min(from + length)])
    }
}

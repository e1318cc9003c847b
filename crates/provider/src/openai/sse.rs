//! Parses server-sent events as specified by the HTML standard.

use std::io::{self, BufRead};

/// The maximum length of a line in bytes. No event of this API has a longer one.
const LINE_MAX: usize = 16 << 20;

/// An event of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// Its name, which most events lack.
    pub name: Option<String>,
    /// Its data lines, joined. Bytes, because the JSON parser validates UTF-8.
    pub data: Vec<u8>,
}

/// Why there is no next event.
#[derive(Debug, thiserror::Error)]
pub(super) enum SseError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("a line of the stream is longer than {LINE_MAX} bytes")]
    TooLong,
}

/// Splits a stream into events.
pub(super) struct SseReader<R> {
    stream: R,
}

impl<R: BufRead> SseReader<R> {
    pub fn new(stream: R) -> SseReader<R> {
        SseReader { stream }
    }

    /// The next event with data; `None` at the end. As the standard requires, an incomplete last event is dropped,
    /// unless its last line is complete: some servers omit the blank line after the last event.
    pub fn next(&mut self) -> Result<Option<SseEvent>, SseError> {
        let (mut name, mut data) = (None, None::<Vec<u8>>);
        while let Some(line) = self.line()? {
            if line.is_empty() {
                if let Some(data) = data.take() {
                    return Ok(Some(SseEvent { name, data }));
                }
                name = None;
            } else if let Some(value) = field_value_of_line(&line, b"data") {
                let data = data.get_or_insert_default();
                if !data.is_empty() {
                    data.push(b'\n');
                }
                data.extend_from_slice(value);
            } else if let Some(value) = field_value_of_line(&line, b"event") {
                name = Some(String::from_utf8_lossy(value).into_owned());
            }
        }
        Ok(data.map(|data| SseEvent { name, data }))
    }

    /// The next complete line without its end.
    fn line(&mut self) -> Result<Option<Vec<u8>>, SseError> {
        let mut line = Vec::new();
        loop {
            let bytes = match self.stream.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            if bytes.is_empty() {
                return Ok(None);
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(bytes.len(), |end| end + 1);
            line.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
            self.stream.consume(used);
            if line.len() > LINE_MAX {
                return Err(SseError::TooLong);
            }
            if end.is_some() {
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Ok(Some(line));
            }
        }
    }
}

/// The value of a field, without one space after the colon. Comments have an empty field name.
fn field_value_of_line<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let value = line.strip_prefix(name)?.strip_prefix(b":")?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use super::*;

    fn events(stream: impl Read) -> Vec<String> {
        let mut events = SseReader::new(BufReader::new(stream));
        let mut told = Vec::new();
        while let Some(SseEvent { name, data }) = events.next().unwrap() {
            let name = name.map(|name| format!("{name}: ")).unwrap_or_default();
            told.push(name + &String::from_utf8(data).unwrap());
        }
        told
    }

    /// Returns one byte per read, like a slow network.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            buffer[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    #[test]
    fn events_are_split_as_the_standard_specifies() {
        let stream = "\n: keep-alive\n\ndata: a\n\ndata:b\n\nid: 7\nevent: error\nretry: 9\ndata: c\ndata:  d\n\n\
                      event: lonely\n\ndata\nother: x\n\ndata: e\n\n";
        assert_eq!(events(stream.as_bytes()), ["a", "b", "error: c\n d", "e"]);
        assert_eq!(events(stream.replace('\n', "\r\n").as_bytes()), ["a", "b", "error: c\n d", "e"]);
    }

    #[test]
    fn characters_may_be_split_between_reads() {
        assert_eq!(events(Drip("data: grün …\n\ndata: 🙂\r\n\r\n".as_bytes())), ["grün …", "🙂"]);
    }

    #[test]
    fn an_incomplete_event_at_the_end_is_dropped_unless_its_line_is_complete() {
        assert_eq!(events("data: a\n\ndata: [DONE]\n".as_bytes()), ["a", "[DONE]"]);
        assert_eq!(events("data: a\n\ndata: [DO".as_bytes()), ["a"]);
        assert_eq!(events("".as_bytes()), [""; 0]);
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut events = SseReader::new(BufReader::new(io::repeat(b'x')));
        assert!(matches!(events.next(), Err(SseError::TooLong)));
    }
}

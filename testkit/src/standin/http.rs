//! As much of HTTP/1.1 as agents speak, with nothing between a test and the bytes.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpStream},
    thread,
    time::Duration,
};

/// The most that is read of a head and of a body, in bytes.
const HEAD_MAX: u64 = 256 << 10;
const BODY_MAX: u64 = 256 << 20;

/// A request as it came.
#[derive(Debug)]
pub(crate) struct Request {
    pub method: String,
    /// With its query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// The first header of a name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A connection of a client. Every response ends it: what a client sends on a connection is one request.
pub(crate) struct Connection {
    stream: TcpStream,
    /// Whether the response has no body, whatever it tells.
    is_head: bool,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Connection {
        // A delay of this would only make tests slower.
        let _ = stream.set_nodelay(true);
        Connection { stream, is_head: false }
    }

    /// Reads the request; nothing when the client goes without one.
    pub(crate) fn read(&mut self) -> io::Result<Option<Request>> {
        let mut reader = BufReader::new(self.stream.try_clone()?);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.by_ref().take(HEAD_MAX).read_line(&mut line)? == 0 {
                return Ok(None);
            }
            match line.trim_end() {
                "" if head.is_empty() => continue,
                "" => break,
                line => head.push(line.to_owned()),
            }
        }
        let mut words = head[0].split(' ').map(str::to_owned);
        let (Some(method), Some(path)) = (words.next(), words.next()) else {
            return Err(invalid("the first line is no request"));
        };
        let header = |line: &String| {
            let (name, value) = line.split_once(':').ok_or_else(|| invalid("a header without a colon"))?;
            Ok((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers = head[1..].iter().map(header).collect::<io::Result<Vec<_>>>()?;
        let mut request = Request { method, path, headers, body: Vec::new() };
        self.is_head = request.method == "HEAD";
        if request.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        if request.header("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
            request.body = chunked(&mut reader)?;
        } else if let Some(length) = request.header("content-length") {
            let length: u64 = length.parse().map_err(|_| invalid("a length that is no number"))?;
            reader.take(length.min(BODY_MAX)).read_to_end(&mut request.body)?;
            if (request.body.len() as u64) < length {
                return Err(invalid("the body is shorter than was told, or too long"));
            }
        }
        Ok(Some(request))
    }

    /// Sends a response with a body of a known length, of which only a part may be sent.
    pub(crate) fn whole(
        mut self,
        status: u16,
        headers: &[(String, String)],
        body: &[u8],
        sent: usize,
    ) -> io::Result<()> {
        let length = ("content-length".to_owned(), body.len().to_string());
        self.head(status, headers, &length)?;
        if !self.is_head {
            self.stream.write_all(&body[..sent])?;
        }
        self.close()
    }

    /// Begins a stream of events.
    pub(crate) fn stream(mut self, headers: &[(String, String)]) -> io::Result<EventStream> {
        self.head(200, headers, &("transfer-encoding".to_owned(), "chunked".to_owned()))?;
        Ok(EventStream { connection: self })
    }

    fn head(
        &mut self,
        status: u16,
        headers: &[(String, String)],
        length: &(String, String),
    ) -> io::Result<()> {
        let mut head = format!("HTTP/1.1 {status} {}\r\nconnection: close\r\n", reason(status));
        for (name, value) in headers.iter().chain([length]) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        self.stream.write_all(head.as_bytes())
    }

    /// Waits until the client goes.
    pub(crate) fn hang(mut self) -> io::Result<()> {
        io::copy(&mut self.stream, &mut io::sink())?;
        Ok(())
    }

    /// Ends the connection where it stands.
    pub(crate) fn close(self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Both)
    }
}

/// A response that is sent piece by piece.
pub(crate) struct EventStream {
    connection: Connection,
}

impl EventStream {
    /// Sends a text; slowly, in two pieces with a pause before each.
    pub(crate) fn send(&mut self, text: &str, slow_ms: Option<u64>) -> io::Result<()> {
        let Some(ms) = slow_ms else { return self.chunk(text.as_bytes()) };
        // The first piece may end inside a character: readers have to bear that.
        let (first, second) = text.as_bytes().split_at(text.len() / 2);
        for piece in [first, second] {
            thread::sleep(Duration::from_millis(ms));
            self.chunk(piece)?;
        }
        Ok(())
    }

    fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.connection.stream.write_all(&chunk)
    }

    /// Ends it as it should end.
    pub(crate) fn end(mut self) -> io::Result<()> {
        self.connection.stream.write_all(b"0\r\n\r\n")?;
        self.connection.close()
    }

    /// Leaves it as it is: the connection, to be held open or ended.
    pub(crate) fn broken(self) -> Connection {
        self.connection
    }
}

fn chunked(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.by_ref().take(HEAD_MAX).read_line(&mut line)?;
        let size = line.trim_end().split(';').next().unwrap_or_default();
        let size = u64::from_str_radix(size, 16).map_err(|_| invalid("a chunk without a size"))?;
        if size > BODY_MAX {
            return Err(invalid("the body is too long"));
        }
        let begun = body.len();
        reader.by_ref().take(size).read_to_end(&mut body)?;
        if ((body.len() - begun) as u64) < size {
            return Err(invalid("the body ends inside a chunk"));
        }
        // The line's end after a chunk, and after the last one the trailers, which nobody reads.
        line.clear();
        reader.by_ref().take(HEAD_MAX).read_line(&mut line)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        418 => "I'm a teapot",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Other",
    }
}

//! Parses YAML to JSON values with spans. It accepts one document and expands aliases up to a limit; features without
//! a JSON equivalent (custom tags, non-scalar keys) are reported.

use std::collections::{BTreeSet, HashMap};

use cuegate_flow::diagnostics::{Diagnostic, FileId, Span};
use serde_saphyr::granit_parser::{self, ErrorKind, Event, Parser, ScalarStyle, ScanError, Tag};

use super::scalar;
use crate::codes;
use crate::findings::Findings;
use crate::values::json::{Entry, Json, Kind, NESTING_MAX};

/// The limit of values in a document after alias expansion. The largest real definition has about a thousand.
const VALUES_MAX: usize = 100_000;
/// The length limit of a key, in characters.
const KEY_CHARS_MAX: usize = 1024;

/// Parses a file. Returns `None` after reporting invalid YAML.
pub(crate) fn parse(text: &str, file: FileId, found: &Findings) -> Option<Json> {
    let options = granit_parser::options! {
        emit_comments: false,
        simple_key_max_lookahead: KEY_CHARS_MAX,
        // Deeper nesting is reported below, with its own finding.
        flow_nesting_limit: 2 * NESTING_MAX,
        block_nesting_limit: 2 * NESTING_MAX,
    };
    let parser = Parser::new_from_str_with_options(text, options);
    let mut reader = YamlReader { text, file, found, parser, anchors: HashMap::new(), values: 0 };
    match reader.document() {
        Ok(Some(value)) => Some(value),
        Ok(None) => {
            let finding = Diagnostic::error(codes::INVALID_YAML, Span::start_of(file), "the file is empty");
            found.push(finding.hint("it has to hold one YAML mapping"));
            None
        }
        Err(finding) => {
            found.push(*finding);
            None
        }
    }
}

/// Boxed, because it is much larger than the success value.
type Stop = Box<Diagnostic>;

/// A value that aliases can refer to.
struct AnchoredValue {
    value: Json,
    /// The number of values in it, itself included.
    values: usize,
    /// Its depth; 1 for a scalar.
    depth: usize,
}

struct YamlReader<'t, 'f> {
    text: &'t str,
    file: FileId,
    found: &'f Findings,
    parser: Parser<'t, granit_parser::StrInput<'t>>,
    /// Keyed by the parser's anchor number. An anchor that is still being read is absent.
    anchors: HashMap<usize, AnchoredValue>,
    /// The number of values read so far.
    values: usize,
}

/// A value with its size and depth.
struct MeasuredValue {
    value: Json,
    depth: usize,
}

impl<'t> YamlReader<'t, '_> {
    /// Reads the only document; `None` if there is none.
    fn document(&mut self) -> Result<Option<Json>, Stop> {
        let mut document = None;
        while let Some((event, span)) = self.next()? {
            match event {
                Event::DocumentStart(..) if document.is_some() => {
                    return Err(self.stop(
                        span,
                        "there is another document after `---`",
                        "keep one document in a file: remove the `---` or what follows it",
                    ));
                }
                event if event.is_node() => document = Some(self.node(event, span, 1)?.value),
                _ => {}
            }
        }
        // `---` alone, or comments alone, form a `null` document.
        Ok(document
            .filter(|value: &Json| !matches!(value.kind, Kind::Null) || value.span.start < value.span.end))
    }

    fn next(&mut self) -> Result<Option<(Event<'t>, granit_parser::Span)>, Stop> {
        self.parser.next_event().transpose().map_err(|error| self.fault(&error))
    }

    /// The next event, which the parser guarantees.
    fn inner(&mut self) -> Result<(Event<'t>, granit_parser::Span), Stop> {
        match self.next()? {
            Some(next) => Ok(next),
            None => {
                let end =
                    Span { file: self.file, start: self.text.len() as u32, end: self.text.len() as u32 };
                Err(self.stop_at(end, "the file ends in the middle of a value", "complete it"))
            }
        }
    }

    fn node(
        &mut self,
        event: Event<'t>,
        at: granit_parser::Span,
        depth: usize,
    ) -> Result<MeasuredValue, Stop> {
        self.values += 1;
        if depth > NESTING_MAX {
            return Err(self.too_deep(at));
        }
        let before = self.values;
        let span = self.span(at);
        let (anchor, measured) = match event {
            Event::Alias(anchor) => return self.alias(anchor, at, depth),
            Event::Scalar(text, style, anchor, tag) => {
                let kind = self.scalar(&text, style, tag.as_deref(), span)?;
                (anchor, MeasuredValue { value: Json { span, kind }, depth: 1 })
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.refuse_tag(tag.as_deref(), "seq", span)?;
                (anchor, self.sequence(span, depth)?)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.refuse_tag(tag.as_deref(), "map", span)?;
                (anchor, self.mapping(span, depth)?)
            }
            _ => return Err(self.stop(at, "this is not a value", "correct the place")),
        };
        if anchor != 0 {
            let values = self.values - before + 1;
            let kept = AnchoredValue { value: measured.value.clone(), values, depth: measured.depth };
            self.anchors.insert(anchor, kept);
        }
        Ok(measured)
    }

    fn sequence(&mut self, span: Span, depth: usize) -> Result<MeasuredValue, Stop> {
        let (mut items, mut deepest, mut end) = (Vec::new(), 0, span.end);
        loop {
            let (event, at) = self.inner()?;
            if matches!(event, Event::SequenceEnd) {
                end = end.max(self.closing(at, '['));
                break;
            }
            let item = self.node(event, at, depth + 1)?;
            end = end.max(item.value.span.end);
            deepest = deepest.max(item.depth);
            items.push(item.value);
        }
        let span = Span { end, ..span };
        Ok(MeasuredValue { value: Json { span, kind: Kind::List(items) }, depth: deepest + 1 })
    }

    fn mapping(&mut self, span: Span, depth: usize) -> Result<MeasuredValue, Stop> {
        let (mut entries, mut deepest, mut end) = (Vec::new(), 0, span.end);
        let mut seen = BTreeSet::new();
        loop {
            let (event, at) = self.inner()?;
            if matches!(event, Event::MappingEnd) {
                end = end.max(self.closing(at, '{'));
                break;
            }
            let key_span = self.span(at);
            let key = self.key(event, at)?;
            let (event, at) = self.inner()?;
            let value = self.node(event, at, depth + 1)?;
            deepest = deepest.max(value.depth);
            end = end.max(key_span.end).max(value.value.span.end);
            if key == "<<" {
                self.report(
                    key_span,
                    "`<<` merges mappings in YAML 1.1 only",
                    "write the keys out; YAML 1.2 has no merging",
                );
                continue;
            }
            if !seen.insert(key.clone()) {
                self.found.duplicate_key(&key, key_span);
            }
            entries.push(Entry { key: key.into(), key_span, value: value.value });
        }
        let span = Span { end, ..span };
        Ok(MeasuredValue { value: Json { span, kind: Kind::Object(entries) }, depth: deepest + 1 })
    }

    /// Reads a key, which must be a scalar.
    fn key(&mut self, event: Event<'t>, at: granit_parser::Span) -> Result<String, Stop> {
        self.values += 1;
        match event {
            Event::Scalar(text, _, anchor, _) => {
                if anchor != 0 {
                    let value = Json { span: self.span(at), kind: Kind::Text((&*text).into()) };
                    self.anchors.insert(anchor, AnchoredValue { value, values: 1, depth: 1 });
                }
                Ok(text.into_owned())
            }
            _ => Err(self.stop(at, "a key has to be a plain text", "write a name before the colon")),
        }
    }

    fn alias(&mut self, anchor: usize, at: granit_parser::Span, depth: usize) -> Result<MeasuredValue, Stop> {
        let Some(known) = self.anchors.get(&anchor) else {
            return Err(self.stop(at, "an alias stands inside what it stands for", "write the value out"));
        };
        if self.values + known.values > VALUES_MAX {
            return Err(self.stop(
                at,
                "with its aliases filled in the file holds more than 100000 values",
                "write out what the aliases stand for, or fewer of them",
            ));
        }
        if depth + known.depth - 1 > NESTING_MAX {
            return Err(self.too_deep(at));
        }
        self.values += known.values;
        Ok(MeasuredValue { value: known.value.clone(), depth: known.depth })
    }

    fn scalar(&self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Result<Kind, Stop> {
        match tag {
            None if style == ScalarStyle::Plain => Ok(scalar::parse_plain_scalar(text)),
            None => Ok(Kind::Text(text.into())),
            Some(tag) => {
                let kind = tag.core_suffix().and_then(|suffix| scalar::parse_tagged_scalar(suffix, text));
                kind.ok_or_else(|| self.foreign_tag(tag, span))
            }
        }
    }

    fn refuse_tag(&self, tag: Option<&Tag>, own: &str, span: Span) -> Result<(), Stop> {
        match tag {
            Some(tag) if tag.core_suffix() != Some(own) => Err(self.foreign_tag(tag, span)),
            _ => Ok(()),
        }
    }

    fn foreign_tag(&self, tag: &Tag, span: Span) -> Stop {
        let written = tag.original();
        let message = format!("the tag `{written}` means nothing here");
        // The tag precedes its value.
        let before = self.text.get(..span.start as usize).unwrap_or_default();
        let place = before.rfind(&written).map_or(span, |at| Span {
            start: at as u32,
            end: (at + written.len()) as u32,
            ..span
        });
        self.stop_at(
            place,
            message,
            "remove the tag, or put the text into quotes: what begins so is a tag in YAML",
        )
    }

    /// The offset after the closing bracket of a flow collection; 0 for a block collection.
    fn closing(&self, at: granit_parser::Span, open: char) -> u32 {
        let close = if open == '[' { "]" } else { "}" };
        let span = self.span(at);
        let is_bracket = self.text.get(span.start as usize..).is_some_and(|rest| rest.starts_with(close));
        if is_bracket { span.start + 1 } else { 0 }
    }

    fn span(&self, at: granit_parser::Span) -> Span {
        // Files have at most 16 MiB, so every offset fits.
        let place = |marker: granit_parser::Marker| {
            marker.byte_offset().unwrap_or_default().min(self.text.len()) as u32
        };
        let (start, end) = (place(at.start), place(at.end));
        // A block ends where the next value begins; the white space between belongs to neither.
        let written = self.text.get(start as usize..end as usize).unwrap_or_default();
        let end = if written.contains('\n') { start + written.trim_end().len() as u32 } else { end };
        Span { file: self.file, start, end: end.max(start) }
    }

    fn too_deep(&self, at: granit_parser::Span) -> Stop {
        let span = self.span(at);
        let finding = Diagnostic::error(codes::TOO_DEEP, span, "the nesting is deeper than 64 levels");
        Box::new(finding.hint("definitions need no such depth: look at the indentation"))
    }

    fn stop(&self, at: granit_parser::Span, message: impl Into<String>, hint: &str) -> Stop {
        self.stop_at(self.span(at), message, hint)
    }

    fn stop_at(&self, span: Span, message: impl Into<String>, hint: &str) -> Stop {
        Box::new(Diagnostic::error(codes::INVALID_YAML, span, message).hint(hint))
    }

    fn report(&self, span: Span, message: &str, hint: &str) {
        self.found.push(Diagnostic::error(codes::INVALID_YAML, span, message).hint(hint));
    }

    /// The finding for a parser error.
    fn fault(&self, error: &ScanError) -> Stop {
        let at = granit_parser::Span::empty(*error.marker());
        match error.kind() {
            ErrorKind::RecursionLimitExceeded => self.too_deep(at),
            ErrorKind::TabNotAllowed
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabAtBlockScalarStart
            | ErrorKind::TabInIndentation
            | ErrorKind::TabInPlainScalar => {
                self.stop_at(self.tab(self.span(at)), "a tab indents this line", "indent with spaces")
            }
            kind => {
                let hint = "correct the line: keys end with `: `, lists use `- `, and texts with special characters are quoted";
                self.stop_at(self.span(at), lower_first(&kind.to_string()), hint)
            }
        }
    }

    /// The tab that an error is about: the first one that indents a line after the error's place, because the parser
    /// reports a multi-line value at its start; the error's place if there is none.
    fn tab(&self, at: Span) -> Span {
        let before = self.text.get(..at.start as usize).unwrap_or_default();
        let mut line = before.rfind('\n').map_or(0, |end| end + 1);
        for text in self.text[line..].split_inclusive('\n') {
            let mut indent = text.bytes().take_while(|byte| matches!(byte, b' ' | b'\t'));
            if let Some(tab) = indent.position(|byte| byte == b'\t').filter(|_| !text.trim().is_empty()) {
                return Span { start: (line + tab) as u32, end: (line + tab) as u32 + 1, ..at };
            }
            line += text.len();
        }
        at
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests;

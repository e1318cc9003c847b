//! What a `$ref` leads to: a file and a pointer into it (RFC 3986 and RFC 6901, 6).

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::values::json::Json;

/// The file that a reference names, empty for its own, and the pointer into it. In a reference a pointer is a fragment, in
/// which any character may be written by its number, as `%24` for `$`. A document may name itself by its `$id`.
pub(crate) fn split_reference<'r>(reference: &'r str, document: Option<&Json>) -> (&'r str, Cow<'r, str>) {
    let (file, pointer) = reference.split_once('#').unwrap_or((reference, ""));
    let pointer = percent_decode_str(pointer).decode_utf8().unwrap_or(Cow::Borrowed(pointer));
    let own = document.and_then(|document| document.get("$id")?.as_text());
    let is_own = own.is_some_and(|own| own.trim_end_matches('#') == file);
    (if is_own { "" } else { file }, pointer)
}

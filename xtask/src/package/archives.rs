//! Archives whose bytes depend on their content alone.

use std::{
    collections::BTreeSet,
    io::{Cursor, Write as _},
};

use flate2::{Compression, GzBuilder, write::GzEncoder};

/// A file in an archive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PackedFile {
    /// Its path, with `/`.
    pub(super) path: String,
    pub(super) is_program: bool,
    pub(super) bytes: Vec<u8>,
}

impl PackedFile {
    pub(super) fn text(path: &str, bytes: Vec<u8>) -> PackedFile {
        PackedFile { path: path.to_owned(), is_program: false, bytes }
    }

    pub(super) fn program(path: &str, bytes: Vec<u8>) -> PackedFile {
        PackedFile { path: path.to_owned(), is_program: true, bytes }
    }

    fn mode(&self) -> u32 {
        if self.is_program { 0o755 } else { 0o644 }
    }
}

/// Packs files below `folder`, which is empty or ends with `/`, in order of their paths. `time` is in seconds since 1970.
pub(super) fn pack_tar_gz(folder: &str, mut files: Vec<PackedFile>, time: u64) -> Result<Vec<u8>, String> {
    files.sort();
    let failed = |error: std::io::Error| format!("failed to pack: {error}");
    let mut archive = tar::Builder::new(start_gz());
    let mut folders = BTreeSet::new();
    for file in files {
        // dpkg makes no folder that is not named.
        for (at, _) in file.path.match_indices('/') {
            let path = format!("{folder}{}", &file.path[..=at]);
            if folders.insert(path.clone()) {
                let mut header = tar::Header::new_gnu();
                header.set_entry_type(tar::EntryType::Directory);
                header.set_size(0);
                header.set_mode(0o755);
                header.set_mtime(time);
                header.set_uid(0);
                header.set_gid(0);
                archive.append_data(&mut header, path, &[][..]).map_err(failed)?;
            }
        }
        let mut header = tar::Header::new_gnu();
        header.set_size(file.bytes.len() as u64);
        header.set_mode(file.mode());
        header.set_mtime(time);
        header.set_uid(0);
        header.set_gid(0);
        let path = format!("{folder}{}", file.path);
        archive.append_data(&mut header, path, &*file.bytes).map_err(failed)?;
    }
    archive.into_inner().and_then(GzEncoder::finish).map_err(failed)
}

/// Compresses a text.
pub(super) fn pack_gz(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut packed = start_gz();
    packed
        .write_all(bytes)
        .and_then(|()| packed.finish())
        .map_err(|error| format!("failed to compress: {error}"))
}

/// Without a name and a time in its head.
fn start_gz() -> GzEncoder<Vec<u8>> {
    GzBuilder::new().write(Vec::new(), Compression::best())
}

/// Packs files as they are ordered.
pub(super) fn pack_zip(files: &[PackedFile]) -> Result<Vec<u8>, String> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for file in files {
        // The earliest time that the format has: that of the commit would be in nobody's zone.
        let options = zip::write::SimpleFileOptions::default()
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(file.mode());
        archive
            .start_file(&*file.path, options)
            .and_then(|()| Ok(archive.write_all(&file.bytes)?))
            .map_err(|error| format!("failed to pack `{}`: {error}", file.path))?;
    }
    Ok(archive.finish().map_err(|error| format!("failed to pack: {error}"))?.into_inner())
}

/// Packs members into the format of `ar`, as packages of Debian are.
pub(super) fn pack_ar(members: &[(&str, Vec<u8>)], time: u64) -> Vec<u8> {
    let mut packed = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        packed.extend(
            format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, "100644", bytes.len()).bytes(),
        );
        packed.extend(bytes);
        if bytes.len() % 2 == 1 {
            packed.push(b'\n');
        }
    }
    packed
}

//! A wheel: the program as a script of Python's package managers. Format: PEP 427, with the digests of PEP 376.

use std::path::Path;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

use super::{
    LICENSE, Made, REPOSITORY, Release, SUMMARY, VERSION,
    archives::{PackedFile, pack_zip},
    licences, read,
};

pub(super) fn pack_wheel(root: &Path, release: &Release) -> Result<Made, String> {
    let tag = format!("py3-none-{}", release.platform.wheel);
    let info = format!("cuegate-{VERSION}.dist-info");
    let readme = String::from_utf8_lossy(&read(&root.join("README.md"))?).into_owned();
    let metadata = format!(
        "Metadata-Version: 2.4\nName: cuegate\nVersion: {VERSION}\nSummary: {SUMMARY}\nLicense-Expression: {LICENSE}\n\
         License-File: LICENSES/Apache-2.0.txt\nLicense-File: LICENSES/MIT.txt\n\
         Project-URL: Source, {REPOSITORY}\nRequires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n{readme}"
    );
    let about = format!("Wheel-Version: 1.0\nGenerator: cuegate-xtask\nRoot-Is-Purelib: false\nTag: {tag}\n");
    let mut files = vec![
        PackedFile::program(&format!("cuegate-{VERSION}.data/scripts/cuegate"), release.binary.clone()),
        PackedFile::text(&format!("{info}/METADATA"), metadata.into_bytes()),
        PackedFile::text(&format!("{info}/WHEEL"), about.into_bytes()),
    ];
    files.extend(
        licences(root)?
            .into_iter()
            .map(|file| PackedFile { path: format!("{info}/licenses/{}", file.path), ..file }),
    );
    let record = format!("{info}/RECORD");
    let mut lines = String::new();
    for file in &files {
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(&file.bytes));
        lines.push_str(&format!("{},sha256={digest},{}\n", file.path, file.bytes.len()));
    }
    lines.push_str(&format!("{record},,\n"));
    files.push(PackedFile::text(&record, lines.into_bytes()));
    Ok((format!("cuegate-{VERSION}-{tag}.whl"), pack_zip(&files)?))
}

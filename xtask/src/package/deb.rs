//! A package of Debian and Ubuntu: the one way to get it that brings bubblewrap along. Format: deb(5).

use std::path::Path;

use super::{
    Made, REPOSITORY, Release, SUMMARY, VERSION,
    archives::{PackedFile, pack_ar, pack_gz, pack_tar_gz},
    read,
};

pub(super) fn pack_deb(root: &Path, release: &Release) -> Result<Made, String> {
    let mut files = vec![PackedFile::program("usr/bin/cuegate", release.binary.clone())];
    let shells = [
        "usr/share/bash-completion/completions/cuegate",
        "usr/share/zsh/vendor-completions/_cuegate",
        "usr/share/fish/vendor_completions.d/cuegate.fish",
    ];
    for (path, text) in shells.into_iter().zip(&release.completions) {
        files.push(PackedFile::text(path, text.clone()));
    }
    for (name, text) in &release.manual {
        files.push(PackedFile::text(&format!("usr/share/man/man1/{name}.gz"), pack_gz(text)?));
    }
    let mut copyright = format!("Source: {REPOSITORY}\nLicense: MIT or Apache-2.0\n\n").into_bytes();
    copyright.extend(read(&root.join("LICENSES/MIT.txt"))?);
    copyright.extend_from_slice(b"\nThe Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0.\n");
    files.push(PackedFile::text("usr/share/doc/cuegate/copyright", copyright));
    let size: usize = files.iter().map(|file| file.bytes.len()).sum();
    let control = format!(
        "Package: cuegate\nVersion: {VERSION}\nArchitecture: {}\nMaintainer: Cuegate <maintainers@cuegate.dev>\n\
         Installed-Size: {}\nDepends: git (>= 1:2.31), libc6 (>= 2.28)\nRecommends: bubblewrap\nSection: devel\n\
         Priority: optional\nHomepage: {REPOSITORY}\nDescription: {SUMMARY}\n \
         Steps with prompts, JSON Schema gates, transitions and commands that decide whether\n work is done, for Claude Code, \
         Codex and other agents.\n",
        release.platform.deb,
        size.div_ceil(1024)
    );
    let data = pack_tar_gz("./", files, release.time)?;
    let control = pack_tar_gz("./", vec![PackedFile::text("control", control.into_bytes())], release.time)?;
    let members = [("debian-binary", b"2.0\n".to_vec()), ("control.tar.gz", control), ("data.tar.gz", data)];
    Ok((format!("cuegate_{VERSION}_{}.deb", release.platform.deb), pack_ar(&members, release.time)))
}

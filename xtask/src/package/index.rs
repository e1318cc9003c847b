//! What belongs to all packages of a release: their checksums, and the formula of Homebrew.

use std::{collections::BTreeMap, fs, path::Path};

use sha2::{Digest as _, Sha256};

use super::{REPOSITORY, SUMMARY, VERSION};

const SUMS: &str = "SHA256SUMS";
const FORMULA: &str = "cuegate.rb";

/// Writes the checksums of all files in a folder, as `sha256sum --check` reads them, and the formula of Homebrew if the
/// archives are there that it names.
///
/// # Errors
/// When a file cannot be read or written.
pub(crate) fn write_index(folder: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("`{}`: {error}", folder.display());
    let mut sums = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().map_err(failed)?.is_file()
            && name != SUMS
            && name != FORMULA
            && !name.starts_with('.')
        {
            let digest = Sha256::digest(fs::read(entry.path()).map_err(failed)?);
            sums.insert(name, digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        }
    }
    if let Some(formula) = write_formula(&sums) {
        fs::write(folder.join(FORMULA), formula).map_err(failed)?;
    }
    let lines: String = sums.iter().map(|(name, digest)| format!("{digest}  {name}\n")).collect();
    fs::write(folder.join(SUMS), lines).map_err(failed)
}

/// The formula, for the processors whose archives are there.
fn write_formula(sums: &BTreeMap<String, String>) -> Option<String> {
    let mut places = String::new();
    for (block, target) in [("on_intel", "x86_64-unknown-linux-gnu"), ("on_arm", "aarch64-unknown-linux-gnu")]
    {
        let name = format!("cuegate-{VERSION}-{target}.tar.gz");
        let Some(digest) = sums.get(&name) else { continue };
        places.push_str(&format!(
            "  {block} do\n    url \"{REPOSITORY}/releases/download/v{VERSION}/{name}\"\n    sha256 \"{digest}\"\n  end\n"
        ));
    }
    (!places.is_empty()).then(|| {
        format!(
            "class Cuegate < Formula\n  desc \"{SUMMARY}\"\n  homepage \"{REPOSITORY}\"\n  version \"{VERSION}\"\n  \
             license any_of: [\"MIT\", \"Apache-2.0\"]\n  depends_on :linux\n\n{places}\n  def install\n    \
             bin.install \"cuegate\"\n    man1.install Dir[\"man/man1/*\"]\n    \
             bash_completion.install \"completions/cuegate.bash\" => \"cuegate\"\n    \
             zsh_completion.install \"completions/_cuegate\"\n    fish_completion.install \"completions/cuegate.fish\"\n  \
             end\n\n  test do\n    assert_match version.to_s, shell_output(\"#{{bin}}/cuegate --version\")\n  end\nend\n"
        )
    })
}

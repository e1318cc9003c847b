//! The effects of a scripted agent on the working tree.

use std::{
    fs,
    io::{self, Read as _},
    path::{Component, Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

use super::script::FileWrite;

/// The maximum number of bytes kept of a command's output, which is only displayed.
const OUTPUT_MAX: usize = 4 * 1024;

/// How long to wait for the rest of the output after a command has exited. A background server may hold the pipe open
/// forever.
const OUTPUT_GRACE: Duration = Duration::from_millis(200);

/// Why a write failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteFault {
    #[error("the path `{path}` leads out of the working tree")]
    Outside { path: String },
    #[error("wrote to `{path}`, which is read-only in this step")]
    ReadOnly { path: String },
    #[error("failed to write `{path}`: {source}")]
    Io { path: String, source: io::Error },
}

/// Writes a file into a working tree, whose path is canonical.
///
/// The path check catches wrong scripts. It does not protect against races; the sandbox of this process does.
pub(super) fn write_file(tree: &Path, write: &FileWrite) -> Result<(), WriteFault> {
    let path = &write.path;
    let file = resolve_in_tree(tree, path).ok_or_else(|| WriteFault::Outside { path: path.clone() })?;
    let parents = file.parent().map_or(Ok(()), fs::create_dir_all);
    parents.and_then(|()| fs::write(&file, &write.content)).map_err(|source| match source.kind() {
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            WriteFault::ReadOnly { path: path.clone() }
        }
        _ => WriteFault::Io { path: path.clone(), source },
    })
}

/// Resolves a path in the tree, following links; `None` if it leads outside.
fn resolve_in_tree(tree: &Path, path: &str) -> Option<PathBuf> {
    let mut place = tree.to_path_buf();
    for component in Path::new(path).components() {
        match component {
            Component::CurDir => {}
            Component::Normal(name) => place.push(name),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
        if place.is_symlink() {
            // A dangling link may lead outside, so it is rejected.
            place = place.canonicalize().ok().filter(|real| real.starts_with(tree))?;
        }
    }
    (place != tree).then_some(place)
}

/// Runs a command in the working tree and returns its output, or as an error its failure with the output.
pub(super) fn run_command(tree: &Path, command: &str) -> Result<String, String> {
    let (status, output) =
        run_shell(tree, command).map_err(|error| format!("failed to start `{command}`: {error}"))?;
    match (status.success(), output.trim_end()) {
        (true, output) => Ok(output.to_owned()),
        (false, output) => Err(format!("`{command}` failed ({status})\n{output}").trim_end().to_owned()),
    }
}

fn run_shell(tree: &Path, command: &str) -> io::Result<(std::process::ExitStatus, String)> {
    let (mut reader, writer) = io::pipe()?;
    // Outside of a sandbox, the command has the access of this process.
    let mut child = Command::new("sh")
        .args(["-c", command])
        .current_dir(tree)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()?;
    let kept = Arc::new(Mutex::new(Vec::new()));
    let (done, finished) = mpsc::channel();
    let keep = Arc::clone(&kept);
    thread::spawn(move || {
        let mut chunk = [0; 4096];
        // Output beyond the limit is read and dropped, so that the command does not block on a full pipe.
        while let Ok(read @ 1..) = reader.read(&mut chunk) {
            let mut kept = keep.lock().unwrap_or_else(PoisonError::into_inner);
            let room = OUTPUT_MAX.saturating_sub(kept.len()).min(read);
            kept.extend_from_slice(&chunk[..room]);
            if room < read && !kept.ends_with(b" ...") {
                kept.extend_from_slice(b" ...");
            }
        }
        done.send(()).ok();
    });
    let status = child.wait()?;
    finished.recv_timeout(OUTPUT_GRACE).ok();
    let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((status, String::from_utf8_lossy(&kept).into_owned()))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, path::Path};

    use super::{FileWrite, WriteFault, run_command, write_file};

    fn put(tree: &Path, path: &str) -> Result<(), WriteFault> {
        write_file(tree, &FileWrite { path: path.to_owned(), content: "new".to_owned() })
    }

    #[test]
    fn writes_stay_in_the_tree() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (tree, outside) = (root.join("tree"), root.join("outside"));
        for folder in [&tree.join("src"), &outside] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(outside.join("secret"), "old").unwrap();
        symlink(&outside, tree.join("out")).unwrap();
        symlink(outside.join("secret"), tree.join("file-out")).unwrap();
        symlink(outside.join("absent"), tree.join("nowhere")).unwrap();
        symlink("../outside", tree.join("relative-out")).unwrap();
        symlink("src", tree.join("in")).unwrap();
        symlink("self", tree.join("self")).unwrap();

        for path in ["a.txt", "./b.txt", "src/deep/er/c.txt", "in/d.txt"] {
            put(&tree, path).unwrap();
        }
        assert_eq!(fs::read_to_string(tree.join("src/d.txt")).unwrap(), "new");
        for path in [
            "../x",
            "src/../../x",
            "src/../x",
            "/tmp/cuegate-x",
            "out/x",
            "file-out",
            "nowhere",
            "self",
            "",
            ".",
            "relative-out/x",
        ] {
            let fault = put(&tree, path).unwrap_err();
            assert!(matches!(fault, WriteFault::Outside { .. }), "{path}: {fault}");
        }
        assert!(matches!(put(&tree, "src"), Err(WriteFault::Io { .. })), "a folder is no file");
        assert!(matches!(put(&tree, "a\0b"), Err(WriteFault::Io { .. })));
        assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "old");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "nothing was written outside");
        assert_eq!(fs::read_dir(&root).unwrap().count(), 2, "nothing was written beside the tree");
    }

    #[test]
    fn commands_run_in_the_tree_and_return_their_output() {
        let folder = tempfile::tempdir().unwrap();
        let run = |command: &str| run_command(folder.path(), command);
        assert_eq!(run("echo x > made").as_deref(), Ok(""));
        assert_eq!(fs::read_to_string(folder.path().join("made")).unwrap(), "x\n");
        assert_eq!(run("cat made; echo err >&2").as_deref(), Ok("x\nerr"));
        assert_eq!(run("cat").as_deref(), Ok(""), "standard input is empty");
        assert_eq!(run("echo no; exit 3").unwrap_err(), ("`echo no; exit 3` failed (exit status: 3)\nno"));
        let long = run("yes | head -c 100000").unwrap();
        assert!(long.len() < 5000 && long.ends_with("..."), "{}", long.len());
    }

    #[test]
    fn a_background_server_does_not_block_a_command() {
        let folder = tempfile::tempdir().unwrap();
        // The server exits when the test closes its end of the named pipe.
        run_command(folder.path(), "mkfifo gate").unwrap();
        assert_eq!(run_command(folder.path(), "echo up; cat gate & ").as_deref(), Ok("up"));
        fs::write(folder.path().join("gate"), "").unwrap();
    }
}

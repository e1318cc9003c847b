//! Damaged files are refused with their path, without a panic, and stay unchanged.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use cuegate_journal::sqlite::{Options, SqliteJournal};
use cuegate_journal::{Blob, Digest, Error, Journal, NewRecord, RunId};
use rusqlite::Connection;

use crate::conformance::{record, run, started};

/// A closed journal of twenty records, each longer than a page.
fn written(path: &Path) {
    let journal = SqliteJournal::open(path, Options::default()).unwrap();
    let lease = started(&journal);
    for seq in 0..20 {
        journal.append(&lease, seq, record(&"long ".repeat(1000))).unwrap();
    }
    journal.put_blob(b"prompt").unwrap();
}

#[test]
fn a_journal_that_was_deleted_takes_no_more_records() {
    for file in ["journal.db", "journal.db-wal", "."] {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("state");
        fs::create_dir(&at).unwrap();
        let journal = SqliteJournal::open(at.join("journal.db"), Options::default()).unwrap();
        let lease = started(&journal);
        journal.append(&lease, 0, record("first")).unwrap();
        match file {
            "." => fs::rename(&at, dir.path().join("moved")).unwrap(),
            file => fs::remove_file(at.join(file)).unwrap(),
        }
        let error = journal.append(&lease, 1, record("second")).unwrap_err();
        assert!(matches!(error, Error::Vanished { .. }), "{file}: {error}");
        assert!(error.hint().is_some());
    }
}

fn refused_as_damaged(path: &Path) {
    for opened in [SqliteJournal::open(path, Options::default()), SqliteJournal::open_read_only(path)] {
        let error = opened.unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("journal.db` is damaged: "), "{error}");
        assert!(error.hint().is_some());
    }
}

/// What a journal says about everything in it; the error if some of it cannot be read.
fn content(path: &Path, blobs: &[Digest]) -> Result<String, Error> {
    let journal = SqliteJournal::open_read_only(path)?;
    let mut content = format!("{:?}", journal.runs()?);
    for summary in journal.runs()? {
        if let Some(damage) = summary.damage {
            return Err(Error::Damaged { path: path.to_owned(), what: damage, source: None });
        }
        let (records, inbox) = (journal.read(&summary.run, 0)?, journal.inbox(&summary.run)?);
        content += &format!("{records:?} {inbox:?} {:?}", journal.holder(&summary.run)?);
    }
    for digest in blobs {
        // A record names the blob, so its reader notices that it is missing.
        let missing = || Error::Damaged { path: path.to_owned(), what: digest.to_string(), source: None };
        content += &format!("{:?}", journal.blob(digest)?.ok_or_else(missing)?);
    }
    Ok(content)
}

/// Writes a journal of several runs with records of several sizes, blobs, messages and leases. Returns its blobs.
fn write_many(journal: &SqliteJournal) -> Vec<Digest> {
    let mut blobs = Vec::new();
    for name in ["first", "second-run", "third"] {
        let run: RunId = name.parse().unwrap();
        journal.create(&run, 1_700_000_000_000).unwrap();
        let lease = journal.acquire(&run, &cuegate_journal::Owner::current()).unwrap();
        for seq in 0..12_u64 {
            let size = [30, 300, 3_000, 9_000][(seq % 4) as usize];
            let blob = Blob::new(format!("{name} {seq} ").repeat(size / 10).into_bytes());
            let body = format!(r#"{{"run":"{name}","seq":{seq},"text":"{}"}}"#, "x".repeat(size));
            blobs.push(blob.digest());
            let message = journal.post(&run, 5, body.as_bytes()).unwrap();
            let consumes = if seq % 3 == 0 { vec![] } else { vec![message] };
            let record = NewRecord { at_ms: 7, body: body.as_bytes(), blobs: &[blob], consumes: &consumes };
            journal.append(&lease, seq, record).unwrap();
        }
    }
    blobs
}

/// A copy of a journal with its log and the folder of its runs.
fn copy(from: &Path, to: &Path) -> PathBuf {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for suffix in ["", "-wal"] {
        let file = format!("journal.db{suffix}");
        if from.join(&file).exists() {
            fs::copy(from.join(&file), to.join(&file)).unwrap();
        }
    }
    symlink(from.join("runs"), to.join("runs")).unwrap();
    to.join("journal.db")
}

/// Flips `flips` random bits of `file`, one at a time, and checks that each is noticed or changes nothing.
fn flip_bits(folder: &Path, file: &str, blobs: &[Digest], flips: u64) {
    let random = RandomState::new();
    let whole = fs::read(folder.join(file)).unwrap();
    let copied = folder.join("copy");
    let good = content(&copy(folder, &copied), blobs).unwrap();
    let mut noticed = 0;
    for flip in 0..flips {
        let bit = random.hash_one(flip) % (whole.len() as u64 * 8);
        let path = copy(folder, &copied);
        let mut bytes = whole.clone();
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        fs::write(copied.join(file), &bytes).unwrap();
        match content(&path, blobs) {
            Ok(read) => assert!(read == good, "bit {bit} of `{file}` changed the content unnoticed"),
            Err(_) => noticed += 1,
        }
    }
    assert!(noticed > flips / 2, "{noticed} of {flips} were noticed");
}

#[test]
fn no_flipped_bit_changes_the_content_unnoticed() {
    let folder = tempfile::tempdir().unwrap();
    let blobs =
        write_many(&SqliteJournal::open(folder.path().join("journal.db"), Options::default()).unwrap());
    flip_bits(
        folder.path(),
        "journal.db",
        &blobs,
        std::env::var("FLIPS").map_or(1_500, |n| n.parse().unwrap()),
    );
}

#[test]
fn no_flipped_bit_of_the_log_changes_the_content_unnoticed() {
    let folder = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(folder.path().join("journal.db"), Options::default()).unwrap();
    let blobs = write_many(&journal);
    flip_bits(folder.path(), "journal.db-wal", &blobs, 500);
}

#[test]
fn a_cut_or_deleted_log_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(folder.path().join("journal.db"), Options::default()).unwrap();
    write_many(&journal);
    let copied = folder.path().join("copy");
    let whole = fs::read(folder.path().join("journal.db-wal")).unwrap();
    let third: RunId = "third".parse().unwrap();
    for cut in (0..whole.len()).step_by(9_973) {
        for writer in [false, true] {
            let path = copy(folder.path(), &copied);
            fs::write(copied.join("journal.db-wal"), &whole[..cut]).unwrap();
            let opened = match writer {
                true => SqliteJournal::open(&path, Options::default()),
                false => SqliteJournal::open_read_only(&path),
            };
            let error = opened.and_then(|journal| journal.read(&third, 0)).unwrap_err();
            let lost = matches!(error, Error::RecordsLost { noted: 12, .. } | Error::JournalLost { .. });
            assert!(lost, "cut at {cut}: {error}");
            assert!(error.hint().unwrap().contains("restore a copy"), "{:?}", error.hint());
        }
    }
    let path = copy(folder.path(), &copied);
    fs::remove_file(copied.join("journal.db-wal")).unwrap();
    let error = SqliteJournal::open(&path, Options::default()).unwrap_err();
    assert!(error.to_string().contains("records of runs `first`, `second-run`, `third` are lost"), "{error}");
}

#[test]
fn a_run_is_listed_when_its_records_are_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = SqliteJournal::open(&path, Options::default()).unwrap();
    let lease = started(&journal);
    journal.append(&lease, 0, record("zero")).unwrap();
    fs::write(folder.path().join("runs/a/records"), "00000000000000000003\n").unwrap();
    fs::create_dir_all(folder.path().join("runs/gone")).unwrap();
    fs::write(folder.path().join("runs/gone/records"), "00000000000000000009\n").unwrap();
    let damage: Vec<_> = journal.runs().unwrap().into_iter().map(|run| run.damage.unwrap()).collect();
    assert!(damage[0].ends_with("has lost records of run `a`: it holds 1 of 3"), "{damage:?}");
    assert!(damage[1].ends_with("has lost records of run `gone`: it holds 0 of 9"), "{damage:?}");
    let error = journal.read(&"gone".parse().unwrap(), 0).unwrap_err();
    assert!(matches!(error, Error::RecordsLost { found: 0, noted: 9, .. }), "{error}");
    // After the user has removed the file, the run goes on at its last record.
    fs::remove_file(folder.path().join("runs/a/records")).unwrap();
    journal.append(&lease, 1, record("one")).unwrap();
    assert_eq!(journal.read(&run("a"), 0).unwrap().len(), 2);
}

#[test]
fn a_missing_or_empty_journal_beside_folders_of_runs_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    written(&path);
    for empty in [false, true] {
        fs::remove_file(&path).unwrap();
        if empty {
            fs::write(&path, "").unwrap();
        }
        for opened in [SqliteJournal::open_read_only(&path), SqliteJournal::open(&path, Options::default())] {
            let error = opened.unwrap_err();
            let expected = "is missing or empty, so the records of run `a` are lost";
            assert!(error.to_string().ends_with(expected), "{error}");
            assert_eq!(path.exists(), empty, "nothing was created");
        }
        fs::write(&path, "").unwrap();
    }
}

#[test]
fn a_fifo_a_folder_or_a_device_is_no_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    for suffix in ["", "-wal", "-shm"] {
        let special = folder.path().join(format!("journal.db{suffix}"));
        if !suffix.is_empty() {
            written(&path);
        }
        let refused = |kind: &str| {
            for opened in
                [SqliteJournal::open_read_only(&path), SqliteJournal::open(&path, Options::default())]
            {
                let error = opened.unwrap_err().to_string();
                assert!(error.ends_with(&format!("` is a {kind}, not a file")), "{error}");
            }
        };
        assert!(Command::new("mkfifo").arg(&special).status().unwrap().success());
        refused("FIFO");
        fs::remove_file(&special).unwrap();
        fs::create_dir(&special).unwrap();
        refused("folder");
        fs::remove_dir(&special).unwrap();
        symlink("/dev/zero", &special).unwrap();
        refused("device");
        fs::remove_file(&special).unwrap();
        let _ = fs::remove_dir_all(folder.path().join("runs"));
        let _ = fs::remove_file(&path);
    }
}

#[test]
fn garbage_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    for garbage in [vec![b'x'; 10], b"{\"seq\": 0}\n".repeat(1000), vec![0; 4096], vec![0xFF; 8192]] {
        fs::write(&path, &garbage).unwrap();
        refused_as_damaged(&path);
        assert_eq!(fs::read(&path).unwrap(), garbage);
    }
}

#[test]
fn a_truncated_file_is_damaged_wherever_it_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    written(&path);
    let whole = fs::read(&path).unwrap();
    let pages = (4096..whole.len()).step_by(4096);
    for cut in [1, 16, 99, 100, 512, 4095, 5000, whole.len() - 1].into_iter().chain(pages) {
        fs::write(&path, &whole[..cut]).unwrap();
        refused_as_damaged(&path);
    }
}

#[test]
fn the_log_of_an_emptied_file_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (open, path) = (folder.path().join("open.db"), folder.path().join("journal.db"));
    let journal = SqliteJournal::open(&open, Options::default()).unwrap();
    started(&journal);
    let log = fs::read(folder.path().join("open.db-wal")).unwrap();
    fs::write(&path, "").unwrap();
    fs::write(folder.path().join("journal.db-wal"), &log).unwrap();
    refused_as_damaged(&path);
    assert_eq!(fs::read(folder.path().join("journal.db-wal")).unwrap(), log);
}

#[test]
fn overwritten_pages_are_detected_when_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    written(&path);
    let mut bytes = fs::read(&path).unwrap();
    bytes[4096..].fill(0xFF);
    fs::write(&path, &bytes).unwrap();
    let error = SqliteJournal::open_read_only(&path).unwrap().read(&run("a"), 0).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
}

#[test]
fn a_blob_with_another_content_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    written(&path);
    Connection::open(&path).unwrap().execute("UPDATE blob SET body = x'00'", []).unwrap();
    let journal = SqliteJournal::open(&path, Options::default()).unwrap();
    let error = journal.blob(&Digest::for_bytes(b"prompt")).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
}

#[test]
fn a_missing_record_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    written(&path);
    Connection::open(&path).unwrap().execute("DELETE FROM record WHERE seq = 7", []).unwrap();
    let journal = SqliteJournal::open(&path, Options::default()).unwrap();
    let error = journal.read(&run("a"), 5).unwrap_err();
    assert!(error.to_string().ends_with("is damaged: record 7 of run `a` is missing"), "{error}");
    assert_eq!(journal.read(&run("a"), 8).unwrap().len(), 12);
}

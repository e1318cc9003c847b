//! Damaged files are refused with their path, without a panic, and stay unchanged.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use cuegate_journal::log::{Durability, LogJournal, Options};
use cuegate_journal::{Blob, Digest, Error, Journal, NewRecord, Owner, RunId};

use crate::conformance::{record, run, started};

/// A closed journal with a run `a` of twenty records, each longer than a page. Returns its log.
fn written(dir: &Path) -> PathBuf {
    let journal = LogJournal::open(dir, Options::default()).unwrap();
    let lease = started(&journal);
    for seq in 0..20 {
        let blobs = [Blob::new(b"prompt".to_vec())];
        journal.append(&lease, seq, NewRecord { blobs: &blobs, ..record(&"long ".repeat(1000)) }).unwrap();
    }
    journal.release(&lease).unwrap();
    dir.join("a/log")
}

#[test]
fn a_log_that_was_deleted_takes_no_more_records() {
    for file in ["a/log", "a", "."] {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("runs");
        let journal = LogJournal::open(&dir, Options::default()).unwrap();
        let lease = started(&journal);
        journal.append(&lease, 0, record("first")).unwrap();
        match file {
            "a/log" => fs::remove_file(dir.join(file)).unwrap(),
            "a" => fs::rename(dir.join(file), folder.path().join("moved")).unwrap(),
            _ => fs::rename(&dir, folder.path().join("moved")).unwrap(),
        }
        let error = journal.append(&lease, 1, record("second")).unwrap_err();
        assert!(matches!(error, Error::Vanished { .. }), "{file}: {error}");
        assert!(error.hint().is_some());
    }
}

/// What a journal says about everything in it; the error if some of it cannot be read.
fn content(dir: &Path, blobs: &[(RunId, Digest)]) -> Result<String, Error> {
    let journal = LogJournal::open_read_only(dir)?;
    let mut content = format!("{:?}", journal.runs()?);
    for summary in journal.runs()? {
        if let Some(damage) = summary.damage {
            return Err(Error::Damaged { path: dir.to_owned(), what: damage });
        }
        let (records, inbox) = (journal.read(&summary.run, 0)?, journal.inbox(&summary.run)?);
        content += &format!("{records:?} {inbox:?} {:?}", journal.holder(&summary.run)?);
    }
    for (run, digest) in blobs {
        // A record names the blob, so its reader notices that it is missing.
        let missing = || Error::Damaged { path: dir.to_owned(), what: digest.to_string() };
        content += &format!("{:?}", journal.blob(run, digest)?.ok_or_else(missing)?);
    }
    Ok(content)
}

/// Writes a journal of several runs with records of several sizes, blobs, messages and leases. Returns its blobs.
fn write_many(journal: &LogJournal) -> Vec<(RunId, Digest)> {
    let mut blobs = Vec::new();
    for name in ["first", "second-run", "third"] {
        let run: RunId = name.parse().unwrap();
        journal.create(&run, 1_700_000_000_000).unwrap();
        let lease = journal.acquire(&run, &Owner::current()).unwrap();
        for seq in 0..12_u64 {
            let size = [30, 300, 3_000, 9_000][(seq % 4) as usize];
            let blob = Blob::new(format!("{name} {seq} ").repeat(size / 10).into_bytes());
            let body = format!(r#"{{"run":"{name}","seq":{seq},"text":"{}"}}"#, "x".repeat(size));
            blobs.push((run.clone(), blob.digest()));
            let message = journal.post(&run, 5, body.as_bytes()).unwrap();
            let consumes = if seq % 3 == 0 { vec![] } else { vec![message] };
            let record = NewRecord { at_ms: 7, body: body.as_bytes(), blobs: &[blob], consumes: &consumes };
            journal.append(&lease, seq, record).unwrap();
        }
    }
    blobs
}

/// A copy of a journal.
fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    for run in ["first", "second-run", "third"] {
        fs::create_dir_all(to.join(run)).unwrap();
        for file in ["log", "inbox", "records"] {
            fs::copy(from.join(run).join(file), to.join(run).join(file)).unwrap();
        }
    }
}

/// Flips `flips` random bits of `file`, one at a time, and checks that each is noticed or changes nothing. Bits of the
/// zeros after the end are left out.
fn flip_bits(dir: &Path, file: &str, blobs: &[(RunId, Digest)], flips: u64) {
    let random = RandomState::new();
    let copied = dir.with_file_name("copy");
    copy(dir, &copied);
    let whole = fs::read(copied.join(file)).unwrap();
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
    let good = content(&copied, blobs).unwrap();
    let mut noticed = 0;
    for flip in 0..flips {
        let bit = random.hash_one(flip) % (used * 8);
        let mut bytes = whole.clone();
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        fs::write(copied.join(file), &bytes).unwrap();
        match content(&copied, blobs) {
            Ok(read) => assert!(read == good, "bit {bit} of `{file}` changed the content unnoticed"),
            Err(_) => noticed += 1,
        }
        assert_eq!(fs::read(copied.join(file)).unwrap(), bytes, "a viewer changes nothing");
    }
    assert!(noticed > flips / 2, "{noticed} of {flips} were noticed");
}

fn flips() -> u64 {
    std::env::var("FLIPS").map_or(1_500, |flips| flips.parse().unwrap())
}

#[test]
fn no_flipped_bit_changes_the_content_unnoticed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("runs");
    let blobs = write_many(&LogJournal::open(&dir, Options::default()).unwrap());
    for (file, flips) in [("third/log", flips()), ("first/inbox", flips() / 3)] {
        flip_bits(&dir, file, &blobs, flips);
    }
}

#[test]
fn no_flipped_bit_of_a_header_changes_the_content_unnoticed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("runs");
    let blobs = write_many(&LogJournal::open(&dir, Options::default()).unwrap());
    let copied = folder.path().join("copy");
    copy(&dir, &copied);
    let good = content(&copied, &blobs).unwrap();
    let whole = fs::read(copied.join("first/log")).unwrap();
    for bit in (0..2 * 512 * 8).step_by(7) {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(copied.join("first/log"), &bytes).unwrap();
        assert!(content(&copied, &blobs).is_err(), "bit {bit}");
    }
    fs::write(copied.join("first/log"), &whole).unwrap();
    assert_eq!(content(&copied, &blobs).unwrap(), good);
}

#[test]
fn a_cut_log_is_noticed_wherever_it_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("runs");
    let log = written(&dir);
    let whole = fs::read(&log).unwrap();
    for cut in (1..whole.len()).step_by(997).chain([511, 512, 1024, 4096, 4097, whole.len() - 1]) {
        fs::write(&log, &whole[..cut]).unwrap();
        for opened in [LogJournal::open_read_only(&dir), LogJournal::open(&dir, Options::default())] {
            let journal = opened.unwrap();
            let error = journal.read(&run("a"), 0).unwrap_err();
            let is_named = matches!(error, Error::RecordsLost { noted: 20, .. } | Error::Damaged { .. });
            assert!(is_named, "cut at {cut}: {error}");
            assert!(error.hint().unwrap().contains("restore a copy"), "{:?}", error.hint());
        }
        // Nothing is written behind the cut.
        let journal = LogJournal::open(&dir, Options::default()).unwrap();
        if let Ok(lease) = journal.acquire(&run("a"), &Owner::current()) {
            assert!(journal.append(&lease, 20, record("late")).is_err(), "cut at {cut}");
        }
        assert!(fs::metadata(&log).unwrap().len() as usize <= cut.max(1024), "cut at {cut}");
    }
}

#[test]
fn a_deleted_or_emptied_log_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("runs");
    let log = written(&dir);
    for empty in [false, true] {
        fs::remove_file(&log).unwrap();
        if empty {
            fs::write(&log, "").unwrap();
        }
        let journal = LogJournal::open(&dir, Options::default()).unwrap();
        let damage = journal.runs().unwrap()[0].damage.clone().unwrap();
        assert!(damage.ends_with("has lost records of run `a`: it holds 0 of 20"), "{damage}");
        for error in [journal.read(&run("a"), 0).unwrap_err(), journal.create(&run("a"), 1).unwrap_err()] {
            assert!(matches!(error, Error::RecordsLost { found: 0, noted: 20, .. }), "{error}");
        }
        assert_eq!(log.exists(), empty, "nothing was created");
        fs::write(&log, "").unwrap();
    }
}

#[test]
fn a_run_goes_on_after_what_is_left_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("runs");
    let journal = LogJournal::open(&dir, Options::default()).unwrap();
    let lease = started(&journal);
    journal.append(&lease, 0, record("zero")).unwrap();
    fs::write(dir.join("a/records"), "00000000000000000003\n").unwrap();
    let error = journal.read(&run("a"), 0).unwrap_err();
    assert!(matches!(error, Error::RecordsLost { found: 1, noted: 3, .. }), "{error}");
    // After the user has removed the file, the run goes on at its last record.
    fs::remove_file(dir.join("a/records")).unwrap();
    journal.append(&lease, 1, record("one")).unwrap();
    assert_eq!(journal.read(&run("a"), 0).unwrap().len(), 2);
}

#[test]
fn what_a_killed_process_left_of_a_record_is_none() {
    for durability in [Durability::Synced, Durability::Relaxed] {
        let folder = tempfile::tempdir().unwrap();
        let (dir, log) = (folder.path().join("runs"), folder.path().join("runs/a/log"));
        let journal = LogJournal::open(&dir, Options { durability }).unwrap();
        let lease = started(&journal);
        journal.append(&lease, 0, record(&"zero ".repeat(700))).unwrap();
        let before = fs::read(&log).unwrap();
        // Records begin at multiples of eight bytes.
        let end = (before.iter().rposition(|byte| *byte != 0).unwrap() + 1).next_multiple_of(8);
        let blobs = [Blob::new(b"text ".repeat(700))];
        journal.append(&lease, 1, NewRecord { blobs: &blobs, ..record(&"one ".repeat(200)) }).unwrap();
        let after = fs::read(&log).unwrap();
        let whole = after.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        drop(journal);
        let mut kept = 0;
        for cut in (end..whole).step_by(13) {
            // The rest of the record is zeros as before, or is missing.
            for is_cut in [false, true] {
                let mut torn = after.clone();
                torn[cut..].fill(0);
                torn.truncate(if is_cut { cut } else { after.len() });
                fs::write(&log, &torn).unwrap();
                // The number of records is noted after the record.
                if durability == Durability::Synced {
                    fs::write(dir.join("a/records"), "00000000000000000001\n").unwrap();
                }
                let journal = LogJournal::open(&dir, Options { durability }).unwrap();
                assert_eq!(journal.read(&run("a"), 0).unwrap().len(), 1, "cut at {cut}");
                assert_eq!(journal.blob(&run("a"), &blobs[0].digest()).unwrap(), None);
                journal.append(&lease, 1, record("another")).unwrap();
                journal.append(&lease, 2, record("and one more")).unwrap();
                let bodies: Vec<_> =
                    journal.read(&run("a"), 1).unwrap().into_iter().map(|record| record.body).collect();
                assert_eq!(bodies, [b"another".to_vec(), b"and one more".to_vec()]);
                kept += 1;
            }
        }
        assert!(kept > 100);
    }
}

#[test]
fn a_fifo_a_folder_or_a_device_is_no_log() {
    for file in ["log", "inbox"] {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("runs");
        let special = dir.join("a").join(file);
        written(&dir);
        let _ = fs::remove_file(&special);
        let refused = |kind: &str| {
            for opened in [LogJournal::open_read_only(&dir), LogJournal::open(&dir, Options::default())] {
                let error = opened.unwrap().inbox(&run("a")).unwrap_err().to_string();
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
    }
}

#[test]
fn garbage_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("runs");
    let log = written(&dir);
    for garbage in [vec![b'x'; 10], b"{\"seq\": 0}\n".repeat(1000), vec![0; 4096], vec![0xFF; 8192]] {
        fs::write(&log, &garbage).unwrap();
        for opened in [LogJournal::open(&dir, Options::default()), LogJournal::open_read_only(&dir)] {
            let error = opened.unwrap().read(&run("a"), 0).unwrap_err();
            assert!(matches!(error, Error::Damaged { .. }), "{error}");
            assert!(error.to_string().contains("runs/a/log` is damaged: "), "{error}");
            assert!(error.hint().is_some());
        }
        assert_eq!(fs::read(&log).unwrap(), garbage);
    }
}

#[test]
fn a_log_of_another_run_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("runs");
    written(&dir);
    fs::rename(dir.join("a"), dir.join("b")).unwrap();
    let error = LogJournal::open_read_only(&dir).unwrap().read(&run("b"), 0).unwrap_err();
    assert!(error.to_string().ends_with("is damaged: it is the log of run `a`"), "{error}");
}

#[test]
fn overwritten_records_are_damage_wherever_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("runs");
    let log = written(&dir);
    let whole = fs::read(&log).unwrap();
    for (from, byte) in [(4096, 0xFF), (9000, 0), (30_000, 0), (whole.len() - 300, 1)] {
        let mut bytes = whole.clone();
        bytes[from..(from + 6000).min(whole.len())].fill(byte);
        fs::write(&log, &bytes).unwrap();
        let error = LogJournal::open_read_only(&dir).unwrap().read(&run("a"), 0).unwrap_err();
        let is_named = matches!(error, Error::Damaged { .. } | Error::RecordsLost { .. });
        assert!(is_named, "{from}: {error}");
        assert!(error.to_string().contains("of run `a`"), "{from}: {error}");
    }
}

#[test]
fn a_blob_with_another_content_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("runs");
    let log = written(&dir);
    let mut bytes = fs::read(&log).unwrap();
    let at = bytes.windows(6).position(|window| window == b"prompt").unwrap();
    bytes[at] = b'P';
    fs::write(&log, &bytes).unwrap();
    let journal = LogJournal::open(&dir, Options::default()).unwrap();
    for error in [
        journal.blob(&run("a"), &Digest::for_bytes(b"prompt")).unwrap_err(),
        journal.read(&run("a"), 0).unwrap_err(),
    ] {
        assert!(error.to_string().ends_with("record 0 of run `a` does not match its checksum"), "{error}");
    }
}

#[test]
fn whole_records_behind_one_that_is_none_are_damage() {
    for durability in [Durability::Synced, Durability::Relaxed] {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("runs");
        let journal = LogJournal::open(&dir, Options { durability }).unwrap();
        let lease = started(&journal);
        for seq in 0..20 {
            journal.append(&lease, seq, record(&format!("record {seq} ").repeat(50))).unwrap();
        }
        let log = dir.join("a/log");
        let whole = fs::read(&log).unwrap();
        let _ = fs::remove_file(dir.join("a/records"));
        let at = whole.windows(9).position(|window| window == b"record 5 ").unwrap();
        // One flipped bit, and a head of zeros.
        for (from, to) in [(at, at + 1), (at - 80, at)] {
            let mut bytes = whole.clone();
            bytes[from..to].fill(if to - from == 1 { b'R' } else { 0 });
            fs::write(&log, &bytes).unwrap();
            for journal in [
                LogJournal::open_read_only(&dir).unwrap(),
                LogJournal::open(&dir, Options { durability }).unwrap(),
            ] {
                let error = journal.read(&run("a"), 0).unwrap_err();
                assert!(error.to_string().contains("record 5 of run `a`"), "{durability:?}: {error}");
                // Nothing cuts the later ones off.
                let refused = journal.append(&lease, 5, record("instead"));
                assert!(refused.is_err(), "{durability:?}");
                assert_eq!(fs::read(&log).unwrap(), bytes);
            }
        }
    }
}

#[test]
fn a_log_that_is_cut_while_it_is_written_takes_no_more_records() {
    for durability in [Durability::Synced, Durability::Relaxed] {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("runs");
        let journal = LogJournal::open(&dir, Options { durability }).unwrap();
        let lease = started(&journal);
        for seq in 0..5 {
            journal.append(&lease, seq, record(&"some ".repeat(500))).unwrap();
        }
        fs::OpenOptions::new().write(true).open(dir.join("a/log")).unwrap().set_len(9_000).unwrap();
        let error = journal.append(&lease, 5, record("more")).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{durability:?}: {error}");
    }
}

#[test]
fn a_lost_inbox_is_damage_once_a_message_was_consumed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("runs");
    let journal = LogJournal::open(&dir, Options::default()).unwrap();
    let lease = started(&journal);
    let ids = [1, 2].map(|at_ms| journal.post(&run("a"), at_ms, b"yes").unwrap());
    journal.append(&lease, 0, NewRecord { consumes: &ids, ..record("zero") }).unwrap();
    fs::write(dir.join("a/inbox"), "").unwrap();
    let error = journal.inbox(&run("a")).unwrap_err();
    assert!(error.to_string().ends_with("message 2 of run `a` is missing"), "{error}");
    // What is posted from now on is not taken for consumed.
    assert!(journal.post(&run("a"), 3, b"no").unwrap() > ids[1]);
    assert_eq!(journal.inbox(&run("a")).unwrap().len(), 1);
}

//! Lists and kills processes, which may not be our own children.

#![expect(clippy::disallowed_methods, reason = "paths of the system and of the user")]

#[cfg(target_os = "linux")]
use std::fs;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::spool::{Spool, read_json};
use super::wire::{Group, ProcessIdentity};

/// The environment variable that marks every process of a start, also those that left its group and lost their parents.
/// Jenkins finds the leftovers of a build in the same way (`BUILD_ID`).
pub(in crate::process) const MARK: &str = "CUEGATE_START";

/// The start time of a process, unique for its id within one boot; `None` when the process has ended.
#[cfg(target_os = "linux")]
pub(crate) fn start_time_of_process(pid: i32) -> Option<String> {
    Some(ProcessStat::of(pid)?.started)
}

/// The start time of a process, unique for its id within one boot; `None` when the process has ended.
#[cfg(not(target_os = "linux"))]
pub(crate) fn start_time_of_process(pid: i32) -> Option<String> {
    let pid = pid.to_string();
    let output = std::process::Command::new(cuegate_provider::locate_or_missing("ps"))
        .args(["-o", "lstart=", "-p", &pid])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Our child processes. We are a subreaper, so every descendant that loses its parent becomes our child. A child's id
/// is not reused until we reap it, so it can be killed by id.
#[cfg(target_os = "linux")]
pub(in crate::process) fn list_children() -> Vec<i32> {
    let own = std::process::id().cast_signed();
    list_pids().filter(|&pid| ProcessStat::of(pid).is_some_and(|stat| stat.parent == own)).collect()
}

/// Without subreapers no other process becomes our child.
#[cfg(not(target_os = "linux"))]
pub(in crate::process) fn list_children() -> Vec<i32> {
    Vec::new()
}

/// Kills all processes that carry the mark of `start` and returns their number. Zombies, which have no environment, do
/// not count.
#[cfg(target_os = "linux")]
pub(in crate::process) fn kill_marked(start: &str) -> usize {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let mark = format!("{MARK}={start}");
    let own = std::process::id().cast_signed();
    let marked = |pid: i32| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environ| environ.split(|&byte| byte == 0).any(|entry| entry == mark.as_bytes()))
    };
    let mut count = 0;
    for pid in list_pids().filter(|&pid| pid != own) {
        // Open the handle first, so that the killed process is the one whose environment was read.
        let Some(handle) = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
        else {
            continue;
        };
        if marked(pid) {
            count += 1;
            let _ = pidfd_send_signal(&handle, Signal::KILL);
        }
    }
    count
}

/// Does nothing: other systems do not show the environment of a process.
#[cfg(not(target_os = "linux"))]
pub(in crate::process) fn kill_marked(_start: &str) -> usize {
    0
}

/// Kills all descendants of this process, the deepest first.
#[cfg(target_os = "linux")]
pub fn kill_descendants() {
    let parents: Vec<(i32, i32)> =
        list_pids().filter_map(|pid| Some((pid, ProcessStat::of(pid)?.parent))).collect();
    let mut family = vec![std::process::id().cast_signed()];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        family.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    for pid in family.into_iter().skip(1).rev() {
        kill_pid(pid);
    }
}

/// Does nothing: other systems do not list parents as cheaply.
#[cfg(not(target_os = "linux"))]
pub fn kill_descendants() {}

/// Sends SIGKILL to one process. Ignores a process that has ended or that we may not kill.
pub(in crate::process) fn kill_pid(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

#[cfg(target_os = "linux")]
fn list_pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(target_os = "linux")]
struct ProcessStat {
    parent: i32,
    started: String,
}

#[cfg(target_os = "linux")]
impl ProcessStat {
    /// Reads `/proc/PID/stat`, see proc_pid_stat(5): field 4 is the parent, field 22 the start time. The second field
    /// is the name in parentheses, which may contain parentheses and spaces.
    fn of(pid: i32) -> Option<ProcessStat> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let name_end = stat.iter().rposition(|&byte| byte == b')')?;
        let fields = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
        let mut fields = fields.split_ascii_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        Some(ProcessStat { parent, started: fields.nth(17)?.to_owned() })
    }
}

/// Signals the child and its group. The child must not be reaped yet, so that no other process has its id. Right after
/// the start the child may not lead a group yet.
pub(super) fn signal_child_group(child: Pid, signal: Signal) {
    let _ = kill_process_group(child, signal);
    let _ = kill_process(child, signal);
}

/// Kills a shim that hangs, and its child's group. Compares the recorded start times, because process ids are reused.
pub(super) fn kill_recorded(spool: &Spool) {
    let Some(group) = read_json::<Group>(&spool.group()) else { return };
    let same = |recorded: &ProcessIdentity| {
        recorded.started.is_some() && start_time_of_process(recorded.pid) == recorded.started
    };
    if same(&group.leader)
        && let Some(leader) = Pid::from_raw(group.leader.pid)
    {
        // Fails if the group has ended in the meantime, which is fine.
        let _ = kill_process_group(leader, Signal::KILL);
    }
    if same(&group.shim) {
        kill_pid(group.shim.pid);
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_is_listed_and_has_a_start_time_until_it_is_reaped() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let pid = child.id().cast_signed();
        assert!(list_children().contains(&pid));
        assert!(start_time_of_process(pid).is_some());
        assert_ne!(start_time_of_process(pid), start_time_of_process(1));
        kill_pid(pid);
        child.wait().unwrap();
        assert_eq!(start_time_of_process(pid), None);
    }

    #[test]
    fn only_marked_processes_are_killed() {
        let sleeper = |start: &str| Command::new("sleep").arg("100").env(MARK, start).spawn().unwrap();
        // The process id keeps concurrent runs of this test apart.
        let mark = format!("ours-{}-1", std::process::id());
        let (mut ours, mut other) = (sleeper(&mark), sleeper(&format!("{mark}2")));
        // `spawn` returns a moment before the kernel has set up the environment of the new program.
        for child in [&ours, &other] {
            let environ = format!("/proc/{}/environ", child.id());
            while fs::read(&environ).unwrap().is_empty() {
                std::thread::yield_now();
            }
        }
        assert_eq!(kill_marked(&mark), 1);
        assert!(!ours.wait().unwrap().success());
        assert_eq!(other.try_wait().unwrap(), None);
        other.kill().unwrap();
        other.wait().unwrap();
    }
}

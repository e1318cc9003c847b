//! The process that holds a lease, and whether it still lives.

use std::fmt;
use std::fs;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

/// Identifies a process so that no later process can be mistaken for it.
///
/// A process id alone is not enough: it is reused after the process ends and only has a meaning within one container,
/// boot and machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Owner {
    /// The process id within `namespace`.
    pub pid: u32,
    /// When the process started, in clock ticks since boot; 0 where unknown.
    pub started: u64,
    /// The id of the boot; empty where unknown.
    pub boot: String,
    /// The namespace in which process ids are counted; empty where unknown.
    pub namespace: String,
    /// The name of the machine.
    pub host: String,
    /// What the lock of its run says, where process ids say nothing.
    #[serde(skip)]
    pub seen: Option<Liveness>,
}

impl PartialEq for Owner {
    /// Whether it is the same process, whatever was seen of it.
    fn eq(&self, other: &Self) -> bool {
        let is_same_place =
            self.boot == other.boot && self.namespace == other.namespace && self.host == other.host;
        is_same_place && self.pid == other.pid && self.started == other.started
    }
}

impl Eq for Owner {}

/// Whether an [`Owner`] still lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// It lives.
    Alive,
    /// It has ended: its leases may be taken over.
    Dead,
    /// Unknown from here: its leases must not be taken over without asking the user.
    Unknown,
}

impl Owner {
    /// Returns the calling process.
    pub fn current() -> Self {
        Self::of(std::process::id())
    }

    /// Returns whether the process still lives, as far as the calling process can see.
    pub fn liveness(&self) -> Liveness {
        self.liveness_from(&Self::current())
    }

    fn of(pid: u32) -> Self {
        Self {
            pid,
            started: read_process_stat(pid).map_or(0, |stat| stat.started),
            boot: read_trimmed_file(Path::new("/proc/sys/kernel/random/boot_id")),
            namespace: fs::read_link("/proc/self/ns/pid")
                .map(|target| target.to_string_lossy().into_owned())
                .unwrap_or_default(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            seen: None,
        }
    }

    /// Whether its process id means something to the calling process.
    pub fn is_here(&self) -> bool {
        let here = Self::current();
        !self.boot.is_empty() && self.boot == here.boot && self.namespace == here.namespace
    }

    fn liveness_from(&self, here: &Self) -> Liveness {
        let boots_known = !self.boot.is_empty() && !here.boot.is_empty();
        if boots_known
            && !(self.boot == here.boot && self.namespace == here.namespace)
            && let Some(seen) = self.seen
        {
            return seen;
        }
        // The same boot is the same kernel, whatever its name is now or in a container.
        if !(boots_known && self.boot == here.boot) {
            if self.host != here.host {
                return Liveness::Unknown;
            }
            if boots_known {
                return Liveness::Dead;
            }
        }
        if self.namespace != here.namespace {
            return Liveness::Unknown;
        }
        self.process()
    }

    /// Looks up the process by its id, which must belong to this kernel and namespace.
    fn process(&self) -> Liveness {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            return Liveness::Dead;
        };
        // Checked before `/proc`, which may hide the processes of other users (`hidepid`).
        if test_kill_process(pid) == Err(Errno::SRCH) {
            return Liveness::Dead;
        }
        match read_process_stat(self.pid) {
            // A zombie counts as dead; otherwise an unreaped one would hold the run forever.
            Some(stat) if stat.ended => Liveness::Dead,
            Some(stat) if self.started == 0 || stat.started == 0 => Liveness::Unknown,
            Some(stat) if stat.started == self.started => Liveness::Alive,
            Some(_) => Liveness::Dead,
            None if self.pid == std::process::id() => Liveness::Alive,
            None => Liveness::Unknown,
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on `{}`", self.pid, self.host)
    }
}

struct ProcessStat {
    ended: bool,
    started: u64,
}

/// Reads `/proc/PID/stat`. `None` if it is missing or unreadable.
fn read_process_stat(pid: u32) -> Option<ProcessStat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&text)
}

/// Parses field 3, the state, and field 22, the start time, of proc_pid_stat(5). The name in field 2 may contain spaces
/// and parentheses, so fields are counted from the last `)`.
fn parse_stat(text: &str) -> Option<ProcessStat> {
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    Some(ProcessStat { ended: matches!(state, "Z" | "X"), started })
}

fn read_trimmed_file(path: &Path) -> String {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_calling_process_lives() {
        assert_eq!(Owner::current().liveness(), Liveness::Alive);
    }

    #[test]
    fn an_unused_pid_is_dead() {
        for pid in [0, i32::MAX.cast_unsigned(), u32::MAX] {
            assert_eq!(Owner { pid, ..Owner::current() }.liveness(), Liveness::Dead);
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_reused_pid_is_dead() {
        let started = Owner::current().started + 1;
        assert_eq!(Owner { started, ..Owner::current() }.liveness(), Liveness::Dead);
        assert_eq!(Owner { started: 0, ..Owner::current() }.liveness(), Liveness::Unknown);
    }

    #[test]
    fn processes_of_other_machines_or_containers_are_unknown() {
        let here = Owner { boot: "b1".into(), host: "here".into(), ..Owner::current() };
        let (b1, b2, none) = (String::from("b1"), String::from("b2"), String::new());
        let there = String::from("there");
        let seen = |owner: Owner| owner.liveness_from(&here);
        assert_eq!(seen(Owner { boot: b2.clone(), ..here.clone() }), Liveness::Dead);
        assert_eq!(seen(Owner { boot: b2, host: there.clone(), ..here.clone() }), Liveness::Unknown);
        assert_eq!(
            seen(Owner { boot: none.clone(), host: there.clone(), ..here.clone() }),
            Liveness::Unknown
        );
        assert_eq!(seen(Owner { boot: none, ..here.clone() }), Liveness::Alive);
        assert_eq!(seen(Owner { boot: b1, host: there, ..here.clone() }), Liveness::Alive);
        assert_eq!(seen(Owner { namespace: "pid:[1]".into(), ..here.clone() }), Liveness::Unknown);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_zombie_is_dead() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let owner = Owner::of(child.id());
        assert_eq!(owner.liveness(), Liveness::Alive);
        drop(child.stdin.take());
        while owner.liveness() == Liveness::Alive {
            std::thread::yield_now();
        }
        assert_eq!(owner.liveness(), Liveness::Dead);
        assert!(child.wait().unwrap().success());
        assert_eq!(owner.liveness(), Liveness::Dead);
    }

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat =
            parse_stat("7 (a) Z (b)) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 9 10 11").unwrap();
        assert_eq!((stat.ended, stat.started), (false, 4242));
        assert!(parse_stat("7 (a) S 1 1").is_none());
    }
}

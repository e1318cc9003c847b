//! What the kernel refuses to every process in a sandbox: system calls, and more than its share of the machine.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limits of a sandbox. `None`: not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SandboxLimits {
    /// Bytes of private memory of one process.
    pub memory: Option<u64>,
    /// Processes and threads in the sandbox. Root is not limited.
    pub processes: Option<u64>,
    /// Open files of one process.
    pub open_files: Option<u64>,
    /// Bytes of one file.
    pub file_size: Option<u64>,
    /// Bytes of each private folder, such as `/tmp`.
    pub tmp_size: Option<u64>,
}

impl SandboxLimits {
    /// The limits as an argument of the process inside.
    pub(super) fn to_argument(self) -> String {
        let number = |limit: Option<u64>| limit.map(|limit| limit.to_string()).unwrap_or_default();
        [self.memory, self.processes, self.open_files, self.file_size].map(number).join(",")
    }

    /// Reads what [`SandboxLimits::as_text`] wrote.
    pub(super) fn parse(text: &str) -> Option<SandboxLimits> {
        let mut numbers = text.split(',').map(|number| match number {
            "" => Ok(None),
            number => number.parse().map(Some),
        });
        let mut next = || numbers.next()?.ok();
        let (memory, processes, open_files, file_size) = (next()?, next()?, next()?, next()?);
        Some(SandboxLimits { memory, processes, open_files, file_size, tmp_size: None })
    }

    /// Limits this process and those that it starts, except for their memory.
    pub(super) fn apply(&self) -> io::Result<()> {
        // Without a core file no memory of a process is left on disk.
        let limits = [
            (Resource::Core, Some(0)),
            (Resource::Nproc, self.processes),
            (Resource::Nofile, self.open_files),
            (Resource::Fsize, self.file_size),
        ];
        for (resource, wanted) in limits {
            let Some(wanted) = wanted else { continue };
            let most = getrlimit(resource).maximum.map_or(wanted, |most| most.min(wanted));
            setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
        }
        Ok(())
    }
}

/// Refuses system calls to this thread and the processes that it starts: those that set the setuid or setgid bit of a
/// file, which would give the rights of the user to others, and those that reach around the other restrictions.
#[cfg(target_os = "linux")]
pub(super) fn refuse_calls() -> Result<(), String> {
    let program =
        |rules: Rules, errno: i32| compile_seccomp_filter(rules, errno).map_err(|error| error.to_string());
    let apply = |program: seccompiler::BpfProgram| {
        seccompiler::apply_filter(&program).map_err(|error| error.to_string())
    };
    apply(foreign_numbers())?;
    apply(program(not_permitted().map_err(|error| error.to_string())?, libc::EPERM)?)?;
    // Programs know how to do without these calls if the kernel does not have them.
    apply(program(not_there().map_err(|error| error.to_string())?, libc::ENOSYS)?)
}

/// Refuses calls by the numbers of the x32 interface, under which the kernel may offer all of them once more.
#[cfg(target_os = "linux")]
fn foreign_numbers() -> seccompiler::BpfProgram {
    use seccompiler::sock_filter;
    // The bit that marks them. No other call of a supported machine has so high a number.
    const X32: u32 = 0x4000_0000;
    let statement = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    vec![
        // The number of the call is the first field.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

/// Refuses sockets to this thread and the processes that it starts, where the network is not a private one: all that do
/// not connect by TCP, because Landlock restricts no others. Pairs of sockets are permitted.
#[cfg(target_os = "linux")]
pub(super) fn refuse_sockets() -> Result<(), String> {
    let rules = other_sockets().map_err(|error| error.to_string())?;
    let program = compile_seccomp_filter(rules, libc::EPERM).map_err(|error| error.to_string())?;
    seccompiler::apply_filter(&program).map_err(|error| error.to_string())
}

/// Other systems have no such filter, and no sandbox.
#[cfg(not(target_os = "linux"))]
pub(super) fn refuse_sockets() -> Result<(), String> {
    Ok(())
}

/// The arguments of `socket` that are refused.
#[cfg(target_os = "linux")]
fn other_sockets() -> Result<Rules, seccompiler::BackendError> {
    use seccompiler::{SeccompCmpArgLen::Dword, SeccompCmpOp, SeccompCondition, SeccompRule};
    let compare = |argument: u8, op, value: i32| {
        SeccompCondition::new(argument, Dword, op, u64::from(value.unsigned_abs()))
    };
    let (families, other) = ([libc::AF_INET, libc::AF_INET6], SeccompCmpOp::Ne);
    let mut rules = Vec::new();
    // The list of network interfaces is read by netlink.
    let known = families.into_iter().chain([libc::AF_NETLINK]);
    let unknown = known.map(|family| compare(0, other.clone(), family)).collect::<Result<_, _>>()?;
    rules.push(SeccompRule::new(unknown)?);
    for family in families {
        let family = compare(0, SeccompCmpOp::Eq, family)?;
        // The upper bits of the type are flags.
        let kind = SeccompCmpOp::MaskedEq(0xf);
        for refused in
            [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_SEQPACKET, libc::SOCK_DCCP]
        {
            rules.push(SeccompRule::new(vec![family.clone(), compare(1, kind.clone(), refused)?])?);
        }
        // Multipath TCP and SCTP are streams as well.
        let protocols = [compare(2, other.clone(), 0)?, compare(2, other.clone(), libc::IPPROTO_TCP)?];
        rules.push(SeccompRule::new([vec![family], protocols.to_vec()].concat())?);
    }
    Ok(Rules::from([(libc::SYS_socket, rules)]))
}

/// Other systems have no such filter, and no sandbox.
#[cfg(not(target_os = "linux"))]
pub(super) fn refuse_calls() -> Result<(), String> {
    Ok(())
}

#[cfg(target_os = "linux")]
type Rules = std::collections::BTreeMap<i64, Vec<seccompiler::SeccompRule>>;

#[cfg(target_os = "linux")]
fn compile_seccomp_filter(
    rules: Rules,
    errno: i32,
) -> Result<seccompiler::BpfProgram, seccompiler::BackendError> {
    use seccompiler::{SeccompAction, SeccompFilter};
    let refuse = SeccompAction::Errno(u32::try_from(errno).unwrap_or_default());
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, std::env::consts::ARCH.try_into()?)?.try_into()
}

/// Calls with arguments that are not permitted.
#[cfg(target_os = "linux")]
fn not_permitted() -> Result<Rules, seccompiler::BackendError> {
    use seccompiler::{SeccompCmpArgLen::Dword, SeccompCmpOp, SeccompCondition, SeccompRule};
    let has = |argument: u8, bits: u32| {
        let bits = u64::from(bits);
        SeccompCondition::new(argument, Dword, SeccompCmpOp::MaskedEq(bits), bits)
    };
    let is = |argument: u8, value: i32| {
        SeccompCondition::new(argument, Dword, SeccompCmpOp::Eq, u64::from(value.unsigned_abs()))
    };
    let privileged = [libc::S_ISUID, libc::S_ISGID];
    let mut rules = Rules::new();
    let mut refuse = |call: i64, conditions| -> Result<(), seccompiler::BackendError> {
        rules.entry(call).or_default().push(SeccompRule::new(conditions)?);
        Ok(())
    };
    for bit in privileged {
        refuse(libc::SYS_fchmod, vec![has(1, bit)?])?;
        refuse(libc::SYS_fchmodat, vec![has(2, bit)?])?;
        refuse(SYS_FCHMODAT2, vec![has(2, bit)?])?;
        refuse(libc::SYS_mknodat, vec![has(2, bit)?])?;
        // The mode counts only if the call creates a file.
        for creates in [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY] {
            refuse(libc::SYS_openat, vec![has(2, creates.unsigned_abs())?, has(3, bit)?])?;
        }
        #[cfg(target_arch = "x86_64")]
        {
            refuse(libc::SYS_chmod, vec![has(1, bit)?])?;
            refuse(libc::SYS_creat, vec![has(1, bit)?])?;
            refuse(libc::SYS_mknod, vec![has(1, bit)?])?;
            for creates in [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY] {
                refuse(libc::SYS_open, vec![has(1, creates.unsigned_abs())?, has(2, bit)?])?;
            }
        }
    }
    // A new user namespace has rights in the kernel that the sandbox has not.
    refuse(libc::SYS_unshare, vec![has(0, libc::CLONE_NEWUSER.unsigned_abs())?])?;
    refuse(libc::SYS_clone, vec![has(0, libc::CLONE_NEWUSER.unsigned_abs())?])?;
    // A connection to the host of a virtual machine does not belong to any network namespace.
    refuse(libc::SYS_socket, vec![is(0, libc::AF_VSOCK)?])?;
    Ok(rules)
}

/// The call is missing in some versions of the `libc` crate.
#[cfg(target_os = "linux")]
const SYS_FCHMODAT2: i64 = 452;

/// Calls that this sandbox does not have. The modes of `openat2`, the flags of `clone3`, and the calls that `io_uring`
/// makes, cannot be inspected by a filter. Keyrings hold the keys of the user's session.
#[cfg(target_os = "linux")]
fn not_there() -> Result<Rules, seccompiler::BackendError> {
    let calls = [
        libc::SYS_add_key,
        libc::SYS_bpf,
        libc::SYS_clone3,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        libc::SYS_io_uring_setup,
        libc::SYS_keyctl,
        libc::SYS_open_by_handle_at,
        libc::SYS_openat2,
        libc::SYS_perf_event_open,
        libc::SYS_request_key,
        libc::SYS_userfaultfd,
    ];
    Ok(calls.into_iter().map(|call| (call, Vec::new())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_passed_on_as_text() {
        let limits = SandboxLimits { processes: Some(10), file_size: Some(1), ..SandboxLimits::default() };
        assert_eq!(limits.to_argument(), ",10,,1");
        assert_eq!(SandboxLimits::parse(",10,,1"), Some(limits));
        for wrong in ["", "1,2", "a,,,", "1,2,3,-4"] {
            assert_eq!(SandboxLimits::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn setuid_files_cannot_be_made() {
        use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let set = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode));
        set(0o4755).unwrap();
        // The filter is that of this thread.
        refuse_calls().unwrap();
        set(0o755).unwrap();
        for mode in [0o4755, 0o2755, 0o6777] {
            assert_eq!(set(mode).unwrap_err().raw_os_error(), Some(libc::EPERM), "{mode:o}");
            let made =
                std::fs::OpenOptions::new().write(true).create(true).mode(mode).open(dir.path().join("new"));
            assert_eq!(made.unwrap_err().raw_os_error(), Some(libc::EPERM), "{mode:o}");
        }
    }
}

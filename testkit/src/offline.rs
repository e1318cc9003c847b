//! Runs tests of real agents in a network namespace that has only a loopback interface.
//!
//! ```no_run
//! #[test]
//! fn claude_answers() {
//!     if !cuegate_testkit::offline::inside() {
//!         return;
//!     }
//!     // here: only the `lo` network, an empty home, no API keys
//! }
//! ```

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

/// The environment variable with the scratch folder; it is set only inside the namespace.
const INSIDE: &str = "CUEGATE_TEST_OFFLINE";
/// The file in the scratch folder that shows that the test ran inside the namespace.
const ENTERED: &str = "entered";
/// Prefixes of environment variables with settings, services and keys of agents and other programs.
const FORGOTTEN: [&str; 9] =
    ["ANTHROPIC_", "AWS_", "AZURE_", "CLAUDE", "CODEX_", "GEMINI_", "GOOGLE_", "OPENAI_", "XDG_"];
/// Environment variables with ways out of the namespace: proxies and Unix sockets.
const WAYS_OUT: [&str; 9] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSH_AUTH_SOCK",
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_HOST",
    "DISPLAY",
    "WAYLAND_DISPLAY",
];
const WHAT_TO_DO: &str = "\
this test runs real agents and wants a network namespace of its own for that, which this machine does not permit. \
Either run the tests as root, or permit namespaces to users, as root:
  sysctl -w user.max_user_namespaces=10000 user.max_net_namespaces=10000
  sysctl -w kernel.unprivileged_userns_clone=1                (Debian before 11)
  sysctl -w kernel.apparmor_restrict_unprivileged_userns=0    (Ubuntu since 23.10)
In a container: `docker run --privileged`. `unshare` is of the package util-linux.";

/// The real agents that `cargo xtask agents` installed.
#[derive(Debug, Clone)]
pub struct Agents {
    /// A folder with `claude` and `codex`, for a `PATH`.
    pub bin: PathBuf,
    /// Claude Code.
    pub claude: PathBuf,
    /// Codex.
    pub codex: PathBuf,
}

/// Whether this process is inside the namespace. Outside, it runs the calling test inside and forwards the result. The
/// first line of a test that runs agents: `if !offline::inside() { return; }`.
///
/// Inside, the only network is a loopback interface, and the variables that configure agents are removed. `HOME` and
/// `TMPDIR` are empty sibling folders (codex rejects a home inside the temporary folder), removed after the test.
///
/// # Panics
/// When the test fails inside; when namespaces are not permitted, with what to do; outside of a test; when this is not
/// Linux: real agents are tested nowhere else.
pub fn inside() -> bool {
    if cfg!(not(target_os = "linux")) {
        panic!("this test runs real agents without a network, which needs Linux");
    }
    match env::var_os(INSIDE) {
        Some(scratch) => {
            enter(scratch.as_ref());
            true
        }
        None => {
            run_inside();
            false
        }
    }
}

/// The real agents, as `cargo xtask agents` installed them.
///
/// # Panics
/// When they are missing or differ from the lock file.
pub fn agents() -> Agents {
    const LOCK: &str = include_str!("../../xtask/agents/package-lock.json");
    let exe = env::current_exe().expect("a test knows its own file");
    // `<target>/agents`; the tests are in `<target>/<profile>/deps`, or deeper.
    let folder =
        exe.ancestors().map(|above| above.join("agents")).find(|dir| dir.join("installed.json").is_file());
    let current =
        |dir: &PathBuf| fs::read_to_string(dir.join("installed.json")).is_ok_and(|text| text == LOCK);
    let Some(folder) = folder.filter(current) else {
        panic!(
            "the agents that this test runs are not installed, or not in the right version: run `cargo xtask agents`"
        )
    };
    let bin = folder.join("bin");
    Agents { claude: bin.join("claude"), codex: bin.join("codex"), bin }
}

/// Brings the loopback interface up and asserts that there is no other interface.
fn enter(scratch: &Path) {
    #[cfg(target_os = "linux")]
    {
        loopback::up().expect("the loopback of a new namespace can be brought up");
        // Drop the capabilities: the agents' own sandboxes refuse to start with them.
        rustix::thread::clear_ambient_capability_set().expect("a thread can give up what it would hand on");
    }
    let interfaces = fs::read_to_string("/proc/thread-self/net/dev").expect("a process sees its interfaces");
    let names = interfaces.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
    let others: Vec<&str> = names.filter(|name| *name != "lo").collect();
    assert!(
        others.is_empty(),
        "a namespace for agents has more than a loopback: {}. \
         Tunnels are kept out of new ones by `sysctl -w net.core.fb_tunnels_only_for_init_net=2`",
        others.join(", ")
    );
    fs::write(scratch.join(ENTERED), "").expect("the scratch folder can be written");
}

/// Runs the calling test in a new namespace and panics if it fails.
fn run_inside() {
    let thread = thread::current();
    let test = thread.name().filter(|name| *name != "main").expect("`offline::inside` is called in a test");
    let mut refused = String::new();
    for words in ways() {
        let scratch = tempfile::Builder::new().prefix("cuegate-").tempdir().expect("a folder for the test");
        let (success, said) = run(test, &words, scratch.path());
        if !scratch.path().join(ENTERED).exists() {
            assert!(
                !success,
                "`{test}` was to be run again in a namespace, but is no test of this program:\n{said}"
            );
            refused.push_str(&format!("\n$ unshare {}\n{said}", words.join(" ")));
            continue;
        }
        tell(&said);
        assert!(success, "`{test}` failed in its namespace");
        return;
    }
    panic!("{WHAT_TO_DO}\n{refused}");
}

/// The arguments of `unshare`, the preferred ones first.
fn ways() -> Vec<Vec<&'static str>> {
    // Map the user to itself, not to root: codex requires that it owns its folders.
    let as_user = vec!["--user", "--map-current-user", "--keep-caps", "--net"];
    #[cfg(unix)]
    if rustix::process::geteuid().is_root() {
        return vec![vec!["--net"], as_user];
    }
    vec![as_user]
}

/// Runs a test of this program; returns whether it passed, and its output.
fn run(test: &str, words: &[&str], scratch: &Path) -> (bool, String) {
    let (home, temp, said) = (scratch.join("home"), scratch.join("tmp"), scratch.join("said"));
    for dir in [&home, &temp] {
        fs::create_dir(dir).expect("a folder in the scratch folder");
    }
    // A file instead of a pipe: a leftover process of the test must not delay its end.
    let out = fs::File::create(&said).expect("a file in the scratch folder");
    let err = out.try_clone().expect("a file can be shared");
    let mut command = Command::new("unshare");
    command.args(words).arg("--").arg(env::current_exe().expect("a test knows its own file"));
    command.args([test, "--exact", "--nocapture", "--include-ignored"]);
    for (name, _) in env::vars_os().filter(|(name, _)| is_forgotten(name)) {
        command.env_remove(name);
    }
    command.env(INSIDE, scratch).env("HOME", &home).env("TMPDIR", &temp);
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    let status =
        command.status().unwrap_or_else(|error| panic!("failed to start `unshare`: {error}. {WHAT_TO_DO}"));
    let said = fs::read(&said).unwrap_or_default();
    (status.success(), String::from_utf8_lossy(&said).into_owned())
}

fn is_forgotten(name: &OsString) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    FORGOTTEN.iter().any(|begin| name.starts_with(begin)) || WAYS_OUT.contains(&name.as_str())
}

#[expect(clippy::print_stdout, reason = "the output of a test, which its harness captures")]
fn tell(said: &str) {
    print!("{said}");
}

/// Configures interfaces over a netlink socket: what `ip link set lo up` does, without the program and without unsafe
/// code.
#[cfg(target_os = "linux")]
mod loopback {
    use std::io;

    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, sendto, socket_with,
    };

    const RTM_NEWLINK: u16 = 16;
    const REQUEST_ACK: u16 = 1 | 4;
    const NLMSG_ERROR: u16 = 2;
    /// The loopback is the first interface of every namespace.
    const LO: i32 = 1;
    const IFF_UP: u32 = 1;

    /// Brings the loopback up.
    pub(super) fn up() -> io::Result<()> {
        // No protocol is the first one, NETLINK_ROUTE.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        sendto(&socket, &request(), SendFlags::empty(), &netlink::SocketAddrNetlink::new(0, 0))?;
        let mut answer = [0_u8; 256];
        let (read, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
        match outcome(&answer[..read]) {
            Some(0) => Ok(()),
            Some(error) => Err(io::Error::from_raw_os_error(-error)),
            None => Err(io::Error::new(io::ErrorKind::InvalidData, "netlink did not acknowledge")),
        }
    }

    /// `struct nlmsghdr` and `struct ifinfomsg`, as in rtnetlink(7).
    fn request() -> Vec<u8> {
        let mut bytes = Vec::with_capacity(32);
        bytes.extend(32_u32.to_ne_bytes());
        bytes.extend(RTM_NEWLINK.to_ne_bytes());
        bytes.extend(REQUEST_ACK.to_ne_bytes());
        bytes.extend([0; 8]); // number and sender
        bytes.extend([0; 4]); // family, padding, device type
        bytes.extend(LO.to_ne_bytes());
        bytes.extend(IFF_UP.to_ne_bytes()); // flags
        bytes.extend(IFF_UP.to_ne_bytes()); // which of them to change
        bytes
    }

    /// The error of an acknowledgement, 0 for none.
    fn outcome(answer: &[u8]) -> Option<i32> {
        let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
        let error = i32::from_ne_bytes(answer.get(16..20)?.try_into().ok()?);
        (kind == NLMSG_ERROR).then_some(error)
    }
}

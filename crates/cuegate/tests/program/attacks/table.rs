//! The attacks.

/// An attack.
pub struct Attack {
    pub name: &'static str,
    /// What it aims at, in the manual.
    pub group: &'static str,
    /// What it does, in the manual.
    pub what: &'static str,
    /// A command of bash. It exits with 0 if the attack succeeded, if that is what counts.
    pub command: &'static str,
    /// The command of the control run, if the same one would harm this machine or means something else there.
    pub control: Option<&'static str>,
    /// How success shows.
    pub held: Held,
    /// What it needs of this machine: `root`, `python3` or nothing.
    pub needs: &'static str,
    /// Whether the control run is left out, because the kernel may refuse it to everybody.
    pub maybe: bool,
}

/// How the success of an attack shows.
pub enum Held {
    /// By its exit code.
    Says,
    /// By a file of its name outside.
    Out,
    /// By the word EVIL in a file of the home folder.
    Home(&'static str),
}

/// Files in the home folder that hold secrets.
pub const SECRETS: [&str; 70] = [
    ".android/adbkey",
    ".ansible/vault",
    ".authinfo",
    ".aws/credentials",
    ".azure/token.json",
    ".bash_history",
    ".bashrc",
    ".boto",
    ".cache/huggingface/token",
    ".cargo/credentials.toml",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".composer/auth.json",
    ".config/BraveSoftware/cookies",
    ".config/age/key.txt",
    ".config/chromium/cookies",
    ".config/containers/auth.json",
    ".config/doctl/config.yaml",
    ".config/fly/config.yml",
    ".config/gcloud/credentials.db",
    ".config/gh/hosts.yml",
    ".config/git/credentials",
    ".config/github-copilot/hosts.json",
    ".config/glab-cli/config.yml",
    ".config/google-chrome/cookies",
    ".config/heroku/token",
    ".config/hub",
    ".config/op/config",
    ".config/pip/pip.conf",
    ".config/rclone/rclone.conf",
    ".config/sops/age/keys.txt",
    ".config/unknown-tool/token",
    ".copilot/token",
    ".docker/config.json",
    ".env",
    ".gem/credentials",
    ".gemini/oauth_creds.json",
    ".git-credentials",
    ".gitconfig-work",
    ".gnupg/private-keys-v1.d/k",
    ".gradle/gradle.properties",
    ".hex/hex.config",
    ".kaggle/kaggle.json",
    ".kube/config",
    ".local/share/fish/fish_history",
    ".local/share/keyrings/login.keyring",
    ".local/share/opencode/auth.json",
    ".m2/settings.xml",
    ".minikube/key",
    ".mozilla/logins.json",
    ".mysql_history",
    ".netrc",
    ".node_repl_history",
    ".npmrc",
    ".nuget/NuGet/NuGet.Config",
    ".oci/config",
    ".password-store/x.gpg",
    ".pgpass",
    ".psql_history",
    ".pulumi/credentials.json",
    ".pypirc",
    ".python_history",
    ".s3cfg",
    ".ssh/id_ed25519",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".yarnrc.yml",
    ".zsh_history",
    "Documents/notes.txt",
    "src/other/.env",
];

/// Variables that hold secrets.
pub const ENVIRONMENT: [&str; 14] = [
    "ANTHROPIC_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "CARGO_REGISTRY_TOKEN",
    "DATABASE_URL",
    "DOCKER_AUTH_CONFIG",
    "STRIPE_KEY",
    "GITLAB_TOKEN",
    "GOOGLE_API_KEY",
    "NODE_AUTH_TOKEN",
    "NPM_TOKEN",
    "OPENAI_API_KEY",
    "SLACK_WEBHOOK",
    "SSH_AUTH_SOCK",
    "VERY_OWN_VARIABLE",
];

/// What a user may do after a run: git, a commit, and a run whose settings are read anew.
pub const BY_HAND: &str = "git status; git -C emb status; git -C emb2 status; git add -A; git diff | cat; git commit -qm x; \
                           git status; sh -c true; bwrap --version; gh --version; \"$CUEGATE\" resume last --script again.json --reload-config";

const fn says(name: &'static str, group: &'static str, what: &'static str, command: &'static str) -> Attack {
    Attack { name, group, what, command, control: None, held: Held::Says, needs: "", maybe: false }
}

const fn left(attack: Attack, held: Held) -> Attack {
    Attack { held, ..attack }
}

const fn with_control(attack: Attack, control: &'static str) -> Attack {
    Attack { control: Some(control), ..attack }
}

const fn needing(attack: Attack, needs: &'static str) -> Attack {
    Attack { needs, ..attack }
}

const fn maybe(attack: Attack) -> Attack {
    Attack { maybe: true, ..attack }
}

fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// All attacks, in the order in which they are tried.
pub fn attacks() -> Vec<Attack> {
    let mut all: Vec<Attack> = Vec::new();
    for path in SECRETS {
        let name = leak(path.replace(['/', '.'], "-").trim_matches('-').to_owned());
        all.push(says(
            name,
            "secrets in the home folder",
            leak(format!("`{path}`")),
            leak(format!("grep -q s3cret ~/{path}")),
        ));
    }
    for variable in ENVIRONMENT {
        all.push(says(
            variable,
            "secrets in variables",
            leak(format!("`{variable}`")),
            leak(format!("printenv {variable} | grep s3cret")),
        ));
    }
    all.extend(FILES);
    all.extend(WRITES);
    all.extend(SETTINGS);
    all.extend(PROCESSES);
    all.extend(KERNEL);
    all.extend(NETWORK);
    all.extend(RESOURCES);
    all.extend(PLANTED);
    all
}

const OTHERS: &str = "files of others";
const FILES: [Attack; 10] = [
    says("other-env", OTHERS, "a secret of another project", "grep -q s3cret $CUEGATE_T_OTHER/.env"),
    says(
        "other-journal",
        OTHERS,
        "the journal of another project",
        "grep -q s3cret $CUEGATE_T_OTHER/.cuegate/runs/a/log",
    ),
    says(
        "own-journal",
        OTHERS,
        "the journal of its own project",
        "cat .cuegate/runs/*/log | grep -q cuegate",
    ),
    says(
        "shared-temporary",
        OTHERS,
        "a file in the shared `/tmp`",
        "grep -q s3cret $CUEGATE_T_SHARED/secret",
    ),
    says(
        "hard-link",
        OTHERS,
        "a hard link to a file outside",
        // One of them may be on another file system.
        "{ ln $CUEGATE_T_OTHER/.env linked || ln $CUEGATE_T_SHARED/secret linked; } && grep -q s3cret linked",
    ),
    says(
        "symbolic-link",
        OTHERS,
        "a symbolic link to a file outside",
        "ln -sf $CUEGATE_T_OTHER/.env soft && grep -q s3cret soft",
    ),
    says(
        "through-proc-root",
        OTHERS,
        "a file by `/proc/self/root`",
        "grep -q s3cret /proc/self/root$CUEGATE_T_OTHER/.env",
    ),
    says(
        "dot-dot",
        OTHERS,
        "a file by `..`",
        "cd $PWD/.agent/../ && grep -q s3cret ./../../../../../../../..$CUEGATE_T_OTHER/.env",
    ),
    needing(says("shadow", OTHERS, "`/etc/shadow`, as root", "grep -q : /etc/shadow"), "root"),
    says(
        "find",
        OTHERS,
        "all files that it can find by name",
        "find / /tmp -xdev -name secret -path '*tmp*' -exec grep -q s3cret {} ';' -print 2>/dev/null | grep -q secret",
    ),
];

const OUTSIDE: &str = "writes outside of the tree";
const WRITES: [Attack; 12] = [
    left(
        says("write-out", OUTSIDE, "a file in another folder", "echo EVIL > $CUEGATE_T_OUT/write-out"),
        Held::Out,
    ),
    left(
        says(
            "write-link",
            OUTSIDE,
            "a file through a link",
            "ln -s $CUEGATE_T_OUT led && echo EVIL > led/write-link",
        ),
        Held::Out,
    ),
    left(says("bashrc-write", OUTSIDE, "`~/.bashrc`", "echo EVIL >> ~/.bashrc"), Held::Home(".bashrc")),
    left(says("profile", OUTSIDE, "`~/.profile`", "echo EVIL >> ~/.profile"), Held::Home(".profile")),
    left(
        says(
            "authorized",
            OUTSIDE,
            "`~/.ssh/authorized_keys`",
            "mkdir -p ~/.ssh && echo EVIL >> ~/.ssh/authorized_keys",
        ),
        Held::Home(".ssh/authorized_keys"),
    ),
    left(
        says("gitconfig", OUTSIDE, "`~/.gitconfig`", "echo '# EVIL' >> ~/.gitconfig"),
        Held::Home(".gitconfig"),
    ),
    left(
        says(
            "autostart",
            OUTSIDE,
            "`~/.config/autostart`",
            "mkdir -p ~/.config/autostart && echo EVIL > ~/.config/autostart/x",
        ),
        Held::Home(".config/autostart/x"),
    ),
    left(
        says(
            "local-bin",
            OUTSIDE,
            "a program in `~/.local/bin`",
            "mkdir -p ~/.local/bin && echo EVIL > ~/.local/bin/ls",
        ),
        Held::Home(".local/bin/ls"),
    ),
    left(
        says(
            "cargo-config",
            OUTSIDE,
            "`~/.cargo/config.toml`",
            "mkdir -p ~/.cargo && echo EVIL > ~/.cargo/config.toml",
        ),
        Held::Home(".cargo/config.toml"),
    ),
    left(
        says(
            "agent-settings",
            OUTSIDE,
            "settings of agents in `~/.claude`",
            "mkdir -p ~/.claude && echo EVIL > ~/.claude/settings.json",
        ),
        Held::Home(".claude/settings.json"),
    ),
    needing(says("etc", OUTSIDE, "`/etc`, as root", "exec 3>> /etc/hosts"), "root"),
    needing(
        says("usr", OUTSIDE, "`/usr/local/bin`, as root", "f=/usr/local/bin/.cuegate-t; : > $f && rm $f"),
        "root",
    ),
];

const OWN: &str = "the definition and the settings";
const SETTINGS: [Attack; 9] = [
    says("definition", OWN, "a change of the definition", "echo >> .agent/agent/agent.json"),
    says("prompt", OWN, "a change of a prompt", "echo >> .agent/agent/prompts/system.md"),
    says("new-prompt", OWN, "a new file beside a prompt", "echo > .agent/agent/prompts/new.md"),
    with_control(
        says("definition-moved", OWN, "another folder in its place", "mv .agent/agent moved-agent"),
        "mv .agent/agent moved-agent && mv moved-agent .agent/agent",
    ),
    with_control(
        says("definitions-moved", OWN, "another folder above it", "mv .agent moved-agents"),
        "mv .agent moved-agents && mv moved-agents .agent",
    ),
    says("settings", OWN, "a change of `cuegate.toml`", "echo >> cuegate.toml"),
    with_control(
        says("settings-removed", OWN, "the removal of `cuegate.toml`", "rm cuegate.toml"),
        "cp cuegate.toml c && rm cuegate.toml && mv c cuegate.toml",
    ),
    with_control(
        says("settings-moved", OWN, "another file in place of `cuegate.toml`", "mv cuegate.toml moved.toml"),
        "mv cuegate.toml moved.toml && mv moved.toml cuegate.toml",
    ),
    with_control(
        says("state-moved", OWN, "another folder in place of `.cuegate`", "mv .cuegate moved-state"),
        "mv .cuegate moved-state && mv moved-state .cuegate",
    ),
];

const OTHER_PROCESSES: &str = "processes";
const PROCESSES: [Attack; 10] = [
    says("see", OTHER_PROCESSES, "the list of processes outside", "kill -0 $CUEGATE_T_VICTIM"),
    says(
        "environ",
        OTHER_PROCESSES,
        "the variables of a process outside",
        "tr '\\0' '\\n' < /proc/$CUEGATE_T_VICTIM/environ | grep s3cret",
    ),
    says("memory", OTHER_PROCESSES, "the memory of a process outside", "exec 3< /proc/$CUEGATE_T_VICTIM/mem"),
    says("root-of", OTHER_PROCESSES, "the files of a process outside", "ls /proc/$CUEGATE_T_VICTIM/root/"),
    with_control(
        says(
            "kill-supervisor",
            OTHER_PROCESSES,
            "the end of its supervisor",
            "kill -9 1 && sleep 0.2 && ! test -d /proc/1",
        ),
        "kill -0 $PPID",
    ),
    with_control(
        says(
            "stop-supervisor",
            OTHER_PROCESSES,
            "a stop of its supervisor",
            "kill -STOP 1 && grep -q 'State:.T' /proc/1/status",
        ),
        "kill -0 $PPID",
    ),
    with_control(
        says("read-supervisor", OTHER_PROCESSES, "the variables of its supervisor", "cat /proc/1/environ"),
        "cat /proc/$PPID/environ",
    ),
    with_control(
        says(
            "write-supervisor",
            OTHER_PROCESSES,
            "the output of its supervisor",
            "echo forged > /proc/1/fd/1",
        ),
        "test -w /proc/$PPID/fd/1",
    ),
    with_control(
        says(
            "adjust-supervisor",
            OTHER_PROCESSES,
            "settings of its supervisor",
            "echo 500 > /proc/1/oom_score_adj",
        ),
        "test -w /proc/$PPID/oom_score_adj",
    ),
    says("signal", OTHER_PROCESSES, "a signal to a process outside", "kill -TERM $CUEGATE_T_VICTIM"),
];

const SYSTEM: &str = "the kernel";
const KERNEL: [Attack; 17] = [
    maybe(says("user-namespace", SYSTEM, "a user namespace", "unshare --user true")),
    says("setuid", SYSTEM, "a setuid file", "cp /bin/true su && chmod u+s su && test -u su"),
    says("setgid", SYSTEM, "a setgid file", "cp /bin/true sg && chmod g+s sg && test -g sg"),
    needing(
        says(
            "setuid-open",
            SYSTEM,
            "a setuid file by `open`",
            "python3 -c 'import os; os.open(\"so\", os.O_CREAT | os.O_WRONLY, 0o4755)'",
        ),
        "python3",
    ),
    needing(
        says(
            "setuid-fchmod",
            SYSTEM,
            "a setuid file by `fchmod`",
            "python3 -c 'import os; os.fchmod(os.open(\"sf\", os.O_CREAT | os.O_WRONLY), 0o4755)'",
        ),
        "python3",
    ),
    needing(says("mknod", SYSTEM, "a device, as root", "mknod device c 1 3"), "root"),
    needing(says("mount", SYSTEM, "a mount, as root", "unshare -m true"), "root"),
    needing(
        says("sysctl", SYSTEM, "settings of the kernel, as root", "exec 3>> /proc/sys/kernel/core_pattern"),
        "root",
    ),
    maybe(needing(
        says("sysrq", SYSTEM, "commands to the kernel, as root", "test -w /proc/sysrq-trigger"),
        "root",
    )),
    needing(
        says("cgroup", SYSTEM, "control groups, as root", "d=/sys/fs/cgroup/cuegate-t; mkdir $d && rmdir $d"),
        "root",
    ),
    maybe(needing(
        says(
            "keyring",
            SYSTEM,
            "the user's keyring",
            "python3 -c 'import ctypes; assert ctypes.CDLL(None).syscall(250, 0, -3, 1) > 0'",
        ),
        "python3",
    )),
    maybe(says("keys", SYSTEM, "the list of keys", "test -s /proc/keys")),
    maybe(needing(
        says(
            "io-uring",
            SYSTEM,
            "`io_uring`",
            "python3 -c 'import ctypes; assert ctypes.CDLL(None).syscall(425, 4, ctypes.create_string_buffer(200)) > 0'",
        ),
        "python3",
    )),
    maybe(needing(
        says(
            "vsock",
            SYSTEM,
            "the host of a virtual machine",
            "python3 -c 'import socket; socket.socket(40, 1)'",
        ),
        "python3",
    )),
    maybe(needing(
        says(
            "bpf",
            SYSTEM,
            "`bpf`",
            "python3 -c 'import ctypes; l = ctypes.CDLL(None, use_errno=True); l.syscall(321, 99, 0, 0); assert ctypes.get_errno() == 22'",
        ),
        "python3",
    )),
    maybe(needing(
        says(
            "x32",
            SYSTEM,
            "a call by its number for x32",
            "python3 -c 'import ctypes; assert ctypes.CDLL(None).syscall(0x40000000 | 39) > 0'",
        ),
        "python3",
    )),
    maybe(says("terminal", SYSTEM, "the user's terminal", "echo x > /dev/tty")),
];

const HOSTS: &str = "the network, with `\"mode\": \"none\"`";
const NETWORK: [Attack; 13] = [
    says("tcp", HOSTS, "a port of this machine", "exec 3<>/dev/tcp/127.0.0.1/$CUEGATE_T_PORT"),
    says("tcp-name", HOSTS, "a port by `localhost`", "exec 3<>/dev/tcp/localhost/$CUEGATE_T_PORT"),
    needing(
        says(
            "unix-socket",
            HOSTS,
            "a socket of another program",
            "cd $CUEGATE_T_OTHER && python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"socket\")'",
        ),
        "python3",
    ),
    needing(
        says(
            "unix-socket-shared",
            HOSTS,
            "a socket in the shared `/tmp`",
            "cd $CUEGATE_T_SHARED && python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"socket\")'",
        ),
        "python3",
    ),
    maybe(says("egress-of-another", HOSTS, "the proxy of another run", "ls -d /tmp/cuegate-egress-*")),
    maybe(says(
        "docker",
        HOSTS,
        "the socket of a service in `/run`",
        "ls /run | grep -v '^cuegate$\\|^mount$'",
    )),
    with_control(says("proxy-connect", HOSTS, "`CONNECT` by the proxy", PROXY_CONNECT), DIRECT),
    with_control(says("proxy-get", HOSTS, "a request by the proxy", PROXY_GET), DIRECT),
    with_control(says("proxy-decimal", HOSTS, "an address as one number", PROXY_DECIMAL), DIRECT),
    with_control(says("proxy-mapped", HOSTS, "an IPv4 address in IPv6", PROXY_MAPPED), DIRECT),
    with_control(
        says("proxy-host-header", HOSTS, "two different hosts in one request", PROXY_SMUGGLED),
        DIRECT,
    ),
    with_control(says("proxy-dot", HOSTS, "a name with a final dot", PROXY_DOT), DIRECT),
    maybe(says("interfaces", HOSTS, "a network interface", "tail -n +3 /proc/net/dev | grep -v lo:")),
];

const DIRECT: &str = "exec 3<>/dev/tcp/127.0.0.1/$CUEGATE_T_PORT && printf 'GET / HTTP/1.1\\r\\n\\r\\n' >&3 && timeout 5 head -c 200 <&3 | grep reached";
const PROXY_CONNECT: &str = "p=${HTTP_PROXY##*:}; exec 3<>/dev/tcp/127.0.0.1/$p && printf \"CONNECT 127.0.0.1:$CUEGATE_T_PORT HTTP/1.1\\r\\n\\r\\nGET / HTTP/1.1\\r\\n\\r\\n\" >&3 && timeout 5 head -c 300 <&3 | grep reached";
const PROXY_GET: &str = "p=${HTTP_PROXY##*:}; exec 3<>/dev/tcp/127.0.0.1/$p && printf \"GET http://127.0.0.1:$CUEGATE_T_PORT/ HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n\\r\\n\" >&3 && timeout 5 head -c 300 <&3 | grep reached";
const PROXY_DECIMAL: &str = "p=${HTTP_PROXY##*:}; exec 3<>/dev/tcp/127.0.0.1/$p && printf \"CONNECT 2130706433:$CUEGATE_T_PORT HTTP/1.1\\r\\n\\r\\nGET / HTTP/1.1\\r\\n\\r\\n\" >&3 && timeout 5 head -c 300 <&3 | grep reached";
const PROXY_MAPPED: &str = "p=${HTTP_PROXY##*:}; exec 3<>/dev/tcp/127.0.0.1/$p && printf \"CONNECT [::ffff:127.0.0.1]:$CUEGATE_T_PORT HTTP/1.1\\r\\n\\r\\nGET / HTTP/1.1\\r\\n\\r\\n\" >&3 && timeout 5 head -c 300 <&3 | grep reached";
const PROXY_SMUGGLED: &str = "p=${HTTP_PROXY##*:}; exec 3<>/dev/tcp/127.0.0.1/$p && printf \"GET http://registry.npmjs.org/ HTTP/1.1\\r\\nHost: 127.0.0.1:$CUEGATE_T_PORT\\r\\n\\r\\n\" >&3 && timeout 5 head -c 300 <&3 | grep reached";
const PROXY_DOT: &str = "p=${HTTP_PROXY##*:}; exec 3<>/dev/tcp/127.0.0.1/$p && printf \"CONNECT localhost.:$CUEGATE_T_PORT HTTP/1.1\\r\\n\\r\\nGET / HTTP/1.1\\r\\n\\r\\n\" >&3 && timeout 5 head -c 300 <&3 | grep reached";

const LIMITS: &str = "resources";
const RESOURCES: [Attack; 5] = [
    needing(
        says("memory-size", LIMITS, "memory over the limit", "python3 -c 'bytearray(800_000_000)'"),
        "python3",
    ),
    maybe(says("core-file", LIMITS, "memory left in a core file", "test \"$(ulimit -Hc)\" != 0")),
    says(
        "file-size",
        LIMITS,
        "a file over the limit",
        "truncate -s 100M large && test $(stat -c %s large) -gt 70000000",
    ),
    says(
        "temporary-size",
        LIMITS,
        "a `/tmp` over the limit",
        "f=$(mktemp) && head -c 40000000 /dev/zero > $f; test $(stat -c %s $f) -gt 30000000; s=$?; rm -f $f; exit $s",
    ),
    maybe(says(
        "open-files",
        LIMITS,
        "a higher limit of open files",
        "ulimit -Hn 200000 && ulimit -n 100000",
    )),
];

pub const LATER: &str = "what Cuegate runs outside afterwards";
const PLANTED: [Attack; 12] = [
    left(
        says(
            "embedded-filter",
            LATER,
            "a filter of an embedded repository",
            "mkdir emb && cd emb && git init -q && git config user.name a && git config user.email a@b && echo x > f && git add f && git commit -qm x && echo '* filter=x' > .gitattributes && git config filter.x.clean \"touch $CUEGATE_T_OUT/embedded-filter; cat\" && echo y > f",
        ),
        Held::Out,
    ),
    left(
        says(
            "embedded-monitor",
            LATER,
            "a file system monitor of an embedded repository",
            "mkdir emb2 && cd emb2 && git init -q && git config core.fsmonitor \"touch $CUEGATE_T_OUT/embedded-monitor\" && echo y > f && git add f",
        ),
        Held::Out,
    ),
    left(
        says(
            "monitor",
            LATER,
            "a file system monitor",
            "git config core.fsmonitor \"touch $CUEGATE_T_OUT/monitor\"",
        ),
        Held::Out,
    ),
    left(
        says(
            "included",
            LATER,
            "settings included from the tree",
            "printf '[diff]\\n\\texternal = touch %s/included;\\n' $CUEGATE_T_OUT > included && git config include.path ../included && echo z >> a.txt",
        ),
        Held::Out,
    ),
    left(
        says(
            "filter",
            LATER,
            "a filter",
            "git config filter.y.clean \"touch $CUEGATE_T_OUT/filter; cat\"; echo 'b.txt filter=y' >> .git/info/attributes; echo b > b.txt",
        ),
        Held::Out,
    ),
    left(
        says(
            "hook-runs",
            LATER,
            "a hook that runs",
            "printf '#!/bin/sh\\ntouch %s/hook-runs\\n' $CUEGATE_T_OUT > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        ),
        Held::Out,
    ),
    left(
        says(
            "hook-index",
            LATER,
            "a hook of the index",
            "printf '#!/bin/sh\\ntouch %s/hook-index\\n' $CUEGATE_T_OUT > .git/hooks/post-index-change; chmod +x .git/hooks/post-index-change",
        ),
        Held::Out,
    ),
    left(
        says(
            "path-git",
            LATER,
            "a `git` in `node_modules/.bin`",
            "mkdir -p node_modules/.bin; printf '#!/bin/bash\\ntouch %s/path-git\\nPATH=/usr/local/bin:/usr/bin:/bin exec git \"$@\"\\n' $CUEGATE_T_OUT > node_modules/.bin/git; chmod +x node_modules/.bin/git",
        ),
        Held::Out,
    ),
    left(
        says(
            "path-sh",
            LATER,
            "a `sh` in `node_modules/.bin`",
            "printf '#!/bin/bash\\ntouch %s/path-sh\\nexec /bin/sh \"$@\"\\n' $CUEGATE_T_OUT > node_modules/.bin/sh; chmod +x node_modules/.bin/sh",
        ),
        Held::Out,
    ),
    left(
        says(
            "path-bwrap",
            LATER,
            "a `bwrap` in `node_modules/.bin`",
            "printf '#!/bin/bash\\ntouch %s/path-bwrap\\nexec /usr/bin/bwrap \"$@\"\\n' $CUEGATE_T_OUT > node_modules/.bin/bwrap; chmod +x node_modules/.bin/bwrap",
        ),
        Held::Out,
    ),
    left(
        says(
            "path-gh",
            LATER,
            "a `gh` in `node_modules/.bin`",
            "printf '#!/bin/bash\\ntouch %s/path-gh\\n' $CUEGATE_T_OUT > node_modules/.bin/gh; chmod +x node_modules/.bin/gh",
        ),
        Held::Out,
    ),
    left(
        says(
            "notify",
            LATER,
            "a command in `cuegate.toml`",
            "printf '[run]\\n' > n; printf 'notify = \"touch %s/notify\"\\n' $CUEGATE_T_OUT | cat - cuegate.toml > n && cat n > cuegate.toml",
        ),
        Held::Out,
    ),
];

/// The groups of attacks on files in the working tree, which the partial level does not protect.
pub const IN_THE_TREE: [&str; 2] =
    ["the definition and the settings", "what Cuegate runs outside afterwards"];

/// The other attacks that the partial level does not hold.
pub const BY_LANDLOCK_NOT_HELD: [&str; 3] = ["own-journal", "interfaces", "temporary-size"];

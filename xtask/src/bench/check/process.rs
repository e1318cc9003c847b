//! Measures the time and peak memory of a process.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::bench::{median, ms, steps::read_peak_mib};

/// The median time and the peak memory of a process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    pub(super) ms: f64,
    pub(super) mib: f64,
}

/// Runs a program several times, after one run to warm caches. Its exit status must be `exit`.
pub(super) fn measured(
    program: &Path,
    args: &[&str],
    dir: &Path,
    rounds: usize,
    exit: i32,
) -> Result<Taken, String> {
    let mut times = Vec::new();
    let mut mib = 0.0_f64;
    for round in 0..=rounds {
        let begun = Instant::now();
        let (status, peak) = run(program, args, dir)?;
        let took = ms(begun.elapsed());
        if status != Some(exit) {
            return Err(format!(
                "`{} {}` ended with {status:?}, not {exit}",
                program.display(),
                args.join(" ")
            ));
        }
        if round > 0 {
            times.push(took);
        }
        mib = mib.max(peak);
    }
    Ok(Taken { ms: median(times), mib })
}

/// Runs a program; returns its exit status and its peak memory in MiB.
fn run(program: &Path, args: &[&str], dir: &Path) -> Result<(Option<i32>, f64), String> {
    let failed = |error: std::io::Error| format!("failed to start `{}`: {error}", program.display());
    // `time` reports the result of `wait4`, which would need unsafe code here.
    let time = ["/usr/bin/time", "/bin/time"].into_iter().find(|path| Path::new(path).exists());
    let told = dir.join("peak.txt");
    let mut command = match time {
        Some(time) => {
            let mut command = Command::new(time);
            command.args(["-q", "-f", "%M", "-o"]).arg(&told).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.args(args).current_dir(dir).env("GIT_CEILING_DIRECTORIES", dir.parent().unwrap_or(dir));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    if time.is_some() {
        let status = child.wait().map_err(failed)?;
        let text = fs::read_to_string(&told).unwrap_or_default();
        let kib = text.lines().last().and_then(|line| line.trim().parse::<f64>().ok()).unwrap_or(0.0);
        return Ok((status.code(), kib / 1024.0));
    }
    let mut peak = 0.0_f64;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok((status.code(), peak));
        }
        peak = peak.max(read_peak_mib(child.id()));
        std::thread::sleep(Duration::from_micros(500));
    }
}

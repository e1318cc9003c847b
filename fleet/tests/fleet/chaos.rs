//! Everything dies while runs go on, and nothing is lost.

use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

use crate::site::{CALLS, Site, until};

/// Numbers that look random and are the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

/// What is wrong with a host for a while.
enum Wrong {
    /// These processes of it stand still.
    Stopped(Vec<i32>),
    /// It is cut off from the network.
    Cut,
    /// Its worker ends when its calls have ended.
    Draining,
}

#[test]
fn everything_dies_and_nothing_is_lost() {
    let number = |name: &str, usual: usize| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let (kills, seed) = (number("CUEGATE_FLEET_KILLS", 40), number("CUEGATE_FLEET_SEED", 1));
    let count = 20.max(kills / 2);
    println!("seed {seed}, {kills} kills, {count} runs");
    let mut random = Random(seed as u64);
    let mut site = Site::start(8);
    site.set_call_ms(2000);
    for _ in 0..4 {
        site.add_worker(&["--slots", "2", "--drain", "20"]);
    }
    let runs: Vec<String> = (0..count).map(|_| site.submit(&["--silence", "3"])).collect();
    let cancelled = runs[count - 1].clone();
    until("work goes on", 60, || site.calls().len() > 6);
    let mut done: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut hosts, mut zombies, mut kill) = (0, 0, 0);
    // What is wrong with a host now, until when.
    let mut wrong: [Option<(Wrong, Instant)>; 4] = Default::default();
    while kill < kills || wrong.iter().any(Option::is_some) {
        thread::sleep(Duration::from_millis(100 + random.below(400) as u64));
        for (index, wrong) in wrong.iter_mut().enumerate() {
            // A worker that was just starting has not heard it.
            if matches!(wrong, Some((Wrong::Draining, until)) if Instant::now() > *until)
                && let Some(pid) = site.worker_process(index)
            {
                site.signal("-TERM", &[pid]);
            }
            let is_over = match wrong {
                Some((Wrong::Draining, _)) => site.has_ended(index),
                Some((_, until)) => Instant::now() > *until,
                None => false,
            };
            match wrong.take_if(|_| is_over) {
                Some((Wrong::Stopped(pids), _)) => site.signal("-CONT", &pids),
                Some((Wrong::Cut, _)) => site.set_link(index, true),
                Some((Wrong::Draining, _)) => site.start_worker(index),
                None => {}
            }
        }
        let index = random.below(4);
        if kill >= kills || wrong[index].is_some() {
            continue;
        }
        let left = site.runs().iter().filter(|run| run["is_ended"] != true).count();
        assert!(left > 4, "the work was over after {kill} kills");
        let until = Instant::now() + Duration::from_millis(1_500 + random.below(10_000) as u64);
        let kind = match random.below(if site.has_hosts { 7 } else { 6 }) {
            0 => {
                // Its runs go on without it where it is not the first of all processes.
                if let Some(pid) = site.worker_process(index) {
                    site.signal("-KILL", &[pid]);
                }
                hosts += 1;
                site.kill_host(index);
                site.start_worker(index);
                "worker"
            }
            1 => {
                hosts += 1;
                site.kill_host(index);
                site.start_worker(index);
                "host"
            }
            2 => {
                site.kill_temporal();
                thread::sleep(Duration::from_millis(random.below(2_000) as u64));
                site.start_temporal();
                "temporal"
            }
            3 => {
                site.postgres.kill();
                thread::sleep(Duration::from_millis(random.below(2_000) as u64));
                site.postgres.restart().unwrap();
                "postgres"
            }
            4 => {
                zombies += 1;
                let pids = site.processes_of(index);
                site.signal("-STOP", &pids);
                wrong[index] = Some((Wrong::Stopped(pids), until));
                "stop"
            }
            5 => {
                if let Some(pid) = site.worker_process(index) {
                    site.signal("-TERM", &[pid]);
                }
                wrong[index] = Some((Wrong::Draining, until));
                "drain"
            }
            _ => {
                zombies += 1;
                site.set_link(index, false);
                wrong[index] = Some((Wrong::Cut, until));
                "network"
            }
        };
        *done.entry(kind).or_default() += 1;
        kill += 1;
        if kill == kills / 2 {
            let ran = site.fleet(&["cancel", &cancelled]);
            println!("cancel: {}", String::from_utf8_lossy(&ran.stderr));
        }
    }
    println!("killed: {done:?}");
    site.set_call_ms(100);
    // A run in which five workers died before a record waits for somebody to look at it.
    let mut looked_at = 0;
    let mut is_over = |site: &Site| {
        let states = site.runs();
        for run in states.iter().filter(|run| run["state"] == "paused") {
            looked_at += 1;
            assert!(site.fleet(&["pause", run["run"].as_str().unwrap(), "--off"]).status.success());
        }
        states.len() == count && states.iter().all(|run| run["is_ended"] == true)
    };
    // However long the queue is: as long as runs end, the fleet works.
    let (mut ended, mut since) = (0, Instant::now());
    while !is_over(&site) {
        let left: Vec<_> = site.runs().into_iter().filter(|run| run["is_ended"] != true).collect();
        if count - left.len() > ended {
            (ended, since) = (count - left.len(), Instant::now());
        }
        assert!(since.elapsed() < Duration::from_secs(120), "runs that do not end: {left:#?}");
        thread::sleep(Duration::from_millis(500));
    }
    println!("{looked_at} times a run was paused because its workers died");
    let calls = site.calls();
    let count_of = |word: &str| calls.iter().filter(|call| call[0] == word).count();
    println!("calls: {} begun, {} ended", count_of("begin"), count_of("end"));
    for run in site.runs() {
        let id = run["run"].as_str().unwrap();
        let is_cancelled = id == cancelled && run["state"] == "cancelled";
        assert!(is_cancelled || run["state"] == "completed", "{run}");
    }
    // Each call is in the journal once, whatever was begun.
    let answered = "select count(*) from cuegate.records where convert_from(body, 'UTF8') like '%\"event\":\"answered\"%'";
    for run in runs.iter().filter(|run| **run != cancelled) {
        let found = site.sql(&format!("{answered} and run = '{run}'"));
        assert_eq!(found, CALLS.to_string(), "run {run}");
    }
    let gaps = site.sql("select count(*) from (select run, max(seq) + 1 as top, count(*) as all from cuegate.records group by run) r where top <> r.all");
    assert_eq!(gaps, "0");
    // A call that ended was made again only if its host died or was away in the moment before its record.
    let mut ends: BTreeMap<(String, String), usize> = BTreeMap::new();
    for call in calls.iter().filter(|call| call[0] == "end") {
        *ends.entry((call[1].clone(), call[2].clone())).or_default() += 1;
    }
    let again: usize = ends.values().map(|times| times - 1).sum();
    println!("ended calls that were made again: {again}; {hosts} hosts died, {zombies} were away");
    assert!(again <= 2 * (hosts + zombies), "{again} calls were made again");
    assert!(count_of("begin") > count_of("end"), "no call was cut, so this proves nothing");
    let some = &runs[0];
    let index = (0..4).find(|index| site.cuegate(*index, &["replay", some]).status.success());
    assert!(index.is_some(), "the replay of {some} differs");
}

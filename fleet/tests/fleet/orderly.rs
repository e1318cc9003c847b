//! What happens while nothing dies.

use crate::site::{CALLS, Site, until};

/// One after the other on one site: servers take a while to start.
#[test]
fn a_fleet_is_submitted_to_asked_paused_and_drained() {
    let mut site = Site::start(45);
    site.set_call_ms(100);
    site.add_worker(&["--slots", "1"]);
    let ran = site.fleet(&["doctor"]);
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(said.contains("fairness   on") && said.contains("namespace default"), "{said}");

    // The same key is the same run.
    let run = site.submit(&["--key", "one", "--silence", "2"]);
    let again = site.submit(&["--key", "one"]);
    assert!(again.starts_with(&run) && again.contains("was submitted before"), "{again}");
    until("it has completed", 90, || site.state(&run) == "completed");
    let ends = site.calls().iter().filter(|call| call[0] == "end").count();
    assert_eq!(ends, CALLS);
    let shown = site.history(&run);
    for secret in ["SECRET", "postgres://", "Blue"] {
        assert!(!shown.contains(secret), "Temporal knows {secret}");
    }
    assert!(shown.matches("eventId").count() < 50 && shown.len() < 60_000, "{} bytes", shown.len());

    // A drain cuts no call, and another worker goes on with equal files.
    site.set_call_ms(1000);
    site.add_worker(&["--slots", "1"]);
    site.drain_worker(0);
    let run = site.submit(&["--silence", "2"]);
    let of_run = |site: &Site, word: &str, run: &str| {
        site.calls().iter().filter(|call| call[0] == word && call[1] == run).count()
    };
    until("the second call begins", 60, || of_run(&site, "begin", &run) == 2);
    site.start_worker(0);
    site.drain_worker(1);
    assert_eq!(of_run(&site, "begin", &run), of_run(&site, "end", &run), "the drain cut a call");
    site.set_call_ms(100);
    until("another worker goes on", 60, || of_run(&site, "begin", &run) > 3);
    until("it has completed", 120, || site.state(&run) == "completed");
    assert_eq!(of_run(&site, "begin", &run), CALLS, "no call was made twice");
    let machines: std::collections::BTreeSet<String> =
        site.calls().iter().filter(|call| call[1] == run).map(|call| call[3].clone()).collect();
    assert_eq!(machines.len(), 2);
    let replayed = site.cuegate(0, &["replay", &run]);
    assert!(replayed.status.success(), "{}", String::from_utf8_lossy(&replayed.stderr));
    let diff = site.cuegate(0, &["diff", &run]);
    let diff = String::from_utf8_lossy(&diff.stdout).into_owned();
    assert_eq!(diff.matches("\n+s").count(), CALLS, "{diff}");

    // A person, a cancellation and a pause.
    std::fs::write(site.folder.path().join("calls.ask"), "").unwrap();
    let (asks, cancelled) = (site.submit(&["--silence", "2"]), site.submit(&["--silence", "2"]));
    until("both ask", 120, || [&asks, &cancelled].iter().all(|run| site.state(run) == "person"));
    assert!(site.fleet(&["pause", &asks]).status.success());
    assert!(site.fleet(&["answer", &asks, "Blue"]).status.success());
    assert!(site.fleet(&["cancel", &cancelled]).status.success());
    until("one is paused, the other one has ended", 60, || {
        site.state(&asks) == "paused" && site.state(&cancelled) == "cancelled"
    });
    assert!(site.fleet(&["pause", &asks, "--off"]).status.success());
    until("it goes on with the answer", 120, || site.state(&asks) == "completed");

    site.start_worker(1);
    // Budgets: of three runs that may cost 5 each, one fits into 7 at a time.
    assert!(site.fleet(&["budget", "batch:night", "7"]).status.success());
    std::fs::remove_file(site.folder.path().join("calls.ask")).unwrap();
    let runs: Vec<String> =
        (0..2).map(|_| site.submit(&["--batch", "night", "--max-usd", "5", "--silence", "2"])).collect();
    until("one waits for the budget", 60, || runs.iter().any(|run| site.state(run) == "budget"));
    until("one has ended", 120, || runs.iter().any(|run| site.state(run) == "completed"));
    assert!(runs.iter().any(|run| site.state(run) != "completed"));
}

use super::*;

fn started(change: impl FnOnce(&mut BatchStarted)) -> Batch {
    let mut started = BatchStarted {
        program: "0".to_owned(),
        agent: "fix".to_owned(),
        here: String::new(),
        source: QueueSource::File { path: "/tasks".to_owned() },
        blocked_by: vec!["Blocked".to_owned()],
        max: None,
        parallel: 1,
        once: false,
        watch_s: None,
        budget: Amounts::default(),
        each: Amounts::default(),
        args: Vec::new(),
    };
    change(&mut started);
    Batch::fold(&[BatchEvent::BatchStarted(Box::new(started))])
}

fn task(number: u64, labels: &[&str]) -> Task {
    Task {
        key: format!("#{number}"),
        name: format!("#{number}"),
        issue: Some(number),
        labels: labels.iter().map(|&label| label.to_owned()).collect(),
        ..Task::default()
    }
}

fn queue(tasks: Vec<Task>) -> QueueRead {
    QueueRead { tasks, ..QueueRead::default() }
}

fn shown(batch: &Batch, read: &QueueRead) -> Vec<String> {
    let word = |choice: Choice| match choice {
        Choice::Take => "take".to_owned(),
        Choice::Skip(reason) => reason.to_string(),
    };
    batch.choose(read).into_iter().map(|(task, choice)| format!("{} {}", task.key, word(choice))).collect()
}

fn stop(task: &str, stop: StopKind, usd_micro: u64) -> BatchEvent {
    let spent = SpentBudget { usd_micro, ..SpentBudget::default() };
    BatchEvent::RunStopped { task: task.to_owned(), stopped: RunStopped { stop, state: "".into(), spent } }
}

fn begin(task: &str) -> BatchEvent {
    BatchEvent::RunStarted { task: task.to_owned(), run: format!("run-{task}") }
}

#[test]
fn each_task_that_is_not_taken_has_a_reason() {
    let mut batch = started(|started| started.max = Some(2));
    let mut read = queue((1..=7).map(|number| task(number, &[])).collect());
    read.tasks[1].labels.push("blocked".to_owned());
    read.claims.push(("#3".to_owned(), "claimed by another machine".to_owned()));
    read.before.push(EarlierRun {
        task: "#4".into(),
        run: "abc".into(),
        state: "completed".into(),
        is_stuck: false,
    });
    assert_eq!(
        shown(&batch, &read),
        [
            "#1 take",
            "#2 has the label `blocked`",
            "#3 claimed by another machine",
            "#4 run abc worked on it: completed",
            "#5 take",
            "#6 `--max 2` is reached",
            "#7 `--max 2` is reached"
        ]
    );
    batch.apply(&BatchEvent::QueueRead(read.clone()));
    batch.apply(&BatchEvent::ClaimRequested { task: "#1".into(), commit: "c1".into() });
    let lost = ClaimOutcome::Lost { by: "host-b".into() };
    batch.apply(&BatchEvent::ClaimDecided { task: "#1".into(), claim: lost });
    assert_eq!(batch.next().map(|task| task.key.as_str()), Some("#5"));
    // A lost race leaves room for another task.
    assert_eq!(shown(&batch, &read)[4..], ["#5 take", "#6 take", "#7 `--max 2` is reached"]);
}

#[test]
fn runs_are_taken_as_far_as_the_budget_surely_holds() {
    let mut batch = started(|started| {
        started.budget.usd_micro = Some(10_000_000);
        started.each = Amounts { usd_micro: Some(4_000_000), asks: Some(9), tokens: None };
    });
    let read = queue((1..=4).map(|number| task(number, &[])).collect());
    let over = "the budget has room for only 2 runs";
    assert_eq!(shown(&batch, &read), ["#1 take", "#2 take", &format!("#3 {over}"), &format!("#4 {over}")]);
    batch.apply(&BatchEvent::QueueRead(read.clone()));
    batch.apply(&begin("#1"));
    assert_eq!(batch.used().usd_micro, 4_000_000);
    assert_eq!(batch.next(), None, "one works at a time");
    batch.apply(&stop("#1", StopKind::Completed, 1_000_000));
    batch.apply(&begin("#2"));
    batch.apply(&stop("#2", StopKind::Suspended, 500_000));
    // What is suspended may still use its whole share: 10 - 1 - 4 leaves room for one.
    assert_eq!(batch.used().usd_micro, 5_000_000);
    let over = "the budget has room for only one run";
    assert_eq!(shown(&batch, &read)[2..], ["#3 take".to_owned(), format!("#4 {over}")]);
}

#[test]
fn a_run_that_uses_more_than_its_share_leaves_no_room() {
    let mut batch = started(|started| {
        started.budget.usd_micro = Some(16_000_000);
        started.each.usd_micro = Some(5_000_000);
    });
    batch.apply(&BatchEvent::QueueRead(queue((1..=3).map(|number| task(number, &[])).collect())));
    assert_eq!(batch.next.len(), 3);
    for number in ["#1", "#2"] {
        batch.apply(&begin(number));
        batch.apply(&stop(number, StopKind::Failed, 8_000_000));
    }
    assert!(batch.is_spent() && batch.next().is_none());
}

#[test]
fn what_is_not_bounded_does_not_fit() {
    let batch = started(|started| started.budget.tokens = Some(1_000_000));
    let read = queue(vec![task(1, &[])]);
    assert_eq!(shown(&batch, &read), ["#1 the budget has no room for a further run"]);
}

#[test]
fn runs_that_fail_in_a_row_end_the_batch() {
    let mut batch = started(|_| {});
    let read = BatchEvent::QueueRead(queue((1..=6).map(|number| task(number, &[])).collect()));
    batch.apply(&read);
    for (number, how) in
        [(1, StopKind::Failed), (2, StopKind::Completed), (3, StopKind::Failed), (4, StopKind::NotStarted)]
    {
        assert!(batch.next().is_some());
        batch.apply(&begin(&format!("#{number}")));
        batch.apply(&stop(&format!("#{number}"), how, 0));
    }
    batch.apply(&begin("#5"));
    batch.apply(&stop("#5", StopKind::Failed, 0));
    assert!(batch.is_failing() && batch.next().is_none());
    batch.apply(&BatchEvent::BatchResumed { program: "0".into() });
    batch.apply(&read);
    // What did not start may be tried again.
    let next: Vec<&str> = batch.next.iter().map(|task| task.key.as_str()).collect();
    assert_eq!(next, ["#4", "#6"]);
}

#[test]
fn records_are_read_as_they_were_written() {
    let events = vec![
        BatchEvent::QueueRead(queue(vec![task(7, &["agent"])])),
        BatchEvent::ClaimDecided { task: "#7".into(), claim: ClaimOutcome::Won },
        stop("#7", StopKind::Waiting, 5),
        BatchEvent::BatchStopped { end: BatchEnd::Broken("no network".into()) },
    ];
    let record = BatchRecord { v: BatchRecord::VERSION, events };
    let bytes = serde_json::to_vec(&record).unwrap();
    assert_eq!(BatchRecord::parse(&bytes).unwrap(), record);
    assert!(BatchRecord::parse(br#"{"v":99,"events":[{"event":"of the future"}]}"#).is_err());
}

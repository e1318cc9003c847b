//! Connects to Temporal, and names the queues and workflows there.

use temporalio_client::{
    Client, ClientOptions, Connection, Priority, WorkflowSignalOptions, WorkflowStartOptions,
    envconfig::LoadClientConfigProfileOptions,
};

use crate::Failure;
use crate::workflow::{HeldRun, RunWorkflow};

/// The queue of runs that need nothing special, and of all workflows.
pub(crate) const QUEUE: &str = "cuegate";

/// The queue of the runs that need this of a machine.
pub(crate) fn queue_of(needs: &str) -> String {
    match needs.is_empty() {
        true => QUEUE.to_owned(),
        false => format!("{QUEUE}.{needs}"),
    }
}

/// The name of the workflow of a run.
pub(crate) fn workflow_of(run: &str) -> String {
    format!("cuegate-run-{run}")
}

/// Connects as Temporal's variables and `temporal.toml` say.
///
/// # Errors
/// When they are wrong, or the server cannot be reached.
pub(crate) async fn connect() -> Result<Client, Failure> {
    let (mut connection, options) =
        ClientOptions::load_from_config(LoadClientConfigProfileOptions::default())
            .map_err(|error| Failure::new(format!("the settings of Temporal cannot be used: {error}")))?;
    let address = connection.target.to_string();
    connection.identity = format!("{}@{}", std::process::id(), cuegate_journal::Owner::current().host);
    let connected = Connection::connect(connection).await.map_err(|error| {
        Failure::new(format!("Temporal cannot be reached at {address}: {}", shorten_error(&error)))
            .hint("start `temporal server start-dev`, or set `TEMPORAL_ADDRESS`")
    })?;
    Client::new(connected, options).map_err(|error| Failure::new(format!("Temporal: {error}")))
}

/// What went wrong, in a few words: the errors of the client name all their layers.
pub(crate) fn shorten_error(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    if text.contains("Connect") || text.contains("transport") {
        return "no connection".to_owned();
    }
    match text.split_once("message: \"").and_then(|(_, rest)| rest.split_once('"')) {
        Some((message, _)) => message.to_owned(),
        None => text,
    }
}

/// Starts the workflow of a run. Nothing happens if it is there already.
///
/// # Errors
/// When the server refuses or cannot be reached.
pub(crate) async fn start_run(client: &Client, held: HeldRun, priority: Option<i32>) -> Result<(), Failure> {
    let name = workflow_of(&held.run);
    let mut about = Priority::default();
    about.priority_key = priority.and_then(|priority| u32::try_from(priority).ok());
    about.fairness_key = Some(held.fairness.clone());
    let options = WorkflowStartOptions::new(QUEUE, name)
        .id_conflict_policy(temporalio_client::WorkflowIdConflictPolicy::UseExisting)
        .priority(about)
        .build();
    let started = client.start_workflow(RunWorkflow::run, held, options).await;
    started
        .map(|_| ())
        .map_err(|error| Failure::new(format!("Temporal did not start the run: {}", shorten_error(&error))))
}

/// Ends the workflow of a run that has ended before it began: no machine may ever come for it.
pub(crate) async fn forget_run(client: &Client, run: &str) {
    let handle = client.get_workflow_handle::<RunWorkflow>(workflow_of(run));
    // A workflow that ends by itself is as good.
    let _ = handle.terminate(temporalio_client::WorkflowTerminateOptions::default()).await;
}

/// Tells the workflow of a run that what it waits for may be there.
///
/// # Errors
/// When the server refuses or cannot be reached.
pub(crate) async fn wake_run(client: &Client, run: &str) -> Result<(), Failure> {
    let handle = client.get_workflow_handle::<RunWorkflow>(workflow_of(run));
    let told = handle.signal(RunWorkflow::wake, (), WorkflowSignalOptions::default()).await;
    told.map_err(|error| Failure::new(format!("Temporal did not wake the run: {}", shorten_error(&error))))
}

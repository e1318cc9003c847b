//! `worker`: takes runs from the queues of this machine.

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use clap::Args;
use cuegate_journal::Owner;
use cuegate_postgres::fleet::FleetWorker;
use temporalio_client::Client;
use temporalio_sdk::{
    Runtime, Worker, WorkerOptions,
    runtime::worker_tuner::{FixedSizeSlotSupplier, TunerHolder},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{Semaphore, watch},
};

use crate::Failure;
use crate::checkout::Checkouts;
use crate::hold::{Machine, cancel_run};
use crate::program::read_version;
use crate::server::{QUEUE, connect, queue_of, start_run, wake_run};
use crate::settings::{Settings, on_thread};
use crate::submit::hold_of;
use crate::workflow::{FeedWorkflow, RunWorkflow};

#[derive(Args)]
pub(crate) struct WorkerArgs {
    /// The name of this worker, which no other one has [default: that of the machine]
    #[arg(long)]
    name: Option<String>,
    /// How many runs it drives at the same time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    slots: u16,
    /// What this machine has: it also takes the runs that were submitted with `--needs NAME`
    #[arg(long = "has", value_name = "NAME")]
    capabilities: Vec<String>,
    /// The folder of its clones and logs
    #[arg(long, value_name = "FOLDER", default_value = "cuegate-fleet")]
    home: PathBuf,
    /// After SIGTERM, how long calls in progress may go on
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    drain: u64,
}

/// How often a worker tells of itself and looks for runs that can be woken.
const BEAT: Duration = Duration::from_secs(2);
/// How long the connection to Temporal waits for the result of a run after the drain.
const GRACE: Duration = Duration::from_secs(3600 * 24);
/// After how long another worker gets the next workflow task of a run whose worker died.
const STICKY: Duration = Duration::from_secs(1);

/// Takes runs until SIGTERM or SIGINT, and lets calls in progress end then.
///
/// # Errors
/// When Temporal or the journal cannot be reached at the start.
pub(crate) async fn work(settings: Settings, args: WorkerArgs) -> Result<ExitCode, Failure> {
    let host = Owner::current().host;
    let name = args.name.unwrap_or_else(|| host.clone());
    let program = read_version(&settings).await?;
    let opened = settings.clone();
    let (journal, store) = on_thread(move || opened.open()).await?;
    std::fs::create_dir_all(&args.home)
        .map_err(|error| Failure::new(format!("failed to create `{}`: {error}", args.home.display())))?;
    let home = std::fs::canonicalize(&args.home)
        .map_err(|error| Failure::new(format!("failed to read `{}`: {error}", args.home.display())))?;
    let (drain, drains) = watch::channel(false);
    let machine = Machine {
        name: name.clone(),
        settings: Arc::new(settings),
        checkouts: Arc::new(Checkouts::new(home.join("repositories"))),
        home,
        journal,
        store: store.clone(),
        slots: Arc::new(Semaphore::new(usize::from(args.slots))),
        drain: drains.clone(),
        drain_max: Duration::from_secs(args.drain),
    };
    let client = connect().await?;
    let runtime = Runtime::from_current_tokio(Default::default())
        .map_err(|error| Failure::new(format!("Temporal's runtime did not start: {error}")))?;
    let mut workers = Vec::new();
    let queues: Vec<String> = std::iter::once(QUEUE.to_owned())
        .chain(args.capabilities.iter().map(|name| queue_of(name)))
        .collect();
    for queue in &queues {
        workers.push(create_worker(&runtime, &client, queue, &machine, args.slots)?);
    }
    let stops: Vec<_> = workers.iter().map(Worker::shutdown_handle).collect();
    say!("worker {name}: takes runs of {}", queues.join(", "));
    let about = FleetWorker {
        name: name.clone(),
        host,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        program,
        slots: i32::from(args.slots),
        capabilities: args.capabilities.join(" "),
        ..FleetWorker::default()
    };
    let beats = tokio::spawn(tell_and_wake(machine.clone(), client.clone(), about, drains));
    let stopping = async {
        let kinds = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
        let [Ok(mut terminate), Ok(mut interrupt)] = kinds else { return };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        say!("worker {name}: takes no further runs; calls in progress end");
        let _ = drain.send(true);
        stops.iter().for_each(|stop| stop());
    };
    let running = futures::future::join_all(workers.iter_mut().map(Worker::run));
    let (_, ended) = tokio::join!(stopping, running);
    beats.abort();
    for end in ended {
        end.map_err(|error| Failure::new(format!("the worker ended: {error}")))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn create_worker(
    runtime: &Runtime,
    client: &Client,
    queue: &str,
    machine: &Machine,
    slots: u16,
) -> Result<Worker, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("the worker did not start: {error}"));
    let tuner = TunerHolder::builder()
        .workflow_task_slot_supplier(FixedSizeSlotSupplier::new(20))
        .activity_task_slot_supplier(FixedSizeSlotSupplier::new(usize::from(slots)))
        .local_activity_task_slot_supplier(FixedSizeSlotSupplier::new(1))
        .nexus_task_slot_supplier(FixedSizeSlotSupplier::new(1))
        .build();
    let options = WorkerOptions::new(queue)
        .register_workflow::<RunWorkflow>()
        .map_err(|error| failed(&error))?
        .register_workflow::<FeedWorkflow>()
        .map_err(|error| failed(&error))?
        .register_activities(machine.clone())
        .tuner(tuner)
        .graceful_shutdown_period(GRACE)
        .sticky_queue_schedule_to_start_timeout(STICKY)
        .build();
    Worker::new(runtime, client.clone(), options).map_err(|error| failed(&error))
}

/// Tells the fleet of this worker, starts workflows that a submission could not, and wakes runs whose answer is there.
async fn tell_and_wake(machine: Machine, client: Client, about: FleetWorker, drains: watch::Receiver<bool>) {
    loop {
        let beat = FleetWorker { is_draining: *drains.borrow(), ..about.clone() };
        let store = machine.store.clone();
        let due = on_thread(move || {
            store.beat(beat)?;
            Ok((store.list_unstarted()?, store.list_wakeable()?, store.list_unwanted()?))
        });
        match due.await {
            Ok((unstarted, wakeable, unwanted)) => {
                for run in unstarted {
                    if start_run(&client, hold_of(&run.task), run.task.priority).await.is_ok() {
                        let (store, id) = (machine.store.clone(), run.task.run);
                        let _ = on_thread(move || Ok(store.note_started(&id)?)).await;
                    }
                }
                for run in unwanted {
                    let _ = cancel_run(&machine.settings, &machine.store, &machine.home, &run).await;
                }
                for run in wakeable {
                    let _ = wake_run(&client, &run).await;
                }
            }
            Err(Failure { message, .. }) => eprintln!("worker {}: {message}", about.name),
        }
        tokio::time::sleep(BEAT).await;
    }
}

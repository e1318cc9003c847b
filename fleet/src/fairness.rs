//! Whether the server lets the runs of repositories take turns: if it is not told to, it silently does not.

use std::time::Duration;

use temporalio_client::{Client, NamespacedClient, Priority, WorkflowGetResultOptions, WorkflowStartOptions};
use temporalio_macros::{workflow, workflow_methods};
use temporalio_sdk::{
    Runtime, Worker, WorkerOptions, WorkflowContext, WorkflowResult,
    runtime::worker_tuner::{FixedSizeSlotSupplier, TunerHolder},
};

use crate::Failure;

/// A workflow that says when it ran.
#[workflow]
#[derive(Default)]
pub(crate) struct Turn;

#[workflow_methods]
impl Turn {
    #[run]
    pub(crate) async fn run(ctx: &mut WorkflowContext<Self>, _input: ()) -> WorkflowResult<u64> {
        let now = ctx.workflow_time().and_then(|now| now.duration_since(std::time::UNIX_EPOCH).ok());
        Ok(now.map_or(0, |now| u64::try_from(now.as_micros()).unwrap_or(u64::MAX)))
    }
}

/// How many turns the first one asks for before the second one comes.
const FIRST: usize = 12;
const SECOND: usize = 3;

/// The namespace, if it is there.
///
/// # Errors
/// When it is not, or the server does not answer.
pub(crate) async fn find_namespace(client: &Client) -> Result<String, Failure> {
    let name = client.namespace();
    let request = temporalio_common::protos::temporal::api::workflowservice::v1::DescribeNamespaceRequest {
        namespace: name.clone(),
        ..Default::default()
    };
    let described = client.connection().workflow_service().describe_namespace(tonic_request(request)).await;
    match described {
        Ok(_) => Ok(format!("namespace {name}")),
        Err(status) => Err(Failure::new(format!("namespace `{name}`: {}", status.message()))
            .hint("create it, or set `TEMPORAL_NAMESPACE`")),
    }
}

fn tonic_request<T>(message: T) -> tonic::Request<T> {
    tonic::Request::new(message)
}

/// Tries it: twelve turns of one and then three of another are asked for, and then taken one by one.
///
/// # Errors
/// When they were taken in the order in which they were asked for, or the server does not answer.
pub(crate) async fn check_fairness(client: &Client) -> Result<String, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("it could not be tried: {error}"));
    let queue = format!("cuegate-fairness-{}", cuegate_journal::random_token());
    let mut turns = Vec::new();
    for (count, key) in [(FIRST, "first"), (SECOND, "second")] {
        for number in 0..count {
            let mut priority = Priority::default();
            priority.fairness_key = Some(key.to_owned());
            let options = WorkflowStartOptions::new(queue.clone(), format!("{queue}-{key}-{number}"))
                .execution_timeout(Duration::from_secs(60))
                .priority(priority)
                .build();
            turns.push((
                key,
                client.start_workflow(Turn::run, (), options).await.map_err(|error| failed(&error))?,
            ));
        }
    }
    let runtime = Runtime::from_current_tokio(Default::default()).map_err(|error| failed(&error))?;
    let tuner = TunerHolder::builder()
        .workflow_task_slot_supplier(FixedSizeSlotSupplier::new(1))
        .activity_task_slot_supplier(FixedSizeSlotSupplier::new(1))
        .local_activity_task_slot_supplier(FixedSizeSlotSupplier::new(1))
        .nexus_task_slot_supplier(FixedSizeSlotSupplier::new(1))
        .build();
    let options = WorkerOptions::new(queue)
        .register_workflow::<Turn>()
        .map_err(|error| failed(&error))?
        .tuner(tuner)
        .max_cached_workflows(0_usize)
        .build();
    let mut worker = Worker::new(&runtime, client.clone(), options).map_err(|error| failed(&error))?;
    let stop = worker.shutdown_handle();
    let collect = async {
        let mut order = Vec::new();
        for (key, handle) in turns {
            let at = handle.get_result(WorkflowGetResultOptions::default()).await;
            order.push((at.map_err(|error| failed(&error))?, key));
        }
        stop();
        order.sort_unstable();
        Ok::<_, Failure>(order)
    };
    let limited = tokio::time::timeout(Duration::from_secs(30), collect);
    let (order, _) = tokio::join!(limited, worker.run());
    let order = order.map_err(|_| failed(&"the server took too long"))??;
    let before_second = order.iter().take_while(|(_, key)| *key == "first").count();
    match before_second < FIRST / 2 {
        true => Ok("on: repositories take turns".to_owned()),
        false => Err(Failure::new("off: the runs of one repository wait for all earlier ones of another")
            .hint("set `matching.enableFairness: true` in the dynamic configuration of the server")),
    }
}

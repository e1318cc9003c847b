//! The workflow of a run, as Temporal replays it. It holds no rule of Cuegate: a new version of the program cannot break the
//! replay of a run that waits for weeks, and what it waits for is decided by [`hold`](crate::hold).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use temporalio_client::Priority;
use temporalio_common::RetryPolicy;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_sdk::{
    ActivityOptions, SyncWorkflowContext, WorkflowCancellationToken, WorkflowContext, WorkflowResult,
    workflows::select,
};
use temporalio_workflow::{TimerOptions, WaitConditionOptions};

use crate::hold::Machine;
use crate::server::queue_of;

/// What the history of Temporal knows of a run: nothing that only its owner may read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HeldRun {
    /// Its id.
    pub(crate) run: String,
    /// What a machine must have.
    pub(crate) needs: String,
    /// Runs with different ones take turns: the repository and the account.
    pub(crate) fairness: String,
    /// After how long without a word a machine is taken for dead, in seconds.
    pub(crate) silence_s: u64,
}

/// How a machine left a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Left {
    /// It has ended.
    Ended { state: String },
    /// It waits until then, in milliseconds since 1970, or until somebody wakes it.
    Waits { until_ms: Option<i64> },
    /// Another machine goes on at once.
    Again,
}

/// The longest time that one machine has a run.
const HOLD_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// After how many machines the history begins anew.
const ROUNDS_MAX: u32 = 200;

#[workflow]
#[derive(Default)]
pub(crate) struct RunWorkflow {
    is_woken: bool,
}

#[workflow_methods]
impl RunWorkflow {
    #[run]
    pub(crate) async fn run(ctx: &mut WorkflowContext<Self>, held: HeldRun) -> WorkflowResult<String> {
        let mut is_cancelled = false;
        for _ in 0..ROUNDS_MAX {
            ctx.state_mut(|state| state.is_woken = false);
            let mut hold = ctx.execute_activity(Machine::hold, held.run.clone(), hold_options(&held));
            let left = if is_cancelled {
                hold.await
            } else {
                let first = select! {
                    left = hold => Some(left),
                    _ = ctx.cancelled() => None,
                };
                match first {
                    Some(left) => left,
                    None => {
                        is_cancelled = true;
                        ctx.execute_activity(Machine::cancel, held.run.clone(), cancel_options()).await?;
                        hold.await
                    }
                }
            };
            match left? {
                Left::Ended { state } => return Ok(state),
                Left::Again => {}
                Left::Waits { until_ms } => {
                    let now =
                        ctx.workflow_time().and_then(|now| now.duration_since(std::time::UNIX_EPOCH).ok());
                    let now_ms = now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
                    let left_ms =
                        until_ms.map(|until| u64::try_from(until.saturating_sub(now_ms)).unwrap_or(0));
                    let timer = left_ms.map_or(HOLD_MAX, |left| Duration::from_millis(left.max(1_000)));
                    let detached = WorkflowCancellationToken::new();
                    let options =
                        WaitConditionOptions::builder().cancellation_token(detached.clone()).build();
                    let mut woken = ctx.wait_condition_with_options(|state| state.is_woken, options);
                    let mut timer =
                        ctx.timer(TimerOptions::builder(timer).cancellation_token(detached.clone()).build());
                    if is_cancelled {
                        select! { _ = woken => {}, _ = timer => {} }
                    } else {
                        is_cancelled = select! {
                            _ = woken => false,
                            _ = timer => false,
                            _ = ctx.cancelled() => true,
                        };
                        if is_cancelled {
                            ctx.execute_activity(Machine::cancel, held.run.clone(), cancel_options()).await?;
                        }
                    }
                    // The timer of a run that was woken is over.
                    detached.cancel();
                }
            }
        }
        ctx.continue_as_new(held, Default::default())?;
        unreachable!("the workflow began anew")
    }

    /// What the run waits for may be there.
    #[signal]
    pub(crate) fn wake(&mut self, _ctx: &mut SyncWorkflowContext<Self>) {
        self.is_woken = true;
    }
}

fn retry_without_end() -> RetryPolicy {
    RetryPolicy::builder()
        .initial_interval(Duration::from_secs(1))
        .backoff_coefficient(1.5)
        .maximum_interval(Duration::from_secs(30))
        .build()
}

/// Temporal may ask another machine when this one was silent; the lease of the run decides whether it gets it.
fn hold_options(held: &HeldRun) -> ActivityOptions {
    let mut priority = Priority::default();
    priority.fairness_key = Some(held.fairness.clone());
    ActivityOptions::with_start_to_close_timeout(HOLD_MAX)
        .task_queue(queue_of(&held.needs))
        .heartbeat_timeout(Duration::from_secs(held.silence_s))
        // A cancellation is a message in the inbox of the run: an activity that is cancelled is not tried again when its
        // machine dies.
        .cancellation_token(WorkflowCancellationToken::new())
        .retry_policy(retry_without_end())
        .priority(priority)
        .build()
}

fn cancel_options() -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(120))
        .cancellation_token(WorkflowCancellationToken::new())
        .retry_policy(retry_without_end())
        .build()
}

/// The workflow of a time at which runs are submitted.
#[workflow]
#[derive(Default)]
pub(crate) struct FeedWorkflow;

#[workflow_methods]
impl FeedWorkflow {
    #[run]
    pub(crate) async fn run(ctx: &mut WorkflowContext<Self>, schedule: String) -> WorkflowResult<()> {
        // Its own name says the time: tried again, the same runs are submitted.
        let occasion = ctx.workflow_id().to_owned();
        ctx.execute_activity(Machine::feed, (schedule, occasion), cancel_options()).await?;
        Ok(())
    }
}

//! Asking an agent: how the ask is put, who cuts it off, what came of it.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use cuegate_engine::{AskCommand, Completion, Put, SchemaBy, SessionBy, Usage, micro};
use cuegate_flow::model::{BlobRef, Flow};
use cuegate_provider::{self as provider, Activity, AnswerReader, Capabilities, Fault, FaultClass, Prepared};
use tokio::sync::watch;

use super::{Local, blocking, ended, former_start, is_cut, wait_until};
use crate::{
    drive::{Doing, Heard},
    error::Error,
    executor::Performed,
    process,
    process::{Finished, Former, Launch},
    prompt_text::join,
    sandbox::Who,
    translate,
    translate::Details,
};

/// Files that a program reads, in the folder of its command.
const FILES: &str = "files";
/// One of them is for us: the name of the provider that was asked.
const ASKED: &str = "asked-provider";

/// How many bytes an agent may print in one ask.
const ASK_OUTPUT_MAX: u64 = 256 << 20;

/// What came of an ask.
enum Came {
    /// An answer, or a fault; and who gave it, when that was another provider than is asked now.
    Back(Box<Result<provider::Answer, Fault>>, Option<String>),
    /// Nothing: it was cut off now, and is put again when the run goes on.
    Nothing,
    /// A former start of it had been cut off.
    CutBefore(Usage),
}

impl Came {
    fn back(answered: Result<provider::Answer, Fault>) -> Came {
        Came::Back(Box::new(answered), None)
    }
}

impl Local {
    pub(super) async fn ask(
        &self,
        flow: &Flow,
        command: AskCommand,
        mut cut: watch::Receiver<bool>,
    ) -> Result<Option<Performed>, Error> {
        if !wait_until(command.not_before_ms, &mut cut).await {
            return Ok(None);
        }
        let dir = self.setting.home.command(&self.setting.run, command.id);
        let begun = Instant::now();
        let can = self.setting.provider.capabilities();
        let (request, put) = self.request(flow, &command, &dir, can)?;
        let came = match self.setting.provider.prepare(&request) {
            Err(fault) => Came::back(Err(fault)),
            Ok(Prepared::Local(answer)) => {
                self.restore(command.tree.as_ref()).await?;
                local(answer, self.setting.ask_timeout, &mut cut).await
            }
            Ok(Prepared::Process { launch, reader }) => {
                self.process(&command, &dir, &request, launch, reader, &mut cut).await?
            }
        };
        let (answered, who) = match came {
            Came::Back(answered, who) => (*answered, who),
            Came::Nothing => return Ok(None),
            Came::CutBefore(usage) => {
                let spoilt = put.session == SessionBy::Continued;
                let completion = Completion::Cut { ask: command.id, usage, spoilt };
                return Ok(Some(Performed { completion, texts: Vec::new() }));
            }
        };
        let edited = match &answered {
            Ok(answer) => answer.edited,
            // What another provider's agent did is not told by what this one's can do.
            Err(_) => can.edits || who.is_some(),
        };
        let seen = if edited { self.seen(command.tree.as_ref()).await? } else { None };
        if let Some(seen) = &seen
            && !command.boundary.permission.may_write()
            && (seen.changed.iter().any(|path| !seen.spared.contains(path))
                || Some(&seen.tree.head) != command.tree.as_ref().map(|tree| &tree.head))
        {
            // The engine will reject it; a tree that the run owns is put back before the next ask.
            *self.suspect.lock().await = true;
        }
        Ok(Some(match answered {
            Err(fault) => {
                let fault = translate::fault(fault);
                let completion = Completion::Faulted { ask: command.id, fault, seen };
                Performed { completion, texts: Vec::new() }
            }
            Ok(answer) => {
                let provider::Request { prompt: told, system: system_told, .. } = request;
                let mut answer =
                    translate::answer(answer, who.as_deref().unwrap_or(self.setting.provider.name()));
                if who.is_some() {
                    // A conversation with somebody else is not one that can be continued, and how that one was put is
                    // not known any more.
                    (answer.session, answer.totals) = (None, None);
                } else {
                    answer.put = Some(put);
                    answer.prompt = Some(BlobRef::of(told.as_bytes()));
                    answer.system_prompt = system_told.as_ref().map(|text| BlobRef::of(text.as_bytes()));
                }
                answer.duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                let texts = std::iter::once(told).chain(system_told).map(String::into_bytes).collect();
                let completion = Completion::Answered { ask: command.id, answer: Box::new(answer), seen };
                Performed { completion, texts }
            }
        }))
    }

    /// The ask as this provider can take it: what it cannot do natively stands in the prompt.
    fn request(
        &self,
        flow: &Flow,
        command: &AskCommand,
        dir: &Path,
        can: Capabilities,
    ) -> Result<(provider::Request, Put), Error> {
        let journal = &*self.setting.journal;
        // A conversation that has to stay as it was can only be branched off from.
        let session =
            command.session.as_ref().filter(|session| can.sessions && (can.fork || !session.branch));
        let mut prompt = String::new();
        if session.is_none() {
            prompt.push_str(&join(journal, &command.without_session)?);
        }
        prompt.push_str(&join(journal, &command.prompt)?);
        let mut system = join(journal, &command.system)?;
        let response = flow.conduct.auto_response.as_deref();
        if let Some(response) = response {
            system.push_str(&told_response(response, system.is_empty()));
        }
        if !can.system_prompt && !system.is_empty() {
            prompt = format!("{system}\n\n{prompt}");
            system.clear();
        }
        let schema = command.schema.map(|schema| flow.schema(schema).value().clone());
        let held = schema.as_ref().map(|schema| self.setting.provider.holds(schema));
        if let (Some(schema), Some(false)) = (&schema, held) {
            prompt.push_str(&told_schema(schema));
        }
        let put = Put {
            schema: held.map(|held| if held { SchemaBy::Provider } else { SchemaBy::Prompt }),
            session: match (session, can.fork) {
                (Some(_), true) => SessionBy::Forked,
                (Some(_), false) => SessionBy::Continued,
                (None, _) if command.without_session.is_empty() => SessionBy::New,
                (None, _) => SessionBy::Retold,
            },
        };
        let details = Details {
            prompt,
            system: Some(system).filter(|system| !system.is_empty()),
            schema: schema.filter(|_| held == Some(true)),
            session: session.map(|session| provider::Session {
                id: session.id.clone(),
                fork: can.fork,
                totals: session.totals.map(translate::totals),
            }),
            model: self.model(command),
            work: self.setting.work.clone(),
            readable: self.readable(),
            scratch: dir.join(FILES),
            unattended: response.is_some(),
            timeout: self.setting.ask_timeout,
        };
        Ok((translate::request(&self.setting.run, command, details), put))
    }

    /// The folder of reports, where it lies outside of the working tree.
    fn readable(&self) -> Vec<PathBuf> {
        let reports = self.setting.home.reports(&self.setting.run);
        let outside = reports.is_dir() && !reports.starts_with(&self.setting.work);
        outside.then_some(reports).into_iter().collect()
    }

    /// The model, by the provider's name: one for all asks, else the definition's, which was mapped before the run began.
    fn model(&self, command: &AskCommand) -> Option<String> {
        let named = command.model.as_ref();
        let mapped =
            |name| self.setting.models.get(name).cloned().unwrap_or_else(|| ToString::to_string(name));
        self.setting
            .model
            .clone()
            .or_else(|| named.map(mapped))
            .or_else(|| self.setting.default_model.clone())
    }

    /// What reads the output of a former start: the reader of the provider that was asked then, with its name where that
    /// is another one than now. `None` when nobody can read it any more.
    fn former_reader(
        &self,
        dir: &Path,
        request: &provider::Request,
        own: Box<dyn AnswerReader>,
    ) -> Option<(Option<String>, Box<dyn AnswerReader>)> {
        let name = std::fs::read_to_string(dir.join(FILES).join(ASKED)).unwrap_or_default();
        if name.is_empty() || name == self.setting.provider.name() {
            return Some((None, own));
        }
        match (self.setting.former)(&name)?.prepare(request) {
            Ok(Prepared::Process { reader, .. }) => Some((Some(name), reader)),
            _ => None,
        }
    }

    /// Asks by a program, or takes what a former run of it left complete.
    async fn process(
        &self,
        command: &AskCommand,
        dir: &Path,
        request: &provider::Request,
        launch: provider::Launch,
        mut reader: Box<dyn AnswerReader>,
        cut: &mut watch::Receiver<bool>,
    ) -> Result<Came, Error> {
        let id = command.id;
        match process::former(dir).await? {
            Former::None => {}
            Former::Whole(finished) => match self.former_reader(dir, request, reader) {
                Some((name, reader)) => return Ok(by(name, whole(reader, &finished, 0))),
                None => return Ok(Came::CutBefore(Usage::default())),
            },
            Former::Cut { stdout } => {
                self.after_cut(former_start(dir)).await?;
                let mut meter = Meter::new(request.cap);
                let reader = self.former_reader(dir, request, reader);
                if let Some((_, mut reader)) = reader {
                    for line in stdout.split(|byte| *byte == b'\n') {
                        reader.line(line).iter().for_each(|activity| meter.saw(activity));
                    }
                }
                return Ok(Came::CutBefore(translate::usage(meter.used)));
            }
        }
        self.restore(command.tree.as_ref()).await?;
        let mut files = launch.files;
        files.push((ASKED.to_owned(), self.setting.provider.name().into()));
        lay_out(&request.scratch, &files).await?;
        let begun = SystemTime::now();
        let launch = Launch {
            args: launch.args,
            env: launch.env,
            stdin: launch.stdin,
            timeout: Some(self.setting.ask_timeout),
            output_max: ASK_OUTPUT_MAX,
            ..Launch::new(launch.program, self.setting.work.clone())
        };
        let provider = &self.setting.provider;
        let who = Who::Agent { writes: provider.writes(request), needs: provider.needs() };
        // The room is in use until this returns: then nobody is in there, and the tree can be looked at.
        let (launch, _used) = self.sandboxed(id, dir, FILES, launch, who)?;
        let mut child = process::start(&self.setting.shim, dir, &launch).await?;
        let mut meter = Meter::new(request.cap);
        let mut read = 0;
        loop {
            tokio::select! {
                line = child.line() => {
                    let Some(line) = line else { break };
                    read += 1;
                    for activity in reader.line(&line) {
                        meter.saw(&activity);
                        // A display that cannot keep up misses something; the agent does not wait for it.
                        let _ = self.setting.heard.try_send(Heard::Doing(Doing { ask: id, activity }));
                    }
                    if let Some(over) = meter.over() {
                        let finished = child.cancel().await?;
                        if !finished.cut {
                            return Ok(whole(reader, &finished, read));
                        }
                        self.after_cut(Some(begun)).await?;
                        let fault = Fault { usage: meter.used, ..Fault::new(FaultClass::OverCap, over) };
                        return Ok(Came::back(Err(fault)));
                    }
                }
                () = is_cut(cut) => {
                    // It may have finished at this very moment: then it is an answer like any other.
                    let finished = child.cancel().await?;
                    return Ok(if finished.cut { Came::Nothing } else { whole(reader, &finished, read) });
                }
            }
        }
        let finished = match child.wait().await {
            // Nobody knows how it ended: whoever killed our helper killed the agent with it.
            Err(process::Error::Lost { status, .. }) => {
                let message = format!("the agent was lost together with its helper, which {status}");
                return Ok(Came::back(Err(Fault::new(FaultClass::Crashed, message))));
            }
            finished => finished?,
        };
        if finished.timed_out || finished.capped {
            self.after_cut(Some(begun)).await?;
        }
        Ok(Came::back(reader.end(ended(&finished), &finished.stderr)))
    }
}

/// The same, told to be another provider's.
fn by(name: Option<String>, came: Came) -> Came {
    match came {
        Came::Back(answered, _) => Came::Back(answered, name),
        other => other,
    }
}

/// What came of an ask that ended by itself, of whose output so many lines were read as they came.
fn whole(mut reader: Box<dyn AnswerReader>, finished: &Finished, read: usize) -> Came {
    for line in finished.stdout.split(|byte| *byte == b'\n').skip(read) {
        reader.line(line);
    }
    Came::back(reader.end(ended(finished), &finished.stderr))
}

/// What is said to every agent whose questions are answered in advance.
fn told_response(response: &str, first: bool) -> String {
    let gap = if first { "" } else { "\n\n" };
    format!(
        "{gap}Nobody is there to answer questions. Whatever you would ask a person, the answer is:\n\n{response}\n"
    )
}

/// What is said to an agent that the provider cannot hold to a schema.
fn told_schema(schema: &serde_json::Value) -> String {
    format!(
        "\n\nEnd with your answer as one JSON object, in a block that begins with ```json and ends with ```. It has to be \
         valid by this JSON Schema:\n\n```json\n{schema}\n```\n"
    )
}

/// Writes the files that a program reads.
async fn lay_out(scratch: &Path, files: &[(String, Vec<u8>)]) -> Result<(), Error> {
    if files.is_empty() {
        return Ok(());
    }
    let (scratch, files) = (scratch.to_owned(), files.to_vec());
    blocking(move || {
        let failed = |source| Error::Io { doing: "write into", path: scratch.clone(), source };
        std::fs::create_dir_all(&scratch).map_err(failed)?;
        for (name, bytes) in files {
            std::fs::write(scratch.join(name), bytes).map_err(failed)?;
        }
        Ok(())
    })
    .await
}

/// Adds up what an ask is seen to use, and notices when that is more than it may.
struct Meter {
    cap: provider::Cap,
    used: provider::Usage,
}

impl Meter {
    fn new(cap: provider::Cap) -> Meter {
        Meter { cap, used: provider::Usage::default() }
    }

    fn saw(&mut self, activity: &Activity) {
        let Activity::Usage(more) = activity else { return };
        self.used.input_tokens = self.used.input_tokens.saturating_add(more.input_tokens);
        self.used.cached_input_tokens =
            self.used.cached_input_tokens.saturating_add(more.cached_input_tokens);
        self.used.output_tokens = self.used.output_tokens.saturating_add(more.output_tokens);
        if let Some(cost) = more.cost_usd {
            self.used.cost_usd = Some(self.used.cost_usd.unwrap_or(0.0) + cost);
        }
    }

    /// In words, when it is over.
    fn over(&self) -> Option<String> {
        let tokens = self.used.input_tokens.saturating_add(self.used.output_tokens);
        if let Some(most) = self.cap.tokens.filter(|most| tokens > *most) {
            return Some(format!("{tokens} tokens, of at most {most}"));
        }
        let (most, cost) = (self.cap.usd?, self.used.cost_usd?);
        (micro(cost)? > micro(most)?).then(|| format!("${cost:.4}, of at most ${most:.4}"))
    }
}

/// An answer that is made in this process.
async fn local(answer: provider::Local, timeout: Duration, cut: &mut watch::Receiver<bool>) -> Came {
    tokio::select! {
        answer = tokio::time::timeout(timeout, answer) => Came::back(answer.unwrap_or_else(|_| {
            Err(Fault::new(FaultClass::Timeout, format!("no answer within {} s", timeout.as_secs())))
        })),
        () = is_cut(cut) => Came::Nothing,
    }
}

//! Telemetry, sent to a stand-in for a collector.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

use crate::{
    agent::registry::{begin, says, says_with, small},
    support::{Project, Ran},
};

/// A request: its path, headers and body.
type Request = (String, BTreeMap<String, String>, Value);

/// Accepts OTLP by http/json.
struct Collector {
    address: String,
    heard: Arc<Mutex<Vec<Request>>>,
}

impl Collector {
    fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut stream = stream;
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
                    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
                    let mut headers = BTreeMap::new();
                    loop {
                        line.clear();
                        reader.read_line(&mut line).unwrap();
                        let Some((name, value)) = line.trim().split_once(": ") else { break };
                        headers.insert(name.to_lowercase(), value.to_owned());
                    }
                    let mut body = vec![0; headers["content-length"].parse().unwrap()];
                    reader.read_exact(&mut body).unwrap();
                    into.lock().unwrap().push((path, headers, serde_json::from_slice(&body).unwrap()));
                    let answer =
                        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
                    stream.write_all(answer.as_bytes()).unwrap();
                    line.clear();
                }
            }
        });
        Collector { address, heard }
    }

    fn run(&self, project: &Project, args: &[&str], more: &[(&str, &str)]) -> Ran {
        let mut command = project.command(args);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &self.address).envs(more.iter().copied());
        Ran::of(command.output().unwrap())
    }

    fn requests(&self, path: &str) -> Vec<Request> {
        self.heard.lock().unwrap().iter().filter(|(own, ..)| own == path).cloned().collect()
    }

    fn spans(&self) -> Vec<Value> {
        let all = self.requests("/v1/traces");
        let of =
            |body: &Value| body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
        all.iter().flat_map(|(_, _, body)| of(body)).collect()
    }

    fn metrics(&self) -> Vec<Value> {
        let all = self.requests("/v1/metrics");
        let (_, _, body) = all.last().unwrap();
        body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap().clone()
    }
}

fn attribute(span: &Value, key: &str) -> Value {
    let all = span["attributes"].as_array().unwrap();
    let value = all.iter().find(|attribute| attribute["key"] == key).map(|attribute| &attribute["value"]);
    let Some(value) = value else { return Value::Null };
    match value["intValue"].as_str() {
        Some(number) => json!(number.parse::<u64>().unwrap()),
        None => value.as_object().unwrap().values().next().unwrap().clone(),
    }
}

fn named<'s>(spans: &'s [Value], beginning: &str) -> Vec<&'s Value> {
    spans.iter().filter(|span| span["name"].as_str().unwrap().starts_with(beginning)).collect()
}

/// One trace; every parent is there; no span twice.
fn is_one_trace(spans: &[Value]) -> String {
    let traces: BTreeSet<&str> = spans.iter().map(|span| span["traceId"].as_str().unwrap()).collect();
    let ids: BTreeSet<&str> = spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
    assert_eq!((traces.len(), ids.len()), (1, spans.len()));
    for span in spans {
        let parent = span["parentSpanId"].as_str();
        assert!(parent.is_none_or(|parent| ids.contains(parent)), "{span}");
        let time = |key: &str| span[key].as_str().unwrap().parse::<u128>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
    }
    traces.into_iter().next().unwrap().to_owned()
}

#[test]
fn spans_and_metrics_are_those_of_the_journal() {
    let project = Project::example();
    let collector = Collector::start();
    let args = ["run", "fixer", "Fix it.", "--script", "script.yaml", "--budget-usd", "1"];
    let more = [
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b"),
        ("OTEL_RESOURCE_ATTRIBUTES", "team=core"),
        ("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ];
    let ran = collector.run(&project, &args, &more);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let spans = collector.spans();
    is_one_trace(&spans);
    let status = project.status();
    let count = |kind: &str| project.events(kind).len();
    let (asks, visits) = (named(&spans, "invoke_agent "), named(&spans, "step "));
    assert_eq!(asks.len(), count("answered") + count("faulted"));
    assert_eq!(visits.len(), count("step_entered"));
    assert_eq!(named(&spans, "validator ").len(), count("command_finished"));
    let calls: usize =
        project.events("tools_used").iter().map(|event| event["calls"].as_array().unwrap().len()).sum();
    assert_eq!(named(&spans, "execute_tool ").len(), calls);
    assert!(
        named(&spans, "execute_tool ").iter().all(|span| attribute(span, "cuegate.tool.target").is_null())
    );
    let sum = |key: &str| asks.iter().filter_map(|ask| attribute(ask, key).as_u64()).sum::<u64>();
    assert_eq!(json!(sum("gen_ai.usage.input_tokens")), status["tokens"]["input"]);
    assert_eq!(json!(sum("gen_ai.usage.output_tokens")), status["tokens"]["output"]);
    let [run] = named(&spans, "invoke_workflow fixer")[..] else { panic!("{spans:#?}") };
    assert_eq!(attribute(run, "cuegate.run.id"), status["run"]);
    assert_eq!(attribute(run, "cuegate.run.state"), "completed");
    assert_eq!(
        (attribute(run, "cuegate.cost_usd"), attribute(run, "cuegate.budget_usd")),
        (json!(0.0456), json!(1.0))
    );
    assert_eq!(run["links"][0]["traceId"], "0af7651916cd43dd8448eb211c80319c");
    let failed: Vec<&Value> = spans.iter().filter(|span| span["status"]["code"] == 2).collect();
    assert_eq!(failed.len(), 2, "the validator and the visit that ran it");
    for span in failed {
        assert_eq!(attribute(span, "error.type"), "validator_failed");
    }
    let (_, headers, body) = &collector.requests("/v1/traces")[0];
    assert_eq!(headers["x-key"], "a b");
    assert_eq!(
        body["resourceSpans"][0]["scopeSpans"][0]["schemaUrl"],
        "https://opentelemetry.io/schemas/1.41.0"
    );
    let resource = &body["resourceSpans"][0]["resource"];
    assert_eq!(
        (attribute(resource, "service.name"), attribute(resource, "team")),
        (json!("cuegate"), json!("core"))
    );
    let metrics = collector.metrics();
    let metric = |name: &str| metrics.iter().find(|metric| metric["name"] == name).unwrap();
    let total = |name: &str| -> f64 {
        let points = metric(name)["sum"]["dataPoints"].as_array().unwrap();
        points.iter().map(|point| point["asDouble"].as_f64().unwrap()).sum()
    };
    assert!((total("cuegate.cost") - 0.0456).abs() < 1e-9);
    assert_eq!((total("cuegate.repairs"), total("cuegate.runs")), (1.0, 1.0));
    let usage = metric("gen_ai.client.token.usage")["histogram"]["dataPoints"].as_array().unwrap();
    let tokens: f64 = usage.iter().map(|point| point["sum"].as_f64().unwrap()).sum();
    assert_eq!(tokens, 12_000.0);
}

/// A resumed run continues its trace, and sends no span again. Agents know their span.
#[test]
fn a_resumed_run_continues_its_trace() {
    let project = small().project(json!([
        {"step": "work", "asks_user": "Which?", "output": {"next_action": {"action": "handoff"}}},
        says_with("close", "closing", json!({"runs": ["echo $TRACEPARENT > parent.txt"]})),
    ]));
    let collector = Collector::start();
    assert_eq!(collector.run(&project, &begin(&[]), &[]).code, 3);
    let ran = collector.run(&project, &["answer", "last", "This"], &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let parent = project.read("parent.txt");
    let spans = collector.spans();
    let trace = is_one_trace(&spans);
    let asked = named(&spans, "invoke_agent close");
    assert_eq!(parent.trim(), format!("00-{trace}-{}-01", asked[0]["spanId"].as_str().unwrap()));
    assert_eq!(named(&spans, "wait person").len(), 1);
    assert_eq!(named(&spans, "invoke_workflow ").len(), 1);
}

#[test]
fn a_missing_collector_changes_nothing() {
    let project = small().project(json!([says_with("work", "handoff", json!({})), says("close", "closing")]));
    project.write(
        "cuegate.toml",
        "[otel]\nendpoint = \"http://127.0.0.1:1\"\nheaders = { key = \"$NOT_SET\" }\n",
    );
    let ran = project.run(&begin(&[]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("note: telemetry was not sent: the header `key`"), "{}", ran.stderr);
    project.write("cuegate.toml", "[otel]\nendpoint = \"http://127.0.0.1:1\"\n");
    let ran = project.run(&begin(&[]));
    assert!(
        ran.stderr.contains("note: telemetry was not sent: `http://127.0.0.1:1/v1/traces`"),
        "{}",
        ran.stderr
    );
}

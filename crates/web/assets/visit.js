// What happened in a visit: prompts, answers, tools, validators, changes, reports.

import { json, text } from "./api.js";
import { reviewPatch } from "./diff.js";
import { clock, count, dateTime, duration, h, inCode, money, show, target } from "./dom.js";

/** The run whose visit is shown, which has the texts. */
let shownRun = null;

/** A text; a long one is loaded when it is wanted. */
function long(value, pretty = false) {
  if (value === null || value === undefined) return null;
  if (typeof value === "object" && value.blob && Object.keys(value).length === 2) {
    const box = h("div", {}, h("button", {
      type: "button",
      onclick: async () => {
        try {
          show(box, body(await text(`/runs/${shownRun}/blobs/${value.blob}`), pretty));
        } catch (error) {
          show(box, h("p", { class: "problem" }, error.message));
        }
      },
    }, `Show ${count(value.bytes)} bytes`));
    return box;
  }
  return body(value, pretty);
}

function body(value, pretty) {
  let words = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  if (pretty) {
    try {
      words = JSON.stringify(JSON.parse(words), null, 2);
    } catch {
      // It is no JSON.
    }
  }
  return h("pre", { tabindex: "0" }, words);
}

function fold(title, content, open = false) {
  return content && h("details", { open }, h("summary", {}, title), content);
}

function card(kind, title, event, ...content) {
  return h("article", { class: `event ${kind}` },
    h("h4", {}, title, h("time", { datetime: event.at }, clock(event.at))), ...content);
}

const isEmpty = (value) => value === "" || value === null || value === undefined;

/** What an agent said, for people: its text, or the text in its object. */
function words(event) {
  const output = event.output;
  const said = output && typeof output === "object"
    ? ["response", "summary", "message", "reason", "blocked"].map((key) => output[key]).find((text) => typeof text === "string" && text)
    : null;
  return said ?? (isEmpty(event.text) ? null : event.text);
}

/** A tool call as a line, with its output behind it. */
function toolLine(call) {
  const sign = { ok: "✓", failed: "✗", denied: "⊘" }[call.result] ?? "–";
  const line = [
    h("span", { class: `sign ${call.result === "ok" ? "ok" : "failed"}`, role: "img", "aria-label": call.result }, sign), " ",
    h("b", {}, call.tool), " ", h("code", {}, call.target),
    call.duration_ms === undefined ? "" : h("time", {}, duration(call.duration_ms)),
  ];
  return call.output
    ? h("details", { class: "tool-line" }, h("summary", {}, line), long(call.output))
    : h("p", { class: "tool-line" }, line);
}

const CARDS = {
  answered: (event) => {
    const tokens = (event.usage?.input_tokens ?? 0) + (event.usage?.output_tokens ?? 0);
    const facts = [event.provider, event.model, duration(event.duration_ms ?? 0), `${count(tokens)} tokens`, money(event.usage?.cost_usd)];
    const said = words(event);
    const spoken = typeof said === "string" ? h("div", { class: "said" }, said) : said && long(said);
    return card("ask", `${event.step} (${event.kind})`, event,
      fold("Prompt", long(event.prompt)),
      fold("System prompt", long(event.system_prompt)),
      spoken,
      event.output && fold("Answer as data", long(event.output, true), !spoken),
      event.output && !isEmpty(event.text) && event.text !== said ? fold("Text", long(event.text)) : null,
      h("p", { class: "facts" }, facts.filter(Boolean).join(" · ")),
      event.changed_files?.length ? h("p", { class: "facts" }, "changed ", event.changed_files.join(", ")) : null);
  },
  tools_used: (event) => card("tool", `${event.step}: ${event.calls.length + (event.more ?? 0)} tool calls`, event,
    event.calls.map(toolLine), event.more ? h("p", { class: "facts" }, `and ${event.more} more`) : null),
  command_finished: (event) => card(event.passed ? "passed" : "failed",
    `${event.passed ? "✓" : "✗"} ${event.command || event.validator}: ${event.passed ? "passed" : `failed, ${event.ended}`}`, event,
    h("p", { class: "facts" }, duration(event.duration_ms ?? 0)),
    isEmpty(event.stdout) ? null : fold("Output", long(event.stdout), !event.passed),
    isEmpty(event.stderr) ? null : fold("Error output", long(event.stderr), !event.passed)),
  faulted: (event) => card("failed", `✗ ${event.step}: ${event.class}${event.agent ? ` of ${event.agent}` : ""}`, event, h("p", {}, event.message)),
  agent_out: (event) => card("wait", `${event.agent} is out: ${event.class}`, event,
    h("p", {}, event.until ? `until ${dateTime(event.until)}` : "for the rest of the run")),
  ask_cut: (event) => card("failed", `${event.step} was cut off`, event),
  answer_rejected: (event) => card("failed", `Answer of ${event.step} rejected`, event, h("p", {}, event.why)),
  boundary_violated: (event) => card("failed", `${event.step} changed files against its permission`, event,
    h("p", {}, event.paths.join(", "))),
  sandbox_denied: (event) => card("failed", `The sandbox denied ${event.to}`, event, h("p", {}, event.why)),
  // Whether commands passed is told by their own cards.
  decided: (event) => (event.outcome === "pass" || event.outcome.startsWith("fail(")) ? null : card("", `${event.step} decided: ${event.outcome}`, event, event.reason ? h("p", {}, event.reason) : null),
  member_ended: (event) => card("", `${event.step}: ${event.outcome ?? event.why ?? "no outcome"}`, event),
  monitor_fired: (event) => card("", `${event.monitor} fired after ${event.rounds} rounds`, event),
  handed_off: (event) => card("", `${event.step} hands off ${event.key}`, event, fold("Value", long(event.value, true))),
  person_asked: (event) => card("wait", "Question to a person", event, long(event.question)),
  person_answered: (event) => card("wait", "Answer of a person", event, long(event.text)),
  suspended: (event) => card("wait", `Suspended: ${event.waiting.kind}`, event, h("p", {}, event.waiting.detail)),
  resumed: (event) => card("wait", "Resumed", event),
  forked: (event) => card("wait", `Forked from run ${event.run}`, event, h("p", {}, inCode(event.moment))),
  effect_finished: (event) => card(event.state === "done" ? "passed" : "failed", `${event.action}: ${event.state}`, event,
    h("p", {}, event.said), event.url ? h("p", {}, h("code", {}, event.url)) : null),
  ended: (event) => card(event.state === "completed" ? "passed" : "failed", `Run ${event.state}`, event, h("p", {}, inCode(event.reason))),
};

/** Events that other cards show already. */
const QUIET = new Set([
  "ask_requested", "reserved", "step_entered", "command_requested", "summarised", "responded", "time_passed", "counter_set",
  "visit_ended", "step_left", "origin_set", "report_written", "condition_met",
]);

export async function reportBox(run, name) {
  const report = await json(`/runs/${run}/reports/${encodeURIComponent(name)}`);
  const rendered = new DOMParser().parseFromString(report.html, "text/html").body;
  const box = h("div", { class: "markdown" });
  box.append(...rendered.childNodes);
  if (report.cut) {
    const whole = h("button", { type: "button", onclick: () => whole.replaceWith(h("pre", {}, report.markdown)) }, "Show all of it as text");
    box.append(h("p", { class: "soft" }, "This is the beginning of a long report. "), whole);
  }
  return box;
}

/** The events of a visit: its first record may end the visit before, and its last one begin the next. */
function ownEvents(events, span) {
  const begin = events.findIndex((event) => event.event === "step_entered" && event.step === span.name);
  const isEnd = (event) => event.seq === span.to_seq && ["visit_ended", "step_left"].includes(event.event);
  const end = events.findLastIndex((event) => isEnd(event) && event.step === span.name);
  const last = events.at(-1)?.event === "ended" ? -1 : end;
  return events.slice(Math.max(0, begin), last < 0 ? events.length : last + 1);
}

/** Shows a visit in a box. `span` has the records of the visit, `tools` go on from it. */
export async function showVisit(box, run, span, tools = null) {
  shownRun = run;
  const range = `from_seq=${span.from_seq}${span.to_seq === undefined ? "" : `&to_seq=${span.to_seq}`}`;
  const events = ownEvents((await json(`/runs/${run}/events?${range}`)).events, span);
  const changes = h("div", { class: "changes" }, h("button", {
    type: "button",
    onclick: async () => {
      try {
        const words = await text(`/runs/${run}/diff?${range}`);
        show(changes, h("h4", {}, "Changes"), reviewPatch(words));
      } catch (error) {
        show(changes, h("p", { class: "soft" }, error.message));
      }
    },
  }, "Show the changes"));
  const written = events.filter((event) => event.event === "report_written");
  const reports = written.map((event) => {
    const details = h("details", {
      ontoggle: async () => {
        if (details.open && details.children.length === 1) {
          details.append(await reportBox(run, event.name).catch((error) => h("p", {}, error.message)));
        }
      },
    }, h("summary", {}, `Report ${event.name}`));
    return details;
  });
  const cards = events.filter((event) => !QUIET.has(event.event)).map((event) => {
    const make = CARDS[event.event];
    return make ? make(event) ?? [] : h("details", { class: "event" }, h("summary", {}, event.event.replaceAll("_", " ")), body(event));
  });
  // What a reader has opened stays open when the visit goes on.
  const name = (details, all) => {
    const words = details.firstElementChild.textContent;
    return `${words} ${all.filter((other) => other.firstElementChild.textContent === words).indexOf(details)}`;
  };
  const details = () => [...box.querySelectorAll("details")];
  const isSame = box.dataset.visit === String(span.id);
  const before = isSame ? new Map(details().map((one, _, all) => [name(one, all), one])) : new Map();
  const scrolled = isSame ? box.scrollTop : 0;
  const loaded = isSame && box.querySelector(".changes:has(.review)");
  box.dataset.visit = span.id;
  show(box,
    h("h3", {}, `${span.detail || span.name} #${span.visit}`),
    h("p", { class: "facts" }, [
      dateTime(span.fromText), span.outcome && `outcome ${span.outcome}`, span.target && `then ${target(span.target)}`,
    ].filter(Boolean).join(" · ")),
    tools, reports, loaded || changes, cards.length ? cards : h("p", { class: "soft" }, "Nothing has ended in this visit yet."));
  for (const one of details()) {
    const known = before.get(name(one, details()));
    if (known && known.open !== one.open) one.open = known.open;
  }
  box.scrollTop = scrolled;
}

// The machines that take runs, and what waits for whom.

import { json } from "./api.js";
import { ago, count, h, money, show } from "./dom.js";

const EVERY_MS = 3000;
/** After how long a silent worker is taken for dead, in seconds. */
const SILENT_S = 30;

const WAITS = {
  queued: "a worker", person: "a person", until: "a reset", paused: "the end of a pause", budget: "its budget", account: "an account", stuck: "somebody to mend it",
};

function table(heads, rows, none) {
  if (rows.length === 0) return h("p", { class: "soft" }, none);
  return h("div", { class: "wide" }, h("table", {},
    h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell) => h("td", {}, cell)))))));
}

function standing(worker) {
  if (worker.silent_s > SILENT_S) return `† silent for ${count(worker.silent_s)} s`;
  return worker.draining ? "‖ takes no further runs" : "▶ at work";
}

/** What each repository spent, by day. */
function spending(spent) {
  const days = [...new Set(spent.map((one) => one.day))];
  const names = [...new Set(spent.map((one) => one.repository))].sort();
  const of = (day, name) => spent.find((one) => one.day === day && one.repository === name)?.usd;
  return table(["day", ...names], days.map((day) => [day, ...names.map((name) => money(of(day, name)))]), "Nothing was spent yet.");
}

function draw(box, fleet) {
  const busy = (name) => fleet.runs.filter((run) => run.worker === name && run.state === "running").length;
  const link = (run) => h("a", { href: `#/runs/${run.run}` }, h("code", {}, run.run));
  const left = fleet.runs.filter((run) => !run.ended);
  const waiting = left.filter((run) => run.state !== "running");
  show(box,
    fleet.pauses.map((pause) => h("p", { class: "problem" }, `${pause.scope} is paused${pause.why ? `: ${pause.why}` : ""}`)),
    h("h2", {}, "Workers"),
    table(["worker", "machine", "runs", "has", "state", "version"], fleet.workers.map((worker) => [
      worker.name, worker.host, `${busy(worker.name)} of ${worker.slots}`, worker.capabilities || "–", standing(worker), worker.program,
    ]), "No worker has been seen in the last week."),
    h("h2", {}, "At work"),
    table(["run", "repository", "workflow", "worker", "account"], left.filter((run) => run.state === "running").map((run) => [
      link(run), run.repository, run.workflow, run.worker ?? "–", run.account ?? "–",
    ]), "No run is at work."),
    h("h2", {}, "Waiting"),
    table(["run", "repository", "workflow", "waits for", "since"], waiting.map((run) => [
      link(run), run.repository, run.workflow, [WAITS[run.state] ?? run.state, run.why].filter(Boolean).join(": "), ago(new Date(run.submitted_ms).toISOString()),
    ]), "No run waits."),
    h("h2", {}, "Budgets"),
    table(["of", "used", "limit"], fleet.limits.map((limit) => [limit.scope, money(limit.used_usd), money(limit.usd)]), "There are no limits."),
    h("h2", {}, "Spent"),
    spending(fleet.spent));
}

export async function fleetPage(main) {
  const box = h("div", {});
  const problem = h("div", { role: "alert" });
  draw(box, await json("/fleet"));
  show(main, h("h1", {}, "Fleet"), problem, box);
  const timer = setInterval(async () => {
    if (document.hidden) return;
    try {
      draw(box, await json("/fleet"));
      show(problem);
    } catch (error) {
      show(problem, h("p", { class: "problem" }, error.message));
    }
  }, EVERY_MS);
  return { close: () => clearInterval(timer) };
}

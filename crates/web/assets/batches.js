// The batches, and one of them: what to review first, and what was reviewed.

import { json, post } from "./api.js";
import { ago, count, h, money, ms, say, show } from "./dom.js";

const WORDS = {
  completed: "completed", failed: "failed", waiting: "asks you", suspended: "suspended", running: "running", not_started: "not started",
  claimed: "claimed", claiming: "its claim is not settled", lost: "taken by others", next: "next", skipped: "not taken",
};
const RUNS = new Set(["completed", "failed", "waiting", "suspended", "running"]);

/** What a batch works on. */
function source(batch) {
  return batch.source.repository ? `issues of ${batch.source.repository}, label ${batch.source.label}` : `tasks of ${batch.source.file}`;
}

/** How many of its runs are completed and not reviewed. */
const toReview = (batch) => batch.tasks.filter((task) => task.state === "completed" && !task.reviewed && task.changed_files !== 0).length;

const GROUPS = ["Proved: review these first", "Completed, but not proved", "Waiting for you", "Failed", "Not ended", "Nothing changed", "Reviewed", "Not worked on"];

/** The number of the group of a task: what comes first is reviewed first. */
function group(task) {
  if (!RUNS.has(task.state)) return 7;
  if (task.reviewed) return 6;
  if (task.state === "completed" && task.changed_files === 0) return 5;
  if (task.state === "completed") return task.proved ? 0 : 1;
  return { waiting: 2, failed: 3 }[task.state] ?? 4;
}

function taskRow(task, session, redraw) {
  const facts = [
    WORDS[task.state] ?? task.state,
    RUNS.has(task.state) && task.changed_files !== undefined && (task.changed_files === 1 ? "1 file" : `${count(task.changed_files)} files`),
    task.cost_usd !== null && task.cost_usd !== undefined && money(task.cost_usd),
    task.denied > 0 && `${count(task.denied)} denied`,
    task.state === "skipped" ? task.reason : task.state === "failed" && task.why,
  ];
  const mark = session.control && RUNS.has(task.state) && h("label", { class: "check" },
    h("input", {
      type: "checkbox", checked: Boolean(task.reviewed),
      onchange: async (event) => {
        const reviewed = event.target.checked;
        await post(`/runs/${task.run}/reviewed`, { reviewed });
        say(reviewed ? `${task.task} is marked as reviewed` : `${task.task} is to review`);
        await redraw();
      },
    }), " reviewed");
  return h("li", { class: "task-row" },
    h("span", { class: "what" }, task.run ? h("a", { href: `#/runs/${task.run}` }, `${task.task} ${task.title ?? ""}`) : `${task.task} ${task.title ?? ""}`),
    h("span", { class: "soft" }, facts.filter(Boolean).join(" · ")),
    task.pull_request && h("a", { href: task.pull_request.url, rel: "noopener noreferrer", target: "_blank" }, `#${task.pull_request.number}`),
    mark);
}

async function batchPage(main, id, session) {
  const box = h("div", {});
  const words = h("input", { type: "search", placeholder: "Issue or title", "aria-label": "Search tasks", oninput: () => draw() });
  let batch = await json(`/batches/${id}`);
  const redraw = async () => {
    batch = await json(`/batches/${id}`);
    draw();
  };
  function draw() {
    const wanted = words.value.toLowerCase();
    const tasks = batch.tasks.filter((task) => `${task.task} ${task.title ?? ""}`.toLowerCase().includes(wanted));
    // What is small comes first: it is reviewed soonest.
    const size = (task) => task.changed_files ?? 0;
    const groups = GROUPS.map((name, number) => [name, tasks.filter((task) => group(task) === number).sort((a, b) => size(a) - size(b))]);
    show(box, tasks.length ? groups.filter(([, of]) => of.length).map(([name, of]) => h("section", { class: "card" },
      h("h2", {}, `${name} (${of.length})`),
      h("ul", { class: "tasks" }, of.map((task) => taskRow(task, session, redraw))))) : h("p", { class: "soft" }, "No such tasks."));
  }
  const spent = [
    batch.used.usd > 0 && `${money(batch.used.usd)}${batch.budget.usd ? ` of ${money(batch.budget.usd)}` : ""}`,
    `${count(batch.used.calls)} calls`, `${count(batch.used.tokens)} tokens`,
  ].filter(Boolean).join(", ");
  show(main, h("h1", {}, `Batch ${batch.batch}`), h("p", { class: "soft" }, `${batch.agent}, ${source(batch)}: ${batch.state}. Charged: ${spent}.`),
    batch.reason && h("p", { class: "problem" }, batch.reason),
    h("div", { class: "tools" }, words), box);
  draw();
  return {};
}

export async function batchesPage(main, parts, session) {
  if (parts[0]) return batchPage(main, parts[0], session);
  const { batches } = await json("/batches");
  const box = h("ul", { class: "tasks card" });
  const words = h("input", { type: "search", placeholder: "Issue, title or workflow", "aria-label": "Search batches", oninput: () => draw() });
  const from = h("input", { type: "date", "aria-label": "From this day on", oninput: () => draw() });
  function draw() {
    const wanted = words.value.toLowerCase();
    const since = from.value ? new Date(`${from.value}T00:00`).getTime() : 0;
    const has = (batch) => [batch.batch, batch.agent, ...batch.tasks.map((task) => `${task.task} ${task.title ?? ""}`)]
      .some((text) => text.toLowerCase().includes(wanted));
    const shown = batches.filter((batch) => has(batch) && ms(batch.began_at) >= since);
    show(box, shown.length ? shown.map((batch) => {
      const done = batch.tasks.filter((task) => task.state === "completed").length;
      const taken = batch.tasks.filter((task) => task.run).length;
      const facts = [batch.state, `${done} of ${taken} completed`, `${toReview(batch)} to review`, batch.cost_usd !== null && money(batch.cost_usd), ago(batch.began_at)];
      return h("li", { class: "task-row" },
        h("span", { class: "what" }, h("a", { href: `#/batches/${batch.batch}` }, `${batch.agent}, ${source(batch)}`)),
        h("span", { class: "soft" }, facts.filter(Boolean).join(" · ")));
    }) : h("li", { class: "soft" }, batches.length ? "No such batches." : "This project has no batches. `cuegate work` starts one."));
  }
  show(main, h("h1", {}, "Batches"), h("div", { class: "tools" }, words, from), box);
  draw();
  return {};
}

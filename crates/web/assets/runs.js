// The list of runs, with filters and search.

import { stream } from "./api.js";
import { VirtualList, ago, badge, count, h, money, say, show, state } from "./dom.js";

const STATES = ["all", "running", "waiting", "completed", "failed", "other"];

function matches(run, wanted) {
  const { key } = state(run);
  switch (wanted) {
    case "all": return true;
    case "waiting": return key === "suspended" || key === "died";
    case "failed": return key === "failed" || key === "aborted";
    case "other": return key === "exhausted" || key === "cancelled";
    default: return key === wanted;
  }
}

export async function runsPage(main, _parts, session) {
  let runs = [];
  let shown = [];
  let wanted = "all";
  let words = "";
  const chosen = new Set();
  const number = h("p", { class: "soft", role: "status" });
  const damaged = h("div", {});
  const compare = h("a", { class: "button", hidden: true, href: "#/runs" }, "Compare");
  const search = h("input", {
    type: "search", placeholder: "Search name, task or id", "aria-label": "Search runs",
    oninput: (event) => {
      words = event.target.value.toLowerCase();
      draw();
    },
  });
  const filters = h("div", { class: "filters", role: "group", "aria-label": "Filter by state" }, STATES.map((name) =>
    h("button", {
      type: "button", "aria-pressed": String(name === wanted),
      onclick: (event) => {
        wanted = name;
        for (const button of filters.children) button.setAttribute("aria-pressed", String(button === event.currentTarget));
        draw();
      },
    }, name)));
  const box = h("div", { class: "scroll runs", role: "region", "aria-label": "Runs", tabindex: "0" });
  show(main, h("h1", {}, "Runs"), h("div", { class: "tools" }, search, filters, compare), damaged, number, box);
  const list = new VirtualList(box, 64, row);
  box.addEventListener("keydown", (event) => list.keys(event));

  function choose(run, checked) {
    if (checked) chosen.add(run);
    else chosen.delete(run);
    const [a, b] = [...chosen].slice(-2);
    compare.hidden = chosen.size < 2;
    compare.textContent = chosen.size < 2 ? "" : `Compare ${a} with ${b}`;
    compare.setAttribute("href", `#/compare/${a}/${b}`);
  }

  function row(index) {
    const run = shown[index];
    if (!run) return null;
    return h("div", { class: "run-row" },
      h("input", {
        type: "checkbox", checked: chosen.has(run.run), "aria-label": `Choose ${run.run} to compare`,
        onchange: (event) => choose(run.run, event.target.checked),
      }),
      h("a", { href: `#/runs/${run.run}` },
        h("span", { class: "what" }, h("b", {}, run.flow), " ", h("code", {}, run.run)),
        badge(run),
        h("span", { class: "task" }, run.task ?? ""),
        h("span", { class: "numbers" }, `${count(run.steps)} steps · ${money(run.cost_usd)} · ${ago(run.started_at)}`)));
  }

  function draw() {
    const has = (run) => [run.flow, run.run, run.task ?? "", run.branch ?? ""].some((text) => text.toLowerCase().includes(words));
    shown = runs.filter((run) => matches(run, wanted) && has(run));
    const waits = runs.filter((run) => matches(run, "waiting")).length;
    number.textContent = runs.length === 0
      ? "This project has no runs yet. `cuegate run` starts one."
      : `${count(shown.length)} of ${count(runs.length)} runs${waits ? `, ${waits} waiting` : ""}`;
    list.resize(shown.length);
    list.draw(true);
  }

  const states = new Map();
  const close = stream("/stream", {
    runs: (object) => {
      if (object.error) {
        show(damaged, h("p", { class: "problem", role: "alert" }, object.error));
        return;
      }
      for (const run of object.runs) {
        const now = state(run).text;
        if (states.size && states.get(run.run) !== now) say(`${run.flow} ${run.run}: ${now}`);
        states.set(run.run, now);
      }
      runs = object.runs ?? [];
      show(damaged, (object.damaged ?? []).map((one) => h("p", { class: "problem" }, `${one.run} cannot be read: ${one.why}`)));
      draw();
    },
  });
  return { close: () => (close(), list.close()) };
}

// The list of runs, with filters and search.

import { stream } from "./api.js";
import { VirtualList, ago, badge, count, h, money, ms, s, say, show, state } from "./dom.js";

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

const DAYS = 14;
const DAY = 86_400_000;

/** What the runs of each of the last days cost, and how many of those that ended are done. */
function spendPerDay(runs) {
  const midnight = new Date().setHours(24, 0, 0, 0);
  const days = Array.from({ length: DAYS }, () => 0);
  for (const run of runs) {
    const day = DAYS - 1 - Math.floor((midnight - 1 - ms(run.started_at)) / DAY);
    if (day >= 0 && run.cost_usd) days[day] += run.cost_usd;
  }
  const recent = runs.filter((run) => ms(run.started_at) >= midnight - DAYS * DAY);
  const ended = recent.filter((run) => ["completed", "failed", "aborted", "exhausted"].includes(run.state));
  const done = ended.filter((run) => run.state === "completed").length;
  const sum = days.reduce((all, day) => all + day, 0);
  const top = Math.max(...days, 1e-9);
  const name = (index) => new Date(midnight - (DAYS - index) * DAY).toLocaleDateString(undefined, { weekday: "short", day: "numeric" });
  const bars = days.map((usd, index) => s("rect", {
    x: String(index * 12), width: "9", y: String(36 - Math.max(usd > 0 ? 2 : 0.6, (usd / top) * 34)), height: String(Math.max(usd > 0 ? 2 : 0.6, (usd / top) * 34)),
    class: usd > 0 ? "spend-day" : "spend-none",
  }, s("title", {}, `${name(index)}: ${money(usd)}`)));
  const figure = (value, label) => h("div", { class: "figure" }, h("b", {}, value), h("span", { class: "soft" }, label));
  return [
    figure(money(sum), `spent in ${DAYS} days`),
    s("svg", { viewBox: `0 0 ${DAYS * 12} 36`, class: "days", role: "img", "aria-label": `Spent per day: ${days.map((usd, index) => `${name(index)} ${money(usd)}`).join(", ")}` }, bars),
    figure(money(days.at(-1)), "today"),
    figure(ended.length ? `${Math.round((done / ended.length) * 100)} %` : "–", `done, ${count(done)} of ${count(ended.length)} that ended`),
  ];
}

const isNarrow = () => matchMedia("(max-width: 640px)").matches;

/** The pull request of a run, as `pull request #12`. */
function request(run) {
  const number = /\/pull\/(\d+)/.exec(run.pull_request ?? "")?.[1];
  return number && `pull request #${number}`;
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
  const figures = h("div", { class: "figures", hidden: true });
  show(main, h("h1", {}, "Runs"), figures, h("div", { class: "tools" }, search, filters, compare), damaged, number, box);
  const list = new VirtualList(box, isNarrow() ? 64 : 40, row);
  box.addEventListener("keydown", (event) => list.keys(event));
  // `/` searches, `j` and `k` go down and up as the arrows do.
  const keys = (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || /^(?:INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    const step = { j: 1, k: -1 }[event.key];
    if (event.key === "/") search.focus();
    else if (step) {
      const at = Number(document.activeElement?.closest?.("li")?.dataset.index ?? (step > 0 ? -1 : 1));
      list.focus(Math.min(shown.length - 1, Math.max(0, at + step)), "a");
    } else return;
    event.preventDefault();
  };
  addEventListener("keydown", keys);

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
        badge(run),
        h("span", { class: "what" }, h("b", {}, run.flow), " ", h("code", {}, run.run)),
        h("span", { class: "task" }, [run.fork_of && `fork of ${run.fork_of}`, run.task ?? (isNarrow() && run.flow), request(run)].filter(Boolean).join(" · ")),
        h("span", { class: "numbers steps" }, `${count(run.steps)} ${run.steps === 1 ? "step" : "steps"}`),
        h("span", { class: "numbers cost" }, money(run.cost_usd)),
        h("span", { class: "numbers" }, ago(run.started_at))));
  }

  // Of a window that becomes narrow, or wide again.
  const fit = () => {
    list.height = isNarrow() ? 64 : 40;
    draw();
  };
  addEventListener("resize", fit);

  function draw() {
    const has = (run) => [run.flow, run.run, run.task ?? "", run.branch ?? "", run.fork_of ?? ""].some((text) => text.toLowerCase().includes(words));
    shown = runs.filter((run) => matches(run, wanted) && has(run));
    const waits = runs.filter((run) => matches(run, "waiting")).length;
    number.textContent = runs.length === 0
      ? "This project has no runs yet. `cuegate run` starts one."
      : `${count(shown.length)} of ${count(runs.length)} runs${waits ? `, ${waits} waiting` : ""}`;
    figures.hidden = runs.length === 0;
    show(figures, spendPerDay(runs));
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
  return { close: () => (close(), removeEventListener("keydown", keys), removeEventListener("resize", fit), list.close()) };
}

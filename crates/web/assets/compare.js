// Two runs side by side: their results, and their visits, aligned by step.

import { json, text } from "./api.js";
import { reviewPatch } from "./diff.js";
import { badge, count, duration, h, money, ms, show } from "./dom.js";

const VISITS = 1000;

/** Aligns two lists by the names of their steps: the longest common subsequence. */
export function align(a, b) {
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      lengths[i][j] = a[i].name === b[j].name ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const pairs = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i].name === b[j].name) pairs.push([a[i++], b[j++]]);
    else if (j >= b.length || (i < a.length && lengths[i + 1][j] >= lengths[i][j + 1])) pairs.push([a[i++], null]);
    else pairs.push([null, b[j++]]);
  }
  return pairs;
}

async function load(id) {
  const [run, page] = await Promise.all([json(`/runs/${id}?steps=false`), json(`/runs/${id}/spans?from=0&count=${VISITS}`)]);
  const visits = page.spans.filter((span) => span.kind === "visit").map((span, index) => ({ ...span, index }));
  return { run, visits, more: page.visits - visits.length };
}

function cell(run, visit) {
  if (!visit) return h("td", { class: "none" }, "–");
  const took = visit.to ? duration(ms(visit.to) - ms(visit.from)) : "in progress";
  return h("td", {},
    h("a", { href: `#/runs/${run}/visits/${visit.index}` }, `${visit.name} #${visit.visit}`),
    h("span", { class: "facts" }, [visit.outcome, visit.target, took, visit.cost_usd !== undefined && money(visit.cost_usd)].filter(Boolean).join(" · ")));
}

export async function comparePage(main, [first, second]) {
  if (!first || !second) throw new Error("choose two runs in the list");
  const [a, b] = await Promise.all([load(first), load(second)]);
  const took = ({ run }) => (run.ended_at ? duration(ms(run.ended_at) - ms(run.started_at)) : "–");
  const asks = ({ run }) => Object.values(run.asks ?? {}).reduce((sum, number) => sum + number, 0);
  const facts = [
    ["State", (one) => badge(one.run), (one) => one.run.state],
    ["Reason", (one) => one.run.reason ?? "–"],
    ["Definition", (one) => one.run.flow],
    ["Task", (one) => (one.run.issue ? `#${one.run.issue.number} ${one.run.issue.title}` : one.run.task ?? "–")],
    ["Model", (one) => one.run.model ?? "–"],
    ["Time", took],
    ["Iterations", (one) => count(one.run.iterations)],
    ["Calls", (one) => count(asks(one))],
    ["Tokens", (one) => count(one.run.tokens.input + one.run.tokens.output)],
    ["Cost", (one) => money(one.run.cost_usd)],
    ["Changed files", (one) => one.run.changed_files.join(", ") || "–"],
  ];
  const differs = (left, right) => (left === right ? "" : "differs");
  const head = h("thead", {}, h("tr", {}, h("th", { scope: "col" }, ""), [first, second].map((id) =>
    h("th", { scope: "col" }, h("a", { href: `#/runs/${id}` }, id)))));
  const summary = facts.map(([name, make, key = make]) => h("tr", { class: differs(key(a), key(b)) },
    h("th", { scope: "row" }, name), h("td", {}, make(a)), h("td", {}, make(b))));
  const pairs = align(a.visits, b.visits);
  const isSame = (left, right) => left && right && left.outcome === right.outcome && left.target === right.target;
  const split = pairs.findIndex(([left, right]) => !isSame(left, right));
  const visits = pairs.map(([left, right], index) => h("tr", { class: isSame(left, right) ? "" : "differs" },
    h("th", { scope: "row" }, index === split ? "first difference" : String(index + 1)), cell(first, left), cell(second, right)));
  const files = h("section", { class: "changes", "aria-label": "Files" });
  show(main,
    h("h1", {}, "Compare"),
    h("div", { class: "wide", tabindex: "0" },
      h("table", { class: "compare" }, h("caption", {}, "Results"), head, h("tbody", {}, summary))),
    h("p", { role: "status" }, split < 0 ? "Both runs took the same path with the same outcomes." : `The runs differ from row ${split + 1} on.`),
    h("div", { class: "wide", tabindex: "0" },
      h("table", { class: "compare" }, h("caption", {}, "Visits"), head.cloneNode(true), h("tbody", {}, visits))),
    a.more + b.more > 0 && h("p", { class: "soft" }, `Only the first ${VISITS} visits of each run are compared.`),
    files);
  // Last, as two large trees take a while.
  const patch = await text(`/runs/${first}/compare/${second}`).catch((error) => error);
  show(files, h("h2", {}, "Files"), patch instanceof Error
    ? h("p", { class: "soft" }, patch.message)
    : patch === "" ? h("p", { class: "soft" }, "Both runs have the same files.") : reviewPatch(patch));
  return {};
}

// One run, live.

import { download, json, post, soon, stream, text } from "./api.js";
import { parsePatch, reviewPatch, sums } from "./diff.js";
import { badge, count, duration, h, inCode, money, ms, s, say, show, state } from "./dom.js";
import { FlowMap } from "./graph.js";
import { Timeline } from "./timeline.js";
import { reportBox, showVisit } from "./visit.js";

const ACTIVITIES = 6;

/** The agents beside the usual one: what they are for, and their names. */
function otherAgents(agents) {
  if (!agents) return [];
  const byChain = new Map();
  const add = (what, chain) => byChain.set(chain.join(", then "), [...(byChain.get(chain.join(", then ")) ?? []), what]);
  for (const [step, chain] of Object.entries(agents.steps)) add(step, chain);
  for (const [step, chain] of Object.entries(agents.reports)) add(`reports of ${step}`, chain);
  const rows = [...byChain].map(([chain, steps]) => [`Agent of ${steps.join(", ")}`, chain]);
  return agents.stand_ins.length ? [["If it is out", agents.stand_ins.join(", then ")], ...rows] : rows;
}

/** An activity of an agent as a line. */
function activity(one) {
  switch (one.activity) {
    case "text": return one.text.split("\n")[0];
    case "tool": return `${one.name} ${one.target}`;
    case "tool_ended": return one.failed ? `failed: ${one.output.split("\n")[0]}` : null;
    case "denied": return `denied: ${one.name} ${one.target}`;
    case "retry": return `retrying: ${one.reason}`;
    default: return null;
  }
}

/** Spent, reserved and the budget over time. */
function spendChart(points, budget) {
  const usd = points.some((point) => point.spent_usd > 0 || point.reserved_usd > 0);
  const spent = (point) => (usd ? point.spent_usd : point.tokens);
  const top = Math.max(usd && budget ? budget : 0, ...points.map((point) => spent(point) + (usd ? point.reserved_usd : 0)), 1e-9);
  const [first, last] = [ms(points[0].at), ms(points.at(-1).at)];
  const x = (point) => ((ms(point.at) - first) / Math.max(1, last - first)) * 600;
  const y = (value) => 80 - (value / top) * 76;
  const steps = (value) => points.map((point, index) =>
    `${index ? `H${x(point).toFixed(1)}` : `M${x(point).toFixed(1)} ${y(value(point)).toFixed(1)}`}V${y(value(point)).toFixed(1)}`).join("");
  const words = usd ? `spent ${money(spent(points.at(-1)))}${budget ? ` of ${money(budget)}` : ""}` : `${count(points.at(-1).tokens)} tokens`;
  return h("figure", { class: "spend" },
    s("svg", { viewBox: "0 0 600 84", preserveAspectRatio: "none", role: "img", "aria-label": `Spending over time: ${words}` },
      usd && budget ? s("line", { class: "budget", x1: "0", x2: "600", y1: String(y(budget)), y2: String(y(budget)) }) : "",
      usd ? s("path", { class: "reserved", d: steps((point) => point.spent_usd + point.reserved_usd) }) : "",
      s("path", { class: "spent", d: steps(spent) })),
    h("figcaption", {}, words, usd ? h("span", { class: "soft" }, " (— spent, ┄ with what is reserved", budget ? ", ═ budget" : "", ")") : ""));
}

export async function runPage(main, parts, session) {
  const id = parts[0];
  let run = await json(`/runs/${id}?steps=false`);
  let meta = null;
  let working = [];
  let chosen = null;
  const took = h("span", {});
  const info = h("div", { class: "info" });
  const tools = h("div", { class: "tools" });
  const head = h("div", { class: "run-head" }, info, tools);
  const question = h("section", { class: "question", "aria-label": "Question", hidden: true });
  const whyText = h("dl", { class: "why" });
  const why = h("details", { ontoggle: () => why.open && explain() }, h("summary", {}, "Why is it here?"), whyText);
  const now = h("section", { class: "now", "aria-label": "In progress" });
  const spend = h("section", { class: "card", "aria-label": "Spending", hidden: true });
  const detail = h("section", { class: "detail", "aria-label": "Visit" }, h("p", { class: "soft" }, "The run has not entered a step yet."));
  const more = h("section", { class: "card", "aria-label": "Files and findings" });
  const changes = h("section", { class: "changes", id: "changes", "aria-label": "Changes", tabindex: "-1", hidden: true });
  const changed = h("span", {});
  const timeline = new Timeline(run.run, (page) => {
    meta = page;
  });
  timeline.namesAgents = Boolean(run.agents);
  const map = new FlowMap(run.run, (step) => goTo(step));
  show(main, head, why, question, now, changes,
    h("div", { class: "columns" }, timeline.element, h("div", { class: "beside" }, map.element, detail)),
    h("div", { class: "columns" }, more, spend));

  const problem = (error) => h("p", { class: "problem", role: "alert" }, error.message, error.hint ? ` ${error.hint}` : "");
  const acting = async (button, act) => {
    button.disabled = true;
    try {
      await act();
      await refresh();
    } catch (error) {
      info.append(problem(error));
    }
    button.disabled = false;
  };

  /** What decided last, the visits that led here, limits, and where to look. */
  async function explain() {
    const { outcome, ...object } = await json(`/runs/${run.run}/why`).catch((error) => ({ outcome: [error.message] }));
    const reasons = Object.entries(object).filter(([, lines]) => Array.isArray(lines));
    const rows = [["state", outcome], ...reasons];
    whyText.replaceChildren(...rows.flatMap(([label, lines]) => [
      h("dt", {}, label.replace("_", " ")),
      ...lines.map((line) => h("dd", {}, line)),
    ]));
  }

  const command = (name) => (run.next ?? []).some((line) => line.startsWith(`cuegate ${name} `));

  let notice = null;
  const NOTICES = { apply: "The changes are in your working tree.", undo: "What the run did is taken back." };

  /** The buttons that go on with the run, the most likely first. */
  function controls(key) {
    const button = (name, path, question, main = false) => h("button", {
      type: "button", class: main ? "main" : null,
      onclick: (event) => (!question || confirm(question)) && acting(event.currentTarget, async () => {
        await post(`/runs/${run.run}/${path}`);
        notice = NOTICES[path] ?? null;
        if (notice) say(notice);
      }),
    }, name);
    const canTake = command("apply") && key !== "running";
    const canUndo = !run.place?.branch && run.changed_files?.length > 0 && key !== "running";
    const isWaiting = ["suspended", "died", "exhausted"].includes(key) && run.waiting?.kind !== "person";
    const isEnded = key !== "running" && !isWaiting && run.waiting?.kind !== "person";
    const unproved = run.unproved ? ` It is not proved: ${run.unproved}.` : "";
    const canRetry = command("retry");
    return [
      canRetry && button("Retry", "retry", null, true),
      isWaiting && button("Resume", "resume", null, true),
      canTake && button("Apply", "apply", `Merge the changes of run ${run.run} into the working tree?${unproved}`, run.proved && !canRetry && !isWaiting),
      isEnded && h("button", {
        type: "button", "aria-pressed": String(Boolean(run.reviewed)),
        onclick: (event) => acting(event.currentTarget, async () => {
          await post(`/runs/${run.run}/reviewed`, { reviewed: !run.reviewed });
          say(run.reviewed ? "the run is to review" : "the run is marked as reviewed");
        }),
      }, run.reviewed ? "Reviewed" : "Mark as reviewed"),
      key === "running" && button("Pause", "pause"),
      canUndo && button("Undo", "undo", `Take back what run ${run.run} did in the working tree?`),
      ["running", "suspended", "died"].includes(key) && button("Cancel", "cancel", `Cancel run ${run.run}? It cannot be resumed.`),
    ];
  }

  /** Ways into the worktree of the run. */
  function worktree() {
    if (!run.place?.branch || !run.place.work) return [];
    return [
      h("a", { class: "button", href: `vscode://file${encodeURI(run.place.work)}` }, "Open worktree"),
      h("button", {
        type: "button",
        onclick: async (event) => {
          const button = event.currentTarget;
          await navigator.clipboard?.writeText(run.place.work);
          button.textContent = "Copied";
          say("the path of the worktree is copied");
        },
      }, "Copy its path"),
    ];
  }

  /** How long it has worked: without the time in which it waited for somebody. */
  let readAt = Date.now();
  function worked() {
    const isDriven = run.state === "running" && run.live !== false;
    return (run.worked_ms ?? 0) + (isDriven ? Date.now() - readAt : 0);
  }

  function drawHead() {
    const total = run.tokens.input + run.tokens.output;
    const asks = Object.values(run.asks ?? {}).reduce((sum, number) => sum + number, 0);
    const budget = run.budget?.usd ? ` of ${money(run.budget.usd)}` : "";
    const facts = [
      ["Changed", changed],
      ["Spent", `${money(run.cost_usd)}${budget}`],
      ["Calls", `${count(asks)}${run.asks_max ? ` of at most ${count(run.asks_max)}` : ""}`],
      ["Tokens", count(total)],
      ["Iterations", `${count(run.iterations)} of at most ${count(run.iterations_max)}`],
      ["Time", took],
      ["Agent", [...new Set([run.provider, run.model])].filter(Boolean).join(", ")],
      ...otherAgents(run.agents),
      run.fork && ["Fork of", [
        h("a", { href: `#/runs/${run.fork.run}` }, run.fork.run), ", ", inCode(run.fork.moment), " (",
        h("a", { href: `#/compare/${run.fork.run}/${run.run}` }, "compare"), ")",
      ]],
      run.fork?.not_repeated.length > 0 && ["Not repeated", run.fork.not_repeated.join(", ")],
      ["Folder", run.place?.branch ? `${run.place.work} (${run.place.branch})` : run.place?.work],
    ];
    took.textContent = duration(worked());
    const key = state(run).key;
    const isDone = key === "completed";
    const result = run.proof && h("p", { class: isDone ? "result ok" : "result" }, inCode(run.proof));
    const reason = run.reason && run.waiting?.kind !== "person" && !(isDone && run.proof) && h("p", { class: "reason" }, inCode(run.reason));
    show(info,
      h("h1", {}, run.flow, " ", h("code", {}, run.run)), badge(run),
      (run.issue || run.task) && h("p", { class: "task" }, run.issue ? `#${run.issue.number} ${run.issue.title}` : run.task),
      reason, result,
      run.unproved && h("p", { class: "unproved" }, "Not proved: ", inCode(run.unproved)),
      run.pull_request && h("p", {}, "Review ", h("a", { href: run.pull_request.url, rel: "noopener noreferrer", target: "_blank" }, `pull request #${run.pull_request.number}`)),
      run.denied && h("p", { class: "denied" }, `Denied: ${run.denied.map((one) => one.times > 1 ? `${one.what} (${one.times} times)` : one.what).slice(0, 5).join(", ")}${run.denied.length > 5 ? ` and ${run.denied.length - 5} more` : ""}`),
      run.summary && h("div", { class: "summary" }, !isDone && h("span", { class: "soft" }, "The agent said last: "), run.summary),
      h("dl", {}, facts.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value || "–")))),
      notice && h("p", { class: "notice" }, notice),
      !session.control && run.next?.length > 0 && h("p", { class: "soft next" }, "Next: ", run.next.map((line) => h("code", {}, line))));
    // A button that is made anew while it is pressed does nothing.
    const wanted = JSON.stringify([key, run.next, run.waiting?.kind, run.changed_files?.length > 0, run.proved, run.reviewed]);
    if (wanted === tools.dataset.for) return;
    tools.dataset.for = wanted;
    show(tools, session.control ? controls(key) : [], worktree(),
      h("button", { type: "button", onclick: () => download(`/runs/${run.run}/report`, `cuegate-${run.run}.txt`) }, "Download the report"));
  }

  /** The whole difference, once no agent changes it; before, when it is wanted. */
  let patchOf = null;
  async function drawChanges(wanted = false) {
    const key = state(run).key;
    const files = run.changed_files?.length ?? 0;
    const named = run.changed_by_commands?.length ?? 0;
    if (files + named === 0) {
      changes.hidden = true;
      changed.textContent = "nothing";
      return;
    }
    changes.hidden = false;
    const now = `${key}/${files}/${named}/${run.iterations}`;
    if (now === patchOf && !wanted) return;
    patchOf = now;
    const title = h("h2", {}, "Changes");
    const link = (...words) => h("a", { href: "#changes", onclick: (event) => (event.preventDefault(), changes.scrollIntoView(), changes.focus()) }, words);
    if (key === "running" && !wanted) {
      show(changed, link(`${count(files)} ${files === 1 ? "file" : "files"}`));
      show(changes, title, h("div", { class: "tools" }, h("button", { type: "button", onclick: () => drawChanges(true) }, "Show the changes so far")));
      return;
    }
    try {
      const words = await text(`/runs/${run.run}/diff`);
      show(changed, link(...sums(parsePatch(words))));
      show(changes, title, reviewPatch(words, run.self_running_files));
    } catch (error) {
      show(changed, `${count(files)} ${files === 1 ? "file" : "files"}`);
      show(changes, title, problem(error));
    }
  }

  let asked = null;
  function drawQuestion() {
    const open = run.state === "suspended" && run.waiting?.kind === "person"
      ? (run.questions ?? []).findLast((one) => !one.answered)
      : null;
    const words = open ? open.question ?? run.reason ?? "" : null;
    if (words === asked) return;
    asked = words;
    question.hidden = words === null;
    if (words === null) return show(question);
    const input = h("textarea", { id: "answer", rows: "3", required: true });
    const form = session.control
      ? h("form", {
        onsubmit: (event) => {
          event.preventDefault();
          acting(event.submitter, async () => {
            await post(`/runs/${run.run}/answer`, { text: input.value });
            say("the answer is recorded");
          });
        },
      }, h("label", { for: "answer" }, "Your answer"), input, h("button", { type: "submit", class: "main" }, "Answer"))
      : h("p", {}, "Answer it with ", h("code", {}, `cuegate answer ${run.run}`), ".");
    say("the run asks a question");
    show(question, h("h2", {}, "The run asks"), h("pre", {}, words), form);
  }

  let drawn = "";
  function drawNow() {
    now.hidden = working.length === 0;
    // Only the time changes often; the rest stays, so that it can be selected.
    const times = [...now.querySelectorAll("time")];
    const text = JSON.stringify(working);
    if (text === drawn) {
      working.forEach((one, index) => (times[index].textContent = duration(Date.now() - ms(one.from))));
      return;
    }
    drawn = text;
    show(now, working.map((one) => {
      const lines = one.is_ask
        ? one.activities.map(activity).filter(Boolean).slice(-ACTIVITIES)
        : one.output.slice(-ACTIVITIES);
      return h("article", { class: "working" },
        h("h3", {}, `▶ ${one.name}`, one.detail ? ` (${one.detail})` : "", h("time", {}, duration(Date.now() - ms(one.from)))),
        lines.length ? h("pre", {}, lines.join("\n")) : h("p", { class: "soft" }, one.is_ask ? "no activity yet" : "no output yet"));
    }));
  }

  function drawMeta() {
    if (!meta) return;
    const members = working.filter((one) => one.is_ask).map((one) => one.name);
    const last = timeline.known(timeline.visits - 1);
    const open = last?.state === "open" ? [last.name] : [];
    map.update(meta.steps, meta.edges, run.state === "running" ? [...open, ...members] : []);
    spend.hidden = meta.spend.length < 2;
    if (!spend.hidden) show(spend, h("h2", {}, "Spending"), spendChart(meta.spend, run.budget?.usd));
  }

  async function drawMore() {
    const findings = await json(`/runs/${run.run}/findings`).catch(() => null);
    const names = [...new Set((run.reports ?? []).map((one) => one.name))];
    const reports = names.map((name) => {
      const details = h("details", {
        ontoggle: async () => {
          if (details.open && details.children.length === 1) {
            details.append(await reportBox(run.run, name).catch((error) => h("p", {}, error.message)));
          }
        },
      }, h("summary", {}, `Report ${name}`));
      return details;
    });
    const effects = (run.effects ?? []).length > 0 && h("details", {}, h("summary", {}, `Effects (${run.effects.length})`),
      h("ul", {}, run.effects.map((one) => h("li", {}, `${one.action}: ${one.state}${one.said ? `, ${one.said}` : ""}`))));
    const found = findings && h("details", {},
      h("summary", {}, `Findings of the definition: ${findings.errors} errors, ${findings.warnings} warnings`),
      h("ul", {}, findings.diagnostics.map((one) => h("li", {}, `${one.severity}: ${one.message} `,
        h("code", {}, `${one.file ?? ""}:${one.line ?? ""}`), ` [${one.code}]`))));
    const none = !reports.length && !effects && !found && h("p", { class: "soft" }, "No reports, effects or findings.");
    show(more, h("h2", {}, "Reports and findings"), reports, effects, found, none);
  }

  /** Shows the next visit of a step after the chosen one. */
  async function goTo(step) {
    const from = (chosen ?? -1) + 1;
    for (let offset = 0; offset < timeline.visits; offset += 1) {
      const index = (from + offset) % timeline.visits;
      if ((await timeline.visit(index))?.name === step) {
        location.hash = `#/runs/${run.run}/visits/${index}`;
        return;
      }
    }
  }

  /** Goes on from a visit as a new run. */
  function forkTools(visit) {
    const name = `${visit.name}#${visit.visit}`;
    const button = (label, body, question) => h("button", {
      type: "button",
      onclick: (event) => confirm(question) && acting(event.currentTarget, async () => {
        const made = await post(`/runs/${run.run}/fork`, body);
        say(`run ${made.run} is a fork of ${run.run}`);
        location.hash = `#/runs/${made.run}`;
      }),
    }, label);
    return h("div", { class: "tools" },
      visit.state !== "open" && !["@completed", "@cancelled"].includes(visit.target) && button("Fork after it", { at: name }, `Start a new run that goes on after ${name}?`),
      button("Do it again in a fork", { before: name }, `Start a new run that does ${name} again?`));
  }

  let shown = null;
  async function drawVisit() {
    const index = chosen ?? timeline.visits - 1;
    if (!(index >= 0 && index < timeline.visits)) return;
    const visit = await timeline.visit(index);
    const key = visit && `${index}/${visit.to_seq ?? meta.records}`;
    if (!visit || key === shown) return;
    shown = key;
    await showVisit(detail, run.run, visit, session.control ? forkTools(visit) : null).catch((error) => show(detail, problem(error)));
  }

  async function go([, kind, index]) {
    chosen = kind === "visits" && /^\d+$/.test(index ?? "") ? Number(index) : null;
    timeline.select(chosen);
    if (chosen !== null) {
      timeline.follow.checked = false;
      await drawVisit();
      timeline.list.focus(chosen);
    }
  }

  let before = state(run).text;
  let reported = -1;
  async function refresh() {
    run = await json(`/runs/${run.run}?steps=false`);
    readAt = Date.now();
    timeline.namesAgents = Boolean(run.agents);
    await timeline.update();
    drawHead();
    drawQuestion();
    drawMeta();
    if (why.open) await explain();
    await drawChanges();
    if ((run.reports ?? []).length + (run.effects ?? []).length !== reported) {
      reported = (run.reports ?? []).length + (run.effects ?? []).length;
      await drawMore();
    }
    await drawVisit();
    const after = state(run).text;
    if (after !== before) say(`the run is ${after}`);
    before = after;
  }

  await map.load();
  // The output of what failed is the first that somebody wants to see.
  why.open = ["failed", "aborted"].includes(run.state);
  await refresh();
  const wake = soon(() => refresh().catch((error) => info.append(problem(error))));
  const close = stream(`/runs/${run.run}/stream?from_seq=${meta.records}`, {
    log: wake,
    state: wake,
    working: (object) => {
      working = object.working;
      drawNow();
      drawMeta();
    },
  });
  const clockTimer = setInterval(() => {
    if (run.state === "running") {
      took.textContent = duration(worked());
      drawNow();
    }
  }, 1000);
  await go(parts);
  return {
    go,
    close: () => {
      close();
      clearInterval(clockTimer);
      timeline.close();
    },
  };
}

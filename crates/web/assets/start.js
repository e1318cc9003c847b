// Starts a run of a definition, if the server allows control.

import { json, post } from "./api.js";
import { h, show } from "./dom.js";

export async function startPage(main, _parts, session) {
  if (!session.control) throw new Error("this server only shows runs");
  const [{ definitions }, found] = await Promise.all([json("/definitions"), json("/agents")]);
  const problem = h("div", { role: "alert" });
  const choice = h("select", { id: "definition", required: true }, definitions.map((one) =>
    h("option", { value: one.name, disabled: one.has_errors }, `${one.name}${one.has_errors ? " (has errors)" : ""}: ${one.description}`)));
  const task = h("textarea", { id: "task", rows: "5" });
  const folder = h("input", { id: "folder", placeholder: "packages/api" });
  const agent = h("select", { id: "agent" }, [
    found.default ? null : h("option", { value: "" }, "choose one"),
    ...[...new Set([found.default, ...found.agents])].filter(Boolean).map((name) => h("option", { value: name }, name)),
  ].filter(Boolean));
  // Without one that works, the server says how to get one.
  agent.required = !found.default && found.agents.length > 0;
  const model = h("input", { id: "model", placeholder: "the agent's own" });
  const issue = h("input", { id: "issue", type: "number", min: "1", step: "1" });
  // The project's own limits; without any, one that protects who forgets to set it.
  const own = found.budget ?? {};
  const hasOwn = Object.values(own).some((limit) => limit !== null);
  const worktree = h("input", { id: "worktree", type: "checkbox", checked: Boolean(found.worktree) });
  const calls = h("input", { id: "calls", type: "number", min: "1", step: "1", value: own.calls ?? "", placeholder: "no limit" });
  const minutes = h("input", { id: "minutes", type: "number", min: "1", step: "any", value: own.minutes ?? "", placeholder: "no limit" });
  const tokens = h("input", { id: "tokens", type: "number", min: "1", step: "1", value: own.tokens ?? "", placeholder: "no limit" });
  const limits = () => Object.fromEntries(Object.entries({
    budget_usd: budget.value, budget_tokens: tokens.value, budget_calls: calls.value, budget_minutes: minutes.value, issue: issue.value,
  }).filter(([, value]) => value !== "").map(([name, value]) => [name, Number(value)]));
  const budget = h("input", { id: "budget", type: "number", min: "0.01", step: "0.01", value: own.usd ?? (hasOwn ? "" : "5"), placeholder: "no limit" });
  const args = h("textarea", { id: "args", rows: "2", placeholder: "issue = 12" });
  const button = h("button", { type: "submit", class: "main" }, "Start");
  const form = h("form", {
    class: "form",
    onsubmit: async (event) => {
      event.preventDefault();
      button.disabled = true;
      show(problem);
      try {
        const pairs = args.value.split("\n").filter((line) => line.trim()).map((line) => {
          const at = line.indexOf("=");
          if (at < 1) throw new Error(`\`${line}\` is not NAME = VALUE`);
          return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
        });
        const started = await post("/runs", {
          definition: choice.value,
          ...(task.value.trim() ? { task: task.value } : {}),
          ...(folder.value.trim() ? { folder: folder.value.trim() } : {}),
          args: Object.fromEntries(pairs),
          ...(agent.value ? { agent: agent.value } : {}),
          ...(model.value.trim() ? { model: model.value.trim() } : {}),
          worktree: worktree.checked,
          ...limits(),
        });
        location.hash = `#/runs/${started.run}`;
      } catch (error) {
        show(problem, h("div", { class: "problem" }, h("b", {}, error.message), error.hint && h("p", {}, error.hint)));
      } finally {
        button.disabled = false;
      }
    },
  },
    h("label", { for: "definition" }, "Workflow"), choice,
    h("label", { for: "task" }, "Task"), task,
    h("label", { for: "agent" }, "Agent"), agent,
    h("label", { for: "model" }, "Model"), model,
    h("label", { class: "check", for: "worktree" }, worktree, " work in a worktree of its own"),
    h("label", { for: "issue" }, "Issue (its number, if the run works on one)"), issue,
    h("label", { for: "args" }, "Parameters, one in a line"), args,
    h("label", { for: "folder" }, "Folder to work in (empty: the top of the project)"), folder,
    h("label", { for: "budget" }, "Spending limit in US dollars"), budget,
    h("label", { for: "tokens" }, "Limit of tokens"), tokens,
    h("label", { for: "calls" }, "Limit of calls"), calls,
    h("label", { for: "minutes" }, "Limit of minutes"), minutes,
    button, problem);
  show(main, h("h1", {}, "Start a run"), form);
  return {};
}

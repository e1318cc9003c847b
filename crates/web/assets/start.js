// Starts a run of a definition, if the server allows control.

import { json, post } from "./api.js";
import { h, show } from "./dom.js";

export async function startPage(main, _parts, session) {
  if (!session.control) throw new Error("this server only shows runs");
  const { definitions } = await json("/definitions");
  const problem = h("div", { role: "alert" });
  const choice = h("select", { id: "definition", required: true }, definitions.map((one) =>
    h("option", { value: one.name, disabled: one.has_errors }, `${one.name}${one.has_errors ? " (has errors)" : ""}: ${one.description}`)));
  const task = h("textarea", { id: "task", rows: "5" });
  const folder = h("input", { id: "folder", placeholder: "packages/api" });
  const budget = h("input", { id: "budget", type: "number", min: "0.01", step: "0.01", required: true, value: "5" });
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
          budget_usd: Number(budget.value),
        });
        location.hash = `#/runs/${started.run}`;
      } catch (error) {
        show(problem, h("div", { class: "problem" }, h("b", {}, error.message), error.hint && h("p", {}, error.hint)));
      } finally {
        button.disabled = false;
      }
    },
  },
    h("label", { for: "definition" }, "Definition"), choice,
    h("label", { for: "task" }, "Task"), task,
    h("label", { for: "args" }, "Parameters, one in a line"), args,
    h("label", { for: "folder" }, "Folder to work in (empty: the top of the project)"), folder,
    h("label", { for: "budget" }, "Budget in US dollars"), budget,
    button, problem);
  show(main, h("h1", {}, "Start a run"), form);
  return {};
}

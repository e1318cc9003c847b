// Calls the handler that a module exports, and answers as a handler program does: JSON in, JSON out.
import process from "node:process";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

// Only the answer may be on standard output.
console.log = console.info = console.debug = console.error;
const path = process.argv.at(-1);
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const input = JSON.parse(Buffer.concat(chunks).toString("utf8"));
// The name `.js` says nothing of modules, and older versions of node then refuse them.
const url = path.endsWith(".js")
  ? "data:text/javascript," + encodeURIComponent(readFileSync(path, "utf8"))
  : pathToFileURL(path).href;
const module = await import(url);
const exported = module.default ?? module.handler ??
  Object.values(module).find((value) => typeof value === "function" || typeof value?.isFinished === "function");
if (exported === undefined) throw new Error("the module exports no handler");
const isClass = typeof exported === "function" && /^class\b/.test(Function.prototype.toString.call(exported));
let answer = exported;
if (isClass) answer = new exported(input, input.config ?? {});
else if (typeof exported === "function") answer = await exported(input, input.config ?? {});
// A handler object, as Climpt's verdict handlers are.
if (typeof answer?.isFinished === "function") {
  await answer.setCurrentSummary?.({ structuredOutput: input.answer, ...input });
  const finished = await answer.isFinished(input);
  const reason = await answer.getVerdictDescription?.(input);
  answer = { finished, reason: typeof reason === "string" ? reason : undefined };
}
if (typeof answer === "boolean") answer = { finished: answer };
process.stdout.write(JSON.stringify(answer ?? null) + "\n");

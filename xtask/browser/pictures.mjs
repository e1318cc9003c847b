// Takes the pictures of the README: the page of a run, and the terminal of another one.

import { execFileSync, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, cuegate, project, target, chromiumPath] = process.argv.slice(2);
const { chromium } = createRequire(join(modules, "index.js"))("playwright-core");
const run = (...args) => execFileSync(cuegate, args, { cwd: project, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// A run that works while it is looked at: a piece with two reviewers.
const usage = (input, output, cost) => ({ usage: { input_tokens: input, output_tokens: output, cost_usd: cost } });
const review = (step, runs) => ({ step, runs, ...usage(9000, 700, 0.06), output: { outcome: "approved", response: "Fine.", reports: {} } });
const answers = [
  { step: "plan", ...usage(21000, 900, 0.11), output: { outcome: "The task is clear and can be done here", response: "Read.", reports: { "00-plan.md": "# Plan\n" } } },
  {
    step: "implement", ...usage(48000, 3100, 0.31), writes: [{ path: "parse.sh", content: "exit 0\n" }], runs: ["sh test.sh", "sleep 1"],
    output: { outcome: "The change is made and shown to work", response: "Done.", reports: { "01-changes.md": "# Changes\n" } },
  },
  review("correctness-review", ["git diff HEAD --stat", "grep -n '9/5' convert.sh", "sh test.sh", "sleep 60"]),
  review("test-review", ["cat test.sh", "sh test.sh", "sleep 60"]),
];
run("run", "fixer", "The test fails. Make it pass.", "--script", ".agent/fixer/script.yaml", "--budget-usd", "1");
writeFileSync(join(project, "script-pictures.json"), JSON.stringify({ answers }));
run("init", "develop", "--test", "sh test.sh");
run("run", "develop", "Accept degrees below absolute zero as an error", "--script", "script-pictures.json", "--budget-usd", "5", "--detach", "--no-baseline");

// The terminal: what tmux shows, with its colours, as HTML.
const tmux = (...args) => execFileSync("tmux", ["-L", "cuegate-pictures", ...args], { encoding: "utf8", cwd: project });
tmux("-f", "/dev/null", "new-session", "-d", "-x", "106", "-y", "20", `env LC_ALL=C.UTF-8 '${cuegate}' watch last`);
const frame = () => tmux("capture-pane", "-p", "-e");
for (let tries = 0; tries < 200 && !(frame().match(/sleep 60/g)?.length === 2); tries += 1) await wait(100);
const colours = { 30: "#1c1b1f", 31: "#f2867f", 32: "#6fce8b", 33: "#e6b35c", 34: "#9db4ff", 36: "#6cc7d6", 39: "" };
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
let style = {};
const html = frame().split(/\x1b\[([0-9;]*)m/).map((part, index) => {
  if (index % 2 === 0) {
    const css = [style.colour && `color:${style.colour}`, style.bold && "font-weight:700", style.dim && "opacity:.7", style.reversed && "background:#e6e4ea;color:#131316"];
    return part && `<span style="${css.filter(Boolean).join(";")}">${escaped(part)}</span>`;
  }
  const codes = part.replace(/38;5;([0-7])\b/g, (_, index) => String(30 + Number(index))).split(";").map(Number);
  for (const code of codes) {
    if (code === 0) style = {};
    else if (code === 1) style = { ...style, bold: true };
    else if (code === 2) style = { ...style, dim: true };
    else if (code === 22) style = { ...style, bold: false, dim: false };
    else if (code === 7) style = { ...style, reversed: true };
    else if (code === 27) style = { ...style, reversed: false };
    else if (code in colours) style = { ...style, colour: colours[code] };
  }
  return "";
}).join("");
tmux("kill-server");

const server = spawn(cuegate, ["serve"], { cwd: project });
const link = await new Promise((resolve) => server.stdout.once("data", (data) => resolve(String(data).trim())));
const browser = await chromium.launch({
  executablePath: chromiumPath,
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = await browser.newPage({ viewport: { width: 1180, height: 860 } });
await page.goto(link);
await page.locator(".run-row a").nth(1).click();
await page.locator(".timeline a.visit").nth(3).click();
await page.locator(".detail").getByText("FAIL").first().waitFor();
await page.evaluate(() => scrollTo(0, 0));
await page.screenshot({ path: join(target, "page.png") });
const terminal = await browser.newPage({ viewport: { width: 940, height: 440 } });
await terminal.setContent(`<body style="margin:0;background:#131316"><pre style="margin:14px;color:#e6e4ea;font:14px/1.17 'DejaVu Sans Mono',monospace">${html}</pre>`);
const box = await terminal.locator("pre").boundingBox();
await terminal.screenshot({ path: join(target, "watch.png"), clip: { x: 0, y: 0, width: Math.min(940, box.width + 28), height: box.height + 28 } });
await browser.close();
server.kill("SIGINT");
run("cancel", "last");

// What a person does with the page, in a real browser. Started by the test with the server's link, the project, and the
// folder with playwright-core and axe-core in the environment. Prints the name of each part that passed.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import assert from "node:assert/strict";

const { LINK, PROJECT, CUEGATE, MODULES, CHROMIUM, SHOTS } = process.env;
const require = createRequire(join(MODULES, "index.js"));
const { chromium } = require("playwright-core");
const { AxeBuilder } = require("@axe-core/playwright");
const origin = new URL(LINK).origin;
const port = new URL(LINK).port;

const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP evil.test 127.0.0.1",
  ],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
context.setDefaultTimeout(20_000);
const page = await context.newPage();
const foreign = [];
const errors = [];
page.on("request", (request) => new URL(request.url()).origin !== origin && foreign.push(request.url()));
page.on("pageerror", (error) => errors.push(error.message));
page.on("console", (message) => message.type() === "error" && errors.push(message.text()));

const passed = (name) => console.log(`passed: ${name}`);
const file = (name, text = "") => writeFileSync(join(PROJECT, name), text);
const script = (name, answers) => file(name, JSON.stringify({ answers }));
const says = (step, intent, more = {}) => ({ step, output: { next_action: { action: intent } }, ...more });
const cuegate = (...args) => {
  try {
    return execFileSync(CUEGATE, args, { cwd: PROJECT, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    return `${error.stdout}${error.stderr}`;
  }
};
const start = (name) => spawn(CUEGATE, ["run", "agent", "--script", name], { cwd: PROJECT, stdio: "ignore" });
const shot = (name, options) => SHOTS && page.screenshot({ path: join(SHOTS, `${name}.png`), ...options });

async function accessible(name) {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const serious = violations.filter((one) => ["serious", "critical"].includes(one.impact));
  const words = serious.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" | ")}`);
  assert.deepEqual(words, [], `accessibility of ${name}`);
}

// Without a link there is nothing to see.
await page.goto(origin);
await page.getByRole("heading", { name: "This browser has no session" }).waitFor();
errors.length = 0;
await page.goto(LINK);
await page.getByText("This project has no runs yet.").waitFor();
assert.equal(page.url(), `${origin}/`, "the token is not in the address");
passed("a link opens a session");

// A run from its start to its end. What its agent writes is hostile.
const evil = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';
script("script-a.json", [
  says("work", "repeat", { text: evil, writes: [{ path: "a.txt", content: evil }], runs: ["until test -e script-go; do sleep 0.02; done"] }),
  says("work", "handoff", { usage: { input_tokens: 1000, output_tokens: 200, cost_usd: 0.5 } }),
  says("close", "closing"),
]);
start("script-a.json");
await page.getByText("1 of 1 runs").waitFor();
await page.locator(".run-row a").click();
await page.getByRole("heading", { level: 1, name: /^agent/ }).waitFor();
await page.locator(".working").getByText("write a.txt").waitFor();
// A person pauses it, and lets it go on.
await page.getByRole("button", { name: "Pause" }).click();
await page.getByRole("button", { name: "Resume" }).click();
await page.locator(".run-head .badge.running").waitFor();
await page.locator(".working").getByText("write a.txt").waitFor();
await page.locator(".map .current").first().waitFor();
await shot("live");
const before = await page.evaluate(() => (window.marked = true));
file("script-go");
await page.locator(".run-head .badge.completed").waitFor();
assert.ok(before && (await page.evaluate(() => window.marked)), "the page was not loaded again");
assert.equal(await page.locator(".timeline li").count(), 3);
await page.locator(".map").getByText("×2").first().waitFor();
await page.locator(".timeline a.visit").first().click();
await page.locator(".detail").getByText("work: 2 tool calls").first().waitFor();
await page.locator(".detail").getByText(evil).first().waitFor();
await page.getByRole("button", { name: "Show the changes" }).click();
await page.locator(".detail .review .added").first().waitFor();
assert.equal(await page.evaluate(() => window.hacked), undefined);
await accessible("a run");
passed("a run is watched from its start to its end");

// The address of a visit opens it.
const address = page.url();
await page.goto(`${origin}/#/runs`);
await page.goto(address);
await page.reload();
await page.locator(".detail").getByText("work: 2 tool calls").first().waitFor();
const [download] = await Promise.all([page.waitForEvent("download"), page.getByText("Download the report").click()]);
assert.match(download.suggestedFilename(), /^cuegate-.*\.txt$/);
passed("addresses lead to visits, and the report is downloaded");

// A question is answered in place; the script of the answer is that of the run.
rmSync(join(PROJECT, "script-go"));
script("script-b.json", [
  { step: "work", asks_user: "Which colour?", ...says("work", "handoff") },
  says("close", "closing"),
]);
cuegate("run", "agent", "--script", "script-b.json");
await page.goto(`${origin}/#/runs`);
await page.getByText("1 waiting").waitFor();
await page.getByRole("button", { name: "waiting" }).click();
await page.getByText("1 of 2 runs").waitFor();
await page.locator(".run-row a").click();
await page.getByText("Which colour?").first().waitFor();
await accessible("a question");
await page.getByLabel("Your answer").fill("Blue");
await page.getByRole("button", { name: "Answer" }).click();
await page.locator(".run-head .badge.completed").waitFor();
assert.ok(await page.locator(".question").isHidden());
passed("a question is answered");

// Two runs side by side.
await page.goto(`${origin}/#/runs`);
await page.getByText("2 of 2 runs").waitFor();
for (const box of await page.locator(".run-row input").all()) await box.check();
await page.getByRole("link", { name: /^Compare/ }).click();
await page.getByText("first difference").waitFor();
await accessible("a comparison");
await shot("compare", { fullPage: true });
passed("two runs are compared");

// With the keyboard alone.
await page.goto(`${origin}/#/runs`);
await page.reload();
await page.locator(".run-row a").first().waitFor();
await page.keyboard.press("Tab");
const focused = () => page.evaluate(() => document.activeElement.textContent.trim());
assert.equal(await focused(), "Skip to the content");
await page.keyboard.press("Enter");
for (let presses = 0; presses < 12 && !(await page.evaluate(() => document.activeElement.matches(".run-row a"))); presses += 1) {
  await page.keyboard.press("Tab");
}
const first = await focused();
await page.keyboard.press("ArrowDown");
assert.notEqual(await focused(), first);
await page.keyboard.press("Enter");
await page.locator(".timeline a.visit").first().waitFor();
await page.locator(".timeline a.visit").first().focus();
await page.keyboard.press("End");
await page.keyboard.press("Enter");
await page.locator(".detail").getByText("close (work)").waitFor();
passed("the keyboard is enough");

// The changes in a worktree are reviewed and applied; what a run did in place is undone.
const changing = (name, path) => script(name, [
  says("work", "handoff", { writes: [{ path, content: `fn main() { "${evil}" }\n` }, { path: "b.txt", content: "b\n" }, { path: "new\nline.rs", content: "" }] }),
  says("close", "closing"),
]);
const newest = () => JSON.parse(cuegate("runs", "--json")).runs[0].run;
page.on("dialog", (dialog) => dialog.accept());
changing("script-c.json", "src/new.rs");
cuegate("run", "agent", "--script", "script-c.json", "--worktree");
await page.goto(`${origin}/#/runs/${newest()}`);
await page.locator(".review .files button").nth(1).click();
assert.equal(await page.locator(".review details.file").count(), 3);
await page.locator(".review .c-word").first().waitFor();
await page.getByText("3 files").first().waitFor();
await accessible("the changes");
assert.equal(await page.getByText("new\u2424line.rs").count(), 2, "in the list and above the file");
await shot("review", { fullPage: true });
assert.ok(!existsSync(join(PROJECT, "src/new.rs")));
await page.getByRole("button", { name: "Apply" }).click();
await page.locator(".notice", { hasText: "The changes are in your working tree." }).waitFor();
assert.ok(existsSync(join(PROJECT, "src/new.rs")));
changing("script-d.json", "src/other.rs");
cuegate("run", "agent", "--script", "script-d.json");
assert.ok(existsSync(join(PROJECT, "src/other.rs")));
await page.goto(`${origin}/#/runs/${newest()}`);
await page.getByRole("button", { name: "Undo" }).click();
await page.locator(".notice", { hasText: "What the run did is taken back." }).waitFor();
assert.ok(!existsSync(join(PROJECT, "src/other.rs")));
assert.equal(await page.evaluate(() => window.hacked), undefined);
passed("changes are reviewed, applied and undone");

// A run that failed is tried again.
script("script-e.json", [says("work", "handoff"), says("close", "abort"), says("close", "closing")]);
cuegate("run", "agent", "--script", "script-e.json");
await page.goto(`${origin}/#/runs/${newest()}`);
await page.getByRole("button", { name: "Retry" }).click();
await page.locator(".run-head .badge.completed").waitFor();
passed("a run is tried again");

// A visit is done again in a fork, which is compared with the run that it came from.
const origin_run = newest();
await page.locator(".timeline a.visit").last().click();
await page.getByRole("button", { name: "Do it again in a fork" }).click();
await page.getByText("Fork of", { exact: true }).waitFor();
await page.locator(".run-head .badge.completed").waitFor();
assert.notEqual(newest(), origin_run);
await accessible("a fork");
await shot("fork", { fullPage: true });
await page.getByRole("link", { name: "compare" }).click();
await page.getByText("Both runs have the same files.").waitFor();
await accessible("a fork and its origin");
await shot("fork-compare", { fullPage: true });
await page.goto(`${origin}/#/runs`);
await page.getByText(`fork of ${origin_run}`).first().waitFor();
passed("a visit is done again in a fork");

// The form starts no run of a definition with errors, and says why.
await page.getByRole("link", { name: "Start" }).click();
await page.getByRole("heading", { name: "Start a run" }).waitFor();
await accessible("the form");
await page.getByLabel(/Parameters/).fill("script = evil.json");
await page.getByRole("button", { name: "Start" }).click();
await page.getByText("the definition has no parameter `script`").waitFor();
errors.length = 0;
passed("a run is not started with other options");

// Narrow, and dark.
await page.emulateMedia({ colorScheme: "dark" });
await page.setViewportSize({ width: 390, height: 844 });
for (const [name, at] of [["phone-runs", "#/runs"], ["phone-run", new URL(address).hash]]) {
  await page.goto(`${origin}/${at}`);
  await page.locator("main .scroll li").first().waitFor();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${name} is ${wide} px too wide`);
  await accessible(name);
  await shot(name, { fullPage: true });
}
assert.deepEqual(foreign, [], "requests to others");
assert.deepEqual(errors, [], "errors on the page");
passed("a phone and the dark scheme work");

// Another site in the same browser, whose session it would like to use: on another port, which is the same site for
// cookies, and by a name that leads to this machine.
const received = [];
const site = createServer((request, response) => {
  received.push(request.headers);
  response.setHeader("Content-Type", "text/html");
  response.end("<title>evil</title>");
}).listen(0, "127.0.0.1");
await new Promise((resolve) => site.once("listening", resolve));
const evilPage = await context.newPage();
const attack = async (at) => {
  await evilPage.goto(at);
  return evilPage.evaluate(async (target) => {
    const found = [];
    const tried = async (name, work) => found.push(`${name}: ${await work().then(String, () => "refused")}`);
    const runs = `${target}/api/v1/runs`;
    await tried("read", async () => (await fetch(runs, { credentials: "include" })).text());
    await tried("opaque", async () => (await fetch(runs, { mode: "no-cors", credentials: "include" })).type);
    await tried("cancel", async () =>
      (await fetch(`${runs}/last/cancel`, { method: "POST", mode: "no-cors", credentials: "include" })).type);
    await tried("stream", () => new Promise((resolve, reject) => {
      const source = new EventSource(`${target}/api/v1/stream`, { withCredentials: true });
      source.onopen = () => resolve("open");
      source.onerror = reject;
    }));
    await tried("script", () => new Promise((resolve, reject) => {
      const element = document.createElement("script");
      Object.assign(element, { src: `${target}/app.js`, onload: () => resolve("loaded"), onerror: reject });
      document.head.append(element);
    }));
    await tried("frame", () => new Promise((resolve, reject) => {
      const element = document.createElement("iframe");
      element.src = target;
      element.onload = () => {
        try {
          const text = element.contentDocument?.body.textContent;
          if (text) resolve(`shown: ${text}`);
          else reject();
        } catch {
          reject();
        }
      };
      document.body.append(element);
    }));
    return found;
  }, origin);
};
const statuses = [];
evilPage.on("response", (response) => response.url().startsWith(origin) && statuses.push(response.status()));
for (const host of ["127.0.0.1", "evil.test"]) {
  const found = await attack(`http://${host}:${site.address().port}/`);
  const got = found.filter((line) => !line.endsWith(": refused") && !line.endsWith(": opaque"));
  assert.deepEqual(got, [], host);
}
assert.ok(statuses.length > 0 && statuses.every((status) => status === 401 || status === 403), String(statuses));
// DNS rebinding: the name of the other site leads to our port.
const rebound = await evilPage.goto(`http://evil.test:${port}/`);
assert.equal(rebound.status(), 403);
assert.equal((await evilPage.evaluate(() => fetch("/api/v1/runs").then((answer) => answer.status))), 403);
assert.equal(JSON.parse(cuegate("status", "last", "--json")).state, "completed", "nothing was cancelled");
site.close();
// The session is in no cookie, and in no address.
assert.deepEqual(await context.cookies(), []);
for (const headers of received) {
  assert.equal(headers.cookie ?? headers.authorization, undefined);
}
assert.ok(!page.url().includes("token"), page.url());
// Another tab of the same browser has it.
const tab = await context.newPage();
await tab.goto(`${origin}/#/runs`);
await tab.waitForSelector("main table, main .runs, main h1");
assert.ok(!(await tab.textContent("main")).includes("no session"));
passed("other sites reach nothing");

await browser.close();

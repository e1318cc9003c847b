#!/usr/bin/env node
// Starts the program in the package of this platform.
"use strict";

const names = Object.keys(require("../package.json").optionalDependencies);
const base = `@cuegate/${process.platform}-${process.arch}`;

/** The path of the program; undefined if no package of this platform is installed. */
function find() {
  const isMusl = !process.report?.getReport().header.glibcVersionRuntime;
  for (const name of isMusl ? [`${base}-musl`, base] : [base, `${base}-musl`]) {
    try {
      return require.resolve(`${name}/bin/cuegate`);
    } catch {
      // The next one.
    }
  }
  return undefined;
}

function end(message) {
  process.stderr.write(`error: ${message}\n`);
  process.exit(4);
}

const program = find();
if (!program) {
  end(names.includes(base)
    ? `the package ${base} is not installed\nhint: npm leaves it out with \`--omit=optional\`; install without it, or \`npm install ${base}\``
    : `there is no cuegate for ${process.platform} on ${process.arch}, only ${names.join(", ")}\nhint: use a Linux container or virtual machine`);
}
const args = process.argv.slice(2);
if (process.execve) {
  // Of Node.js 22.15 and later nothing stays.
  process.execve(program, [program, ...args], process.env);
}
const { spawn } = require("node:child_process");
let child;
// Before the start: a signal that ends this process would leave the program behind. A terminal sends the first two to both.
for (const signal of ["SIGINT", "SIGQUIT"]) process.on(signal, () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child?.kill(signal));
child = spawn(program, args, { stdio: "inherit" });
child.on("error", (error) => end(`failed to start ${program}: ${error.message}`));
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});

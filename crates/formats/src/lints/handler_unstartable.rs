use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "handler-unstartable",
    page: "\
handler-unstartable: no interpreter is known for a handler file

What it means: A handler is a program in one file: it reads JSON from standard input and writes its answer
as JSON to standard output. Cuegate starts it with the program in its first line
(`#!/usr/bin/env python3`), otherwise by its file ending: `.sh` with `sh`, `.bash` with `bash`, `.py` with
`python3`, `.js`, `.mjs` and `.cjs` with `node`. This file has neither.

Why it matters: The run could not start the handler. A TypeScript module that exports a handler for another
runner is not such a program.

Example:
    \"config\": { \"handlerPath\": \"verdict.ts\" }
    verdict.ts:
        console.log(JSON.stringify({ finished: true }));

Fix: Add a first line, for TypeScript for example `#!/usr/bin/env -S deno run`, give the file one of these
endings, or export a function: `export default (input) => ({ finished: input.answer.done })`.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::twins_of_unguarded(
    &[
        (
            r#"{ "type": "detect:graph" }"#,
            r#"{ "type": "meta:custom", "config": { "handlerPath": "verdict.ts" } }"#,
        ),
        ("", "//- .agent/fixer/verdict.ts\nconsole.log(1);\n"),
    ],
    &[("console.log", "#!/usr/bin/env -S deno run\nconsole.log")],
)];

use cuegate_flow::checks::Code;

pub(super) const CODE: Code = Code {
    name: "handler-unstartable",
    page: "\
handler-unstartable: nobody knows how a handler is started

A handler is a program in one file. It reads JSON from standard input and answers with JSON on standard
output. It is started by the program that its first line names (`#!/usr/bin/env python3`), else by its ending:
`.sh` by `sh`, `.bash` by `bash`, `.py` by `python3`, `.js`, `.mjs` and `.cjs` by `node`. A module that
exports a handler for another runner is no such program; TypeScript needs a first line such as `#!/usr/bin/env
-S deno run`.

Write the first line, or give the file one of these endings.
",
};

#[cfg(test)]
pub(super) const TWINS: &[super::Twins] = &[super::unguarded(
    &[
        (
            r#"{ "type": "detect:graph" }"#,
            r#"{ "type": "meta:custom", "config": { "handlerPath": "verdict.ts" } }"#,
        ),
        ("", "//- .agent/fixer/verdict.ts\nexport default () => 1;\n"),
    ],
    &[("export default", "#!/usr/bin/env -S deno run\nexport default")],
)];

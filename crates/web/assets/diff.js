// Changes to review: the files with their counts, then each file side by side or in one column, with code in colours.

import { count, h, show } from "./dom.js";

/** Files with more lines are opened by the reader; so are those after this many lines. */
const OPEN_LINES = 400;
const OPEN_LINES_ALL = 2000;
/** Of one file, so many lines are drawn. */
const DRAWN_LINES = 5000;
/** A longer line is not coloured. */
const COLOURED_COLUMNS = 400;
const WIDE = matchMedia("(min-width: 1100px)");

/** The files of a patch of git: `{path, note, added, removed, hunks: [{title, lines: [{kind, text, old, now}]}]}`. */
export function parsePatch(words) {
  const files = [];
  // Git quotes names with special characters: `"b/a\\nb"`.
  const unquoted = (name) => name.replace(/^"(.*)"$/, (_, inner) => {
    const bytes = [...inner.matchAll(/\\([0-7]{3})|\\(.)|([^\\]+)/g)].flatMap(([, octal, letter, text]) => {
      if (octal) return [Number.parseInt(octal, 8)];
      return [...new TextEncoder().encode(text ?? ({ n: "␤", t: "␉" })[letter] ?? letter)];
    });
    return new TextDecoder().decode(new Uint8Array(bytes));
  });
  let file = null;
  let hunk = null;
  let [oldLeft, newLeft, old, now] = [0, 0, 0, 0];
  for (const line of words.split("\n")) {
    if (hunk && (oldLeft > 0 || newLeft > 0)) {
      const kind = line[0];
      const text = line.slice(1);
      if (kind === "+") {
        hunk.lines.push({ kind: "added", text, now: now++ });
        file.added += 1;
        newLeft -= 1;
      } else if (kind === "-") {
        hunk.lines.push({ kind: "removed", text, old: old++ });
        file.removed += 1;
        oldLeft -= 1;
      } else if (kind !== "\\") {
        hunk.lines.push({ kind: "", text, old: old++, now: now++ });
        oldLeft -= 1;
        newLeft -= 1;
      }
      continue;
    }
    const place = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)/.exec(line);
    if (line.startsWith("diff --git ")) {
      const name = unquoted(/ ("b\/.*")$/.exec(line)?.[1] ?? `b/${/ b\/(.*)$/.exec(line)?.[1] ?? line.slice(11)}`);
      file = { path: name.slice(2), note: "", added: 0, removed: 0, hunks: [] };
      files.push(file);
      hunk = null;
    } else if (file && place) {
      [old, now] = [Number(place[1]), Number(place[3])];
      [oldLeft, newLeft] = [Number(place[2] ?? 1), Number(place[4] ?? 1)];
      hunk = { title: place[5].trim(), lines: [] };
      file.hunks.push(hunk);
    } else if (file && !hunk) {
      if (/^\+\+\+ "?b\//.test(line)) file.path = unquoted(line.slice(4).replace(/\t$/, "")).slice(2);
      else if (line.startsWith("new file")) file.note = "new";
      else if (line.startsWith("deleted file")) file.note = "deleted";
      else if (line.startsWith("rename from ")) file.note = `was ${line.slice(12)}`;
      else if (line.startsWith("new mode")) file.note ||= `mode ${line.slice(9)}`;
      else if (line.startsWith("Binary files") || line.startsWith("GIT binary patch")) file.note = `${file.note} binary`.trim();
    }
  }
  return files;
}

const WORDS = new Set(("abstract as async await begin bool boolean break case catch char class const continue crate def default del do done "
  + "double elif else elsif end enum esac except export extends extern false False fi final finally float fn for from func function global go "
  + "if impl implements import in int interface is lambda let long loop match mod module move mut namespace new nil None not null nullptr or "
  + "package pass private protected pub public raise ref require return Self self short static string struct super switch then this throw "
  + "trait true True try type typedef typeof undefined union unless unsafe until use using var virtual void when where while with yield").split(" "));
const HASH = /^(?:py|pyi|sh|bash|zsh|rb|yml|yaml|toml|pl|r|mk|makefile|dockerfile|cfg|conf|ini|ex|exs|nix|tf)$/;
const DASH = /^(?:sql|lua|hs|elm)$/;
const PLAIN = /^(?:md|markdown|txt|rst|csv|lock|html|xml|svg|log)$/;

/** The parts of a line of code: texts, and elements for what has a colour. */
function coloured(text, ending) {
  if (PLAIN.test(ending) || text.length > COLOURED_COLUMNS) return [text];
  const comment = HASH.test(ending) ? "#.*" : DASH.test(ending) ? "--.*" : "//.*|/\\*.*?(?:\\*/|$)|^\\s*\\*.*";
  const letter = ending === "rs" ? "'(?:\\\\.|[^'\\\\])'" : "'(?:\\\\.|[^'\\\\])*'";
  const parts = new RegExp(`(?<comment>${comment})|(?<string>"(?:\\\\.|[^"\\\\])*"|${letter}|\`(?:\\\\.|[^\`\\\\])*\`)|(?<number>\\b\\d[\\w.]*)|(?<word>[A-Za-z_]\\w*)`, "g");
  const shown = [];
  let end = 0;
  for (const found of text.matchAll(parts)) {
    const { comment: isComment, string, number, word } = found.groups;
    const name = isComment ? "c-comment" : string ? "c-string" : number ? "c-number" : WORDS.has(word) ? "c-word" : null;
    if (!name) continue;
    shown.push(text.slice(end, found.index), h("span", { class: name }, found[0]));
    end = found.index + found[0].length;
  }
  shown.push(text.slice(end));
  return shown;
}

const number = (value) => h("td", { class: "line-number" }, value === undefined ? "" : String(value));
const SIGN = { added: "+", removed: "−" };

function code(line, ending) {
  if (!line) return h("td", { class: "nothing" });
  return h("td", { class: `code ${line.kind}` },
    line.kind ? h("span", { class: "hidden-text" }, `${line.kind}: `) : "",
    h("span", { class: "line-sign", "aria-hidden": "true" }, SIGN[line.kind] ?? " "), ...coloured(line.text, ending));
}

/** Pairs of an old and a new line; a run of removed lines stands beside the added ones that follow. */
function pairs(lines) {
  const rows = [];
  for (let at = 0; at < lines.length;) {
    if (lines[at].kind === "") {
      rows.push([lines[at], lines[at]]);
      at += 1;
      continue;
    }
    const [removed, added] = [[], []];
    for (; at < lines.length && lines[at].kind === "removed"; at += 1) removed.push(lines[at]);
    for (; at < lines.length && lines[at].kind === "added"; at += 1) added.push(lines[at]);
    for (let row = 0; row < Math.max(removed.length, added.length); row += 1) rows.push([removed[row], added[row]]);
  }
  return rows;
}

function table(file, beside) {
  const ending = (/([^./]+)$/.exec(file.path)?.[1] ?? "").toLowerCase();
  let left = DRAWN_LINES;
  const hunks = file.hunks.map((hunk) => {
    const lines = hunk.lines.slice(0, Math.max(0, left));
    left -= hunk.lines.length;
    return { ...hunk, lines };
  }).filter((hunk) => hunk.lines.length);
  const rows = hunks.flatMap((hunk, index) => [
    (index > 0 || hunk.title) && h("tr", { class: "place" }, h("td", { colspan: beside ? 4 : 3 }, `⋯ ${hunk.title}`)),
    ...(beside
      ? pairs(hunk.lines).map(([old, now]) => h("tr", {},
        number(old?.old), code(old, ending), number(now?.now), code(now, ending)))
      : hunk.lines.map((line) => h("tr", {}, number(line.old), number(line.now), code(line, ending)))),
  ]).filter(Boolean);
  if (left < 0) {
    rows.push(h("tr", { class: "place" }, h("td", { colspan: beside ? 4 : 3 },
      `⋯ and ${count(-left)} more lines: the whole file is in the output of \`cuegate diff\``)));
  }
  // The first row may span all columns, so it does not say how wide they are.
  const widths = beside ? ["numbers", "code", "numbers", "code"] : ["numbers", "numbers", "code"];
  return h("table", { class: beside ? "diff beside" : "diff" },
    h("colgroup", {}, widths.map((name) => h("col", { class: name }))), h("tbody", {}, rows));
}

function counts(file) {
  return h("span", { class: "counts" },
    file.added > 0 && h("span", { class: "plus" }, `+${count(file.added)}`),
    file.removed > 0 && h("span", { class: "minus" }, `−${count(file.removed)}`));
}

/** The sums of a patch: `3 files +12 −4`. */
export function sums(files) {
  const all = files.reduce((sum, file) => ({ added: sum.added + file.added, removed: sum.removed + file.removed }), { added: 0, removed: 0 });
  return [`${count(files.length)} ${files.length === 1 ? "file" : "files"} `, counts(all)];
}

/** A mark of a file that a tool obeys by itself. */
function obeyed(tool) {
  return tool && h("span", { class: "obeyed", title: "It is run or obeyed without being asked" }, `obeyed by ${tool}`);
}

/** A patch to review. `marked` are the files that tools obey by themselves: `{path, by}`. */
export function reviewPatch(words, marked = []) {
  const tools = new Map(marked.map(({ path, by }) => [path, by]));
  const files = parsePatch(words);
  if (files.length === 0) return h("p", { class: "soft" }, "No file changed.");
  let beside = null;
  let lines = 0;
  const boxes = files.map((file) => {
    const own = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
    lines += own;
    const body = h("div", { class: "wide" });
    let drawn = null;
    const draw = () => {
      const wanted = (beside ?? WIDE.matches) && file.removed > 0 && file.added > 0;
      if (!box.open || drawn === wanted) return;
      drawn = wanted;
      show(body, own ? table(file, wanted) : h("p", { class: "soft" }, "No lines to show."));
    };
    const box = h("details", { class: "file", ontoggle: draw, open: own <= OPEN_LINES && lines <= OPEN_LINES_ALL },
      h("summary", {}, h("code", {}, file.path), file.note && h("span", { class: "soft" }, file.note), obeyed(tools.get(file.path)), counts(file)), body);
    return { box, draw };
  });
  const redraw = () => boxes.forEach(({ draw }) => draw());
  redraw();
  WIDE.addEventListener("change", redraw);
  const both = h("button", {
    type: "button", "aria-pressed": String(WIDE.matches),
    onclick: () => {
      beside = !(beside ?? WIDE.matches);
      both.setAttribute("aria-pressed", String(beside));
      redraw();
    },
  }, "Side by side");
  const list = h("ul", { class: "files" }, files.map((file, index) => h("li", {}, h("button", {
    type: "button",
    onclick: () => {
      boxes[index].box.open = true;
      boxes[index].box.scrollIntoView({ block: "start" });
      boxes[index].box.querySelector("summary").focus({ preventScroll: true });
    },
  }, h("code", {}, file.path), obeyed(tools.get(file.path)), counts(file)))));
  return h("div", { class: "review" },
    h("div", { class: "tools" }, files.length > 1 && h("span", {}, ...sums(files)), h("span", { class: "grow" }), both),
    files.length > 1 && list, boxes.map(({ box }) => box));
}

// Builds elements, and writes numbers and times as the command line does. Text is only ever set as text.

const SVG = "http://www.w3.org/2000/svg";

// Characters that control how others are shown: an agent could write words in another order than they are read.
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
export const visible = (text) => (typeof text === "string" ? text.replace(UNSAFE, "") : text);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value === true ? "" : visible(value));
  }
  const shown = children.flat(3).filter((child) => child !== null && child !== undefined && child !== false);
  element.append(...shown.map(visible));
  return element;
}

/** An element of HTML: `h("a", {href: "#"}, "text")`. */
export const h = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);

/** An element of SVG. */
export const s = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

/** Replaces what is in an element. */
export const show = (element, ...children) => element.replaceChildren(...children.flat(3).filter(Boolean));

/** A text whose parts between backquotes are code. */
export const inCode = (words) => words.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));

const ENDS = { "@completed": "done", "@failed": "failed", "@aborted": "aborted", "@exhausted": "stopped at a limit" };

/** Where a visit leads: a step, or the end of the run in words. */
export const target = (name) => ENDS[name] ?? name;

/** Tells screen readers. */
export function say(text) {
  const said = document.getElementById("said");
  if (said.textContent !== text) said.textContent = visible(text);
}

export const ms = (text) => (text ? Date.parse(text) : null);

/** As the command line writes it: `2 h 5 min`, `3 min 4 s`, `4.1 s`, `20 ms`. */
export function duration(milliseconds) {
  if (milliseconds < 100) return `${Math.max(0, Math.round(milliseconds))} ms`;
  if (milliseconds < 59_950) return `${(milliseconds / 1000).toFixed(1)} s`;
  const pair = (large, one, small, two) => (small ? `${large} ${one} ${small} ${two}` : `${large} ${one}`);
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 3600) return pair(Math.floor(seconds / 60), "min", seconds % 60, "s");
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return pair(Math.floor(minutes / 60), "h", minutes % 60, "min");
  const hours = Math.round(minutes / 60);
  return pair(Math.floor(hours / 24), "d", hours % 24, "h");
}

/** `5m ago`. */
export function ago(text) {
  if (!text) return "never";
  const seconds = (Date.now() - Date.parse(text)) / 1000;
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}h ago`;
  return `${Math.floor(seconds / 86400)}d ago`;
}

export function money(usd) {
  if (usd === null || usd === undefined) return "–";
  // As on the command line: two digits, or four below a cent.
  return `$${usd.toFixed(usd > 0 && usd < 0.00995 ? 4 : 2)}`;
}

export const count = (number) => (number ?? 0).toLocaleString("en");

export const clock = (text) => (text ? new Date(text).toLocaleTimeString(undefined, { hourCycle: "h23" }) : "");

export const dateTime = (text) => (text ? new Date(text).toLocaleString(undefined, { hourCycle: "h23" }) : "–");

/** The state of a run in words, with a sign that does not depend on colours. */
const SIGNS = {
  running: "▶", suspended: "‖", completed: "✓", failed: "✗", aborted: "✗", exhausted: "▣", cancelled: "⊘", died: "†",
};
export function state(run) {
  if (run.state === "running" && run.live === false) return { key: "died", text: `${SIGNS.died} process died` };
  return { key: run.state, text: `${SIGNS[run.state] ?? ""} ${run.standing ?? run.state}` };
}

export function badge(run) {
  const { key, text } = state(run);
  return h("span", { class: `badge ${key}` }, text);
}

/**
 * A list of which only the visible rows exist. `row(index)` makes a row; it may return null while its data is loaded.
 */
export class VirtualList {
  constructor(box, height, row) {
    Object.assign(this, { box, height, row, length: 0, shown: new Map() });
    this.list = h("ol", { class: "virtual", role: "list" });
    this.space = h("div", { class: "space" }, this.list);
    show(box, this.space);
    box.addEventListener("scroll", () => this.draw(), { passive: true });
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(box);
  }

  resize(length) {
    this.length = length;
    this.space.style.height = `${length * this.height}px`;
    this.draw();
  }

  /** The first and the last visible row. */
  range() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / this.height) - 4);
    const last = Math.min(this.length - 1, Math.ceil((this.box.scrollTop + this.box.clientHeight) / this.height) + 4);
    return [first, last];
  }

  /** Draws the visible rows; `again`: also those that are there. */
  draw(again = false) {
    const [first, last] = this.range();
    const focused = document.activeElement?.closest?.("li")?.dataset.index;
    for (const [index, row] of this.shown) {
      if (index < first || index > last || again) {
        row.remove();
        this.shown.delete(index);
      }
    }
    for (let index = first; index <= last; index += 1) {
      if (this.shown.has(index)) continue;
      const content = this.row(index);
      if (!content) continue;
      const item = h("li", { "aria-setsize": String(this.length), "aria-posinset": String(index + 1) }, content);
      item.dataset.index = index;
      item.style.transform = `translateY(${index * this.height}px)`;
      item.style.height = `${this.height}px`;
      const next = [...this.shown.keys()].filter((known) => known > index).sort((a, b) => a - b)[0];
      this.list.insertBefore(item, next === undefined ? null : this.shown.get(next));
      this.shown.set(index, item);
      if (again && String(index) === focused) item.querySelector("a, button")?.focus({ preventScroll: true });
    }
  }

  /** Scrolls so that a row is visible, and gives it the focus. */
  focus(index, wanted = "a, button") {
    const top = index * this.height;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    const bottom = top + this.height - this.box.clientHeight;
    if (bottom > this.box.scrollTop) this.box.scrollTop = bottom;
    this.draw();
    this.shown.get(index)?.querySelector(wanted)?.focus({ preventScroll: true });
  }

  /** Arrow keys go from row to row. */
  keys(event) {
    const index = Number(event.target.closest("li")?.dataset.index);
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.height) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (Number.isNaN(index) || !(event.key in steps)) return;
    event.preventDefault();
    this.focus(Math.min(this.length - 1, Math.max(0, index + steps[event.key])));
  }

  close() {
    this.observer.disconnect();
  }
}

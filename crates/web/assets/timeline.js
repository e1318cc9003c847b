// The timeline of a run: a row for each visit, with its asks, validators, effects and waits as bars. Rows are loaded and
// drawn as they become visible.

import { json } from "./api.js";
import { VirtualList, clock, count, duration, h, money, ms, say, show, target, visible } from "./dom.js";

const PAGE = 100;
/** Of a row, in pixels: a long outcome takes two lines on a narrow screen. */
const HEIGHT = matchMedia("(max-width: 640px)").matches ? 96 : 72;
/** From this many visits on, each takes one line. */
const MANY = 40;
const SHORT = 32;
const SIGNS = { open: "▶", ok: "✓", failed: "✗", cut: "–" };

/** The rows of a page: its visits, each with what is in it and the waits after it. */
function rows(spans) {
  const visits = [];
  const byId = new Map();
  for (const span of spans) {
    const one = { ...span, from: ms(span.from), to: ms(span.to), fromText: span.from, children: [] };
    byId.set(span.id, one);
    if (span.kind === "visit") visits.push(one);
    else (byId.get(span.parent) ?? visits.at(-1))?.children.push(one);
  }
  return visits;
}

export class Timeline {
  constructor(run, onMeta) {
    Object.assign(this, { run, onMeta, pages: new Map(), loading: new Set(), visits: 0, zoom: 1, selected: null });
    this.start = null;
    this.end = null;
    this.box = h("div", { class: "scroll timeline", role: "region", "aria-label": "Timeline", tabindex: "0" });
    this.axis = h("div", { class: "axis", "aria-hidden": "true" });
    this.follow = h("input", { type: "checkbox", checked: true, id: "follow" });
    const button = (text, label, act) => h("button", { type: "button", "aria-label": label, onclick: act }, text);
    this.tools = h("div", { class: "tools" },
      h("span", { class: "legend" },
        h("i", { class: "bar ask" }), "call ", h("i", { class: "bar validator" }), "command ",
        h("i", { class: "bar effect" }), "effect ", h("i", { class: "bar wait" }), "wait"),
      h("span", { class: "grow" }),
      h("label", { for: "follow" }, this.follow, " follow"),
      button("−", "Zoom out", () => this.setZoom(this.zoom / 2)),
      button("+", "Zoom in", () => this.setZoom(this.zoom * 2)),
      button("◀", "Earlier", () => this.pan(-0.5)),
      button("▶", "Later", () => this.pan(0.5)),
      button("All", "Show the whole time", () => this.setZoom(1)));
    this.element = h("section", { "aria-label": "Timeline" }, h("h2", {}, "Timeline"), this.tools, this.axis, this.box);
    this.list = new VirtualList(this.box, HEIGHT, (index) => this.row(index));
    this.box.addEventListener("keydown", (event) => {
      const acts = { "+": () => this.setZoom(this.zoom * 2), "-": () => this.setZoom(this.zoom / 2), 0: () => this.setZoom(1) };
      if (event.key in acts) acts[event.key]();
      else this.list.keys(event);
    });
  }

  /** Loads what changed: the last page, and the one that was last before. */
  async update() {
    const from = Math.max(0, Math.floor((this.visits - 1) / PAGE)) * PAGE;
    const last = await this.load(from);
    const end = Math.max(0, Math.floor((last.visits - 1) / PAGE)) * PAGE;
    if (end !== from) await this.load(end);
    const grew = last.visits > this.visits;
    this.visits = last.visits;
    if (this.start === null && last.visits) this.start = (await this.visit(0))?.from ?? null;
    this.stretch();
    this.isShort = this.visits > MANY;
    this.list.height = this.isShort ? SHORT : HEIGHT;
    this.list.resize(this.visits);
    this.list.draw(true);
    if (grew && this.follow.checked) this.box.scrollTop = this.box.scrollHeight;
  }

  async load(from) {
    const page = await json(`/runs/${this.run}/spans?from=${from}&count=${PAGE}`);
    this.pages.set(from / PAGE, rows(page.spans));
    this.onMeta(page);
    return page;
  }

  /** A visit by its number from 0. */
  async visit(index) {
    const page = Math.floor(index / PAGE);
    if (!this.pages.has(page)) await this.load(page * PAGE);
    return this.pages.get(page)?.[index % PAGE];
  }

  known(index) {
    return this.pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  /** The visible time. */
  stretch() {
    const lastPage = this.pages.get(Math.floor((this.visits - 1) / PAGE)) ?? [];
    const ends = lastPage.flatMap((visit) => [visit, ...visit.children]).map((span) => span.to ?? Date.now());
    this.end = Math.max(this.start ?? 0, ...ends, (this.start ?? 0) + 1);
    const whole = this.end - this.start;
    this.span = whole / this.zoom;
    if (this.zoom === 1 || this.center === undefined) this.center = this.start + whole / 2;
    if (this.follow.checked && this.zoom > 1) this.center = this.end - this.span / 2;
    this.center = Math.min(this.end - this.span / 2, Math.max(this.start + this.span / 2, this.center));
    this.left = this.center - this.span / 2;
    const marks = Array.from({ length: 5 }, (_, index) => {
      const at = this.left + (this.span * index) / 4;
      const mark = h("span", {}, index === 0 ? clock(new Date(at).toISOString()) : `+${duration(at - this.start)}`);
      mark.style.left = `${index * 25}%`;
      return mark;
    });
    show(this.axis, h("div", {}, marks));
  }

  setZoom(zoom) {
    this.zoom = Math.min(4096, Math.max(1, zoom));
    const selected = this.selected !== null && this.known(this.selected);
    if (selected) {
      this.follow.checked = false;
      this.center = (selected.from + (selected.to ?? this.end)) / 2;
    }
    this.redraw();
    say(this.zoom === 1 ? "the whole time" : `${duration(this.span)} are visible`);
  }

  pan(part) {
    this.follow.checked = false;
    this.center += this.span * part;
    this.redraw();
  }

  redraw() {
    this.stretch();
    this.list.draw(true);
  }

  select(index) {
    this.selected = index;
    this.list.draw(true);
  }

  bar(span, name) {
    const from = Math.max(0, (span.from - this.left) / this.span);
    const to = Math.min(1, ((span.to ?? Date.now()) - this.left) / this.span);
    if (to < 0 || from > 1) return null;
    const bar = h("i", { class: `bar ${name} ${span.state}` });
    bar.style.left = `${from * 100}%`;
    bar.style.width = `max(3px, ${Math.max(0, to - from) * 100}%)`;
    const words = [span.kind, span.name, span.provider, span.detail, span.outcome, duration((span.to ?? Date.now()) - span.from)];
    bar.setAttribute("title", visible(words.filter(Boolean).join(" · ")));
    return bar;
  }

  row(index) {
    const visit = this.known(index);
    if (!visit) {
      const page = Math.floor(index / PAGE);
      if (!this.loading.has(page)) {
        this.loading.add(page);
        this.load(page * PAGE).then(() => this.list.draw(true)).finally(() => this.loading.delete(page));
      }
      return h("span", { class: "soft" }, "…");
    }
    const took = (visit.to ?? Date.now()) - visit.from;
    const validators = visit.children.filter((child) => child.kind === "validator");
    const ways = [visit.outcome, visit.target && target(visit.target)].filter(Boolean).map((way) => `→ ${way}`).join(" ");
    const numbers = [visit.cost_usd !== undefined && money(visit.cost_usd), visit.tokens && `${count(visit.tokens)} tokens`, duration(took)];
    const rank = (child) => ({ visit: 0, ask: 1, validator: 2, effect: 3, poll: 3, wait: 4, tool: 5 })[child.kind];
    const flat = visit.children.flatMap((child) => [child, ...child.children]);
    const bars = [visit, ...flat].sort((a, b) => rank(a) - rank(b)).slice(0, 200).map((span) => this.bar(span, span.kind));
    const title = visit.detail || visit.name;
    const agents = this.namesAgents ? [...new Set(flat.map((child) => child.provider).filter(Boolean))].join(", ") : "";
    return h("a", {
      class: `visit ${visit.state}${this.isShort ? " short" : ""}`, title: this.isShort ? ways : null, href: `#/runs/${this.run}/visits/${index}`,
      "aria-current": this.selected === index ? "true" : null,
    },
      h("span", { class: "first" },
        h("span", { class: `sign ${visit.state}`, role: "img", "aria-label": visit.state }, SIGNS[visit.state]),
        h("b", { title }, title), h("span", { class: "soft" }, `#${visit.visit}${visit.attempt > 1 ? `, attempt ${visit.attempt}` : ""}${agents && ` · ${agents}`}`),
        h("span", { class: "numbers" }, numbers.filter(Boolean).join(" · "))),
      h("span", { class: "outcome", title: ways },
        validators.filter((one) => one.name !== title).map((one) => h("span", { class: `check ${one.state}` }, `${SIGNS[one.state]} ${one.name}${one.state === "failed" ? " failed" : ""} `)),
        ways),
      h("span", { class: "track", "aria-hidden": "true" }, bars));
  }

  close() {
    this.list.close();
  }
}

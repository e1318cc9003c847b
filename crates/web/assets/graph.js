// The graph of the definition as a map: how often each step was entered, the path that was taken, and where the run is.

import { text } from "./api.js";
import { h, s, show } from "./dom.js";

/** The smallest scale at which the names of steps are legible. */
const LEGIBLE = 0.7;

export class FlowMap {
  constructor(run, onStep) {
    this.run = run;
    this.onStep = onStep;
    this.picture = h("div", { class: "map", tabindex: "0", role: "region", "aria-label": "Map of the definition" });
    this.words = h("p", { class: "hidden-text" });
    const zoom = (factor) => () => {
      this.scale = Math.min(4, Math.max(0.1, this.scale * factor));
      this.size();
    };
    const fit = () => {
      this.scale = Math.min(1, this.picture.clientWidth / this.width);
      this.size();
    };
    this.element = h("details", { class: "card", open: true },
      h("summary", {}, h("h2", {}, "Map")),
      h("div", { class: "tools" },
        h("button", { type: "button", "aria-label": "Make the map smaller", onclick: zoom(1 / 1.25) }, "−"),
        h("button", { type: "button", "aria-label": "Make the map larger", onclick: zoom(1.25) }, "+"),
        h("button", { type: "button", "aria-label": "Fit the map", onclick: fit }, "Fit")),
      this.words, this.picture);
    this.scale = 1;
  }

  async load() {
    let svg;
    try {
      svg = new DOMParser().parseFromString(await text(`/runs/${this.run}/graph`), "image/svg+xml").documentElement;
    } catch (error) {
      show(this.picture, h("p", { class: "soft" }, error.message));
      return;
    }
    if (svg.nodeName !== "svg") return;
    this.svg = document.importNode(svg, true);
    this.width = Number(this.svg.getAttribute("width"));
    this.height = Number(this.svg.getAttribute("height"));
    show(this.picture, this.svg);
    // As much as is legible; the rest is scrolled to.
    this.scale = Math.min(1, Math.max(LEGIBLE, this.picture.clientWidth / this.width));
    this.size();
    const entry = this.svg.querySelector(".entry")?.getBoundingClientRect();
    const around = this.picture.getBoundingClientRect();
    if (entry) this.picture.scrollLeft = entry.left + entry.width / 2 - around.left - around.width / 2;
    for (const node of this.svg.querySelectorAll("[data-step]")) {
      if (node.dataset.step.startsWith("@")) continue;
      node.addEventListener("click", () => this.onStep(node.dataset.step));
    }
  }

  size() {
    if (!this.svg) return;
    this.svg.setAttribute("width", Math.round(this.width * this.scale));
    this.svg.setAttribute("height", Math.round(this.height * this.scale));
  }

  /** Marks the path. `now`: the steps in progress. */
  update(steps, edges, now) {
    if (!this.svg) return;
    for (const old of this.svg.querySelectorAll(".times")) old.remove();
    const ends = new Set(edges.filter((edge) => edge.to.startsWith("@")).map((edge) => edge.to));
    for (const node of this.svg.querySelectorAll("[data-step]")) {
      const name = node.dataset.step;
      const times = steps[name] ?? (ends.has(name) ? 1 : 0);
      node.classList.toggle("visited", times > 0);
      if (now.includes(name) && !node.classList.contains("current")) {
        // Not by `scrollIntoView`, which also scrolls the page.
        const [at, around] = [node.getBoundingClientRect(), this.picture.getBoundingClientRect()];
        if (at.top < around.top || at.bottom > around.bottom) this.picture.scrollTop += at.top - around.top - 60;
        if (at.left < around.left || at.right > around.right) this.picture.scrollLeft += at.left - around.left - 60;
      }
      node.classList.toggle("current", now.includes(name));
      const box = times > 1 && node.querySelector(".shape")?.getBBox();
      if (box) node.append(this.times(box.x + box.width - 4, box.y + 2, times));
    }
    for (const path of this.svg.querySelectorAll("path[data-from]")) {
      const edge = edges.find((one) => one.from === path.dataset.from && one.to === path.dataset.to);
      path.classList.toggle("taken", Boolean(edge));
      if (!edge || edge.count < 2) continue;
      // Labels are in the middle, and drawn over links.
      const at = path.getPointAtLength(Math.min(24, path.getTotalLength() * 0.2));
      path.parentNode.append(this.times(at.x, at.y, edge.count));
    }
    const words = Object.entries(steps).map(([name, times]) => `${name}: ${times}`).join(", ");
    this.words.textContent = `Visits of each step: ${words || "none"}. In progress: ${now.join(", ") || "nothing"}.`;
  }

  times(x, y, number) {
    const words = `×${number}`;
    const width = 12 + 7 * words.length;
    return s("g", { class: "times" },
      s("rect", { x: String(x - width / 2), y: String(y - 9), width: String(width), height: "18", rx: "9" }),
      s("text", { x: String(x), y: String(y + 4), "text-anchor": "middle" }, words));
  }
}

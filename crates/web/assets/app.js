// Chooses the page by the address: `#/runs`, `#/runs/ID`, `#/runs/ID/visits/SPAN`, `#/compare/ID/ID`, `#/start`.

import { json } from "./api.js";
import { h, show } from "./dom.js";
import { runsPage } from "./runs.js";
import { runPage } from "./run.js";
import { comparePage } from "./compare.js";
import { startPage } from "./start.js";

const main = document.getElementById("main");
let page = null;
let session = null;

function failure(error) {
  return h("div", { class: "problem", role: "alert" }, h("h1", {}, error.message), error.hint && h("p", {}, error.hint));
}

async function route() {
  const [name, ...parts] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const key = name === "runs" && parts[0] ? `run/${parts[0]}` : location.hash;
  if (page?.key === key) {
    page.go?.(parts);
    return;
  }
  page?.close?.();
  page = null;
  show(main, h("p", {}, "Loading …"));
  try {
    session ??= await json("/session");
    document.getElementById("project").textContent = session.project;
    document.getElementById("start-link").hidden = !session.control;
    const pages = { "": runsPage, runs: parts[0] ? runPage : runsPage, compare: comparePage, start: startPage };
    const open = pages[name];
    if (!open) throw new Error("there is no such page");
    page = (await open(main, parts, session)) ?? {};
    page.key = key;
  } catch (error) {
    show(main, failure(error));
  }
  document.title = `${main.querySelector("h1")?.textContent ?? "Runs"} · Cuegate`;
  for (const link of document.querySelectorAll("nav a")) {
    const here = link.getAttribute("href") === `#/${name || "runs"}`;
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", route);
route();

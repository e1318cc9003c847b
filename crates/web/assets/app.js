// Chooses the page by the address: `#/runs`, `#/runs/ID`, `#/runs/ID/visits/SPAN`, `#/batches`, `#/batches/ID`, `#/compare/ID/ID`, `#/fleet`, `#/start`.

import { json, redeem } from "./api.js";
import { h, show } from "./dom.js";
import { runsPage } from "./runs.js";
import { batchesPage } from "./batches.js";
import { runPage } from "./run.js";
import { comparePage } from "./compare.js";
import { fleetPage } from "./fleet.js";
import { startPage } from "./start.js";

const main = document.getElementById("main");
let page = null;
let session = null;

function failure(error) {
  return h("div", { class: "problem", role: "alert" }, h("h1", {}, error.message), error.hint && h("p", {}, error.hint));
}

let routes = 0;

async function route() {
  routes += 1;
  const mine = routes;
  let name = "";
  let title = null;
  try {
    const [first, ...parts] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
    name = first;
    const key = name === "runs" && parts[0] ? `run/${parts[0]}` : location.hash;
    if (page?.key === key) {
      page.go?.(parts);
      return;
    }
    page?.close?.();
    page = null;
    // Each page has an element of its own: one that is left while it loads draws into nothing.
    const box = h("div", {}, h("p", {}, "Loading …"));
    show(main, box);
    session ??= await json("/session");
    document.getElementById("project").textContent = session.project;
    document.getElementById("batches-link").hidden = !session.batches;
    document.getElementById("fleet-link").hidden = !session.fleet;
    document.getElementById("start-link").hidden = !session.control;
    const pages = { "": runsPage, runs: parts[0] ? runPage : runsPage, batches: batchesPage, compare: comparePage, fleet: fleetPage, start: startPage };
    const open = pages[name];
    if (!open) throw new Error("there is no such page");
    const opened = (await open(box, parts, session)) ?? {};
    if (mine !== routes) {
      opened.close?.();
      return;
    }
    page = { ...opened, key };
    title = box.querySelector("h1")?.textContent;
  } catch (error) {
    if (mine !== routes) return;
    show(main, failure(error));
  }
  document.title = `${title ?? "Runs"} · Cuegate`;
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
addEventListener("hashchange", async () => {
  await redeem();
  route();
});
await redeem();
route();

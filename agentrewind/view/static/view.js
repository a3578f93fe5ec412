// The viewer's behaviour in the browser: fetches what is needed when it is, and listens to keys.
"use strict";

const body = document.body;
const here = body.dataset.here;
const rows = document.getElementById("rows");
const pane = document.getElementById("pane");
const HEIGHT = Number(body.dataset.height) || 26;
const CHUNK = Number(body.dataset.chunk) || 200;
const MARK = "agentrewind-mark";

// --- fetching ---

async function fetchText(address) {
  const answer = await fetch(address, { credentials: "omit", redirect: "error" });
  const text = await answer.text();
  if (!answer.ok && !answer.headers.get("content-type")?.startsWith("text/html")) throw new Error(text || answer.statusText);
  return text;
}

// the server's fragments are made by its templates, which escape everything; scripts in them would not run anyway
function parsed(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  const told = holder.content.querySelector("main .lead");
  if (!told) return [...holder.content.childNodes];
  told.className = "warn";
  return [told];
}

function failure(error) {
  const told = document.createElement("p");
  told.className = "warn";
  told.textContent = `The viewer does not answer (${error.message}). Is it still running?`;
  return told;
}

// --- theme ---

const themes = ["", "light", "dark"];
function showTheme() {
  const theme = localStorage.getItem("agentrewind-theme") ?? "";
  document.documentElement.className = themes.includes(theme) ? theme : "";
}
function nextTheme() {
  const dark = document.documentElement.className === "dark" ||
    (document.documentElement.className === "" && matchMedia("(prefers-color-scheme: dark)").matches);
  localStorage.setItem("agentrewind-theme", dark ? "light" : "dark");
  showTheme();
}
showTheme();
document.getElementById("theme").addEventListener("click", nextTheme);

// --- texts, files and lists that are fetched when they are wanted ---

document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-more]");
  if (!link || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const place = link.closest("p");
  try {
    place.replaceWith(...parsed(await fetchText(link.href)));
  } catch (error) {
    place.append(failure(error));
  }
});

async function fill(details) {
  if (details.dataset.filled) return;
  details.dataset.filled = "1";
  const inner = details.querySelector(".body");
  try {
    inner.replaceChildren(...parsed(await fetchText(details.dataset.src)));
  } catch (error) {
    delete details.dataset.filled;
    inner.replaceChildren(failure(error));
  }
}
document.addEventListener("toggle", (event) => {
  if (event.target.matches?.("details[data-src]") && event.target.open) fill(event.target);
}, true);

function settle(root) {
  for (const details of root.querySelectorAll("details[data-src][open]")) fill(details);
}

const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    watcher.unobserve(entry.target);
    if (entry.target.matches(".lazy")) fillLazy(entry.target);
    else loadChunk(entry.target);
  }
}, { root: null, rootMargin: "600px" });

async function fillLazy(place) {
  try {
    place.replaceChildren(...parsed(await fetchText(place.dataset.src)));
  } catch (error) {
    place.replaceChildren(failure(error));
  }
}
for (const place of document.querySelectorAll(".lazy")) watcher.observe(place);

// --- rows ---

function chunks() { return [...rows.querySelectorAll(".chunk")]; }

function wait(place) {
  place.style.height = `${place.dataset.count * HEIGHT}px`;
  watcher.observe(place);
}

function rowsAddress(from) {
  const query = body.dataset.query;
  return `${here}/rows?${query}${query ? "&" : ""}from=${from}`;
}

async function loadChunk(place) {
  try {
    const [fresh] = parsed(await fetchText(rowsAddress(place.dataset.from))).filter((each) => each.nodeType === 1);
    if (!place.isConnected) return null;
    place.replaceWith(fresh);
    showPicked();
    return fresh;
  } catch (error) {
    place.style.height = "";
    place.replaceChildren(failure(error));
    return null;
  }
}

function rowOf(key) {
  return rows.querySelector(`.row[data-key="${CSS.escape(key)}"]`);
}

let picked = new URLSearchParams(location.search).get("node") ?? "";
function showPicked() {
  for (const row of rows.querySelectorAll(".row.picked")) row.classList.remove("picked");
  const row = picked && rowOf(picked);
  if (row) {
    row.classList.add("picked");
    rows.setAttribute("aria-activedescendant", row.id);
  }
  const mark = sessionStorage.getItem(MARK) ?? "";
  for (const row of rows.querySelectorAll(".row.marked")) row.classList.remove("marked");
  const [run, ...key] = mark.split("/");
  if (run === body.dataset.run) rowOf(key.join("/"))?.classList.add("marked");
}

function addressOf(key) {
  const query = body.dataset.query;
  return `${here}?${query}${query ? "&" : ""}node=${encodeURIComponent(key)}`;
}

let asked = 0;
async function show(key, { push = true, step = false } = {}) {
  picked = key;
  showPicked();
  rowOf(key)?.scrollIntoView({ block: "nearest" });
  const mine = ++asked;
  // stepping through rows with a key is no way that anybody would want to go back, row by row
  if (push) history[step ? "replaceState" : "pushState"]({ key }, "", key ? addressOf(key) : (body.dataset.query ? `${here}?${body.dataset.query}` : here));
  if (!key) { body.classList.remove("open"); return; }
  body.classList.add("open");
  let found;
  try {
    found = parsed(await fetchText(`${here}/pane?node=${encodeURIComponent(key)}`));
  } catch (error) {
    found = [failure(error)];
  }
  if (mine !== asked) return;
  pane.replaceChildren(...found);
  pane.scrollTop = 0;
  prefill();
  settle(pane);
}

function prefill() {
  const mark = sessionStorage.getItem(MARK);
  const other = pane.querySelector("input.other");
  if (mark && other) other.value = mark;
}

// only the address of the last of many quick steps is fetched
let timer = 0;
function showSoon(key) {
  picked = key;
  showPicked();
  rowOf(key)?.scrollIntoView({ block: "nearest" });
  clearTimeout(timer);
  const wide = matchMedia("(min-width: 861px)").matches;
  timer = setTimeout(() => { if (wide) show(key, { step: true }); }, 90);
}

// a run under way may put another chunk in the place of one that is being fetched
async function loaded(choose) {
  for (let tries = 0; tries < 5; tries++) {
    const chunk = choose();
    if (!chunk?.matches(".waiting")) return chunk;
    await loadChunk(chunk);
  }
  return choose();
}

async function step(by) {
  const row = picked && rowOf(picked);
  if (!row) {
    const first = rows.querySelector(".row");
    if (first) showSoon(first.dataset.key);
    return;
  }
  let next = by > 0 ? row.nextElementSibling : row.previousElementSibling;
  if (!next) {
    const from = Number(row.parentElement.dataset.from) + by * CHUNK;
    const chunk = await loaded(() => chunks().find((each) => Number(each.dataset.from) === from));
    next = by > 0 ? chunk?.firstElementChild : chunk?.lastElementChild;
  }
  if (next) showSoon(next.dataset.key);
}

async function edge(last) {
  const chunk = await loaded(() => chunks().at(last ? -1 : 0));
  const row = last ? chunk?.lastElementChild : chunk?.firstElementChild;
  if (row) showSoon(row.dataset.key);
}

// the row may stand in a part of the tree that has not been fetched
async function reveal(link) {
  if (rowOf(link.dataset.key) || body.dataset.query || !link.dataset.row) return;
  const from = Math.floor(Number(link.dataset.row) / CHUNK) * CHUNK;
  await loaded(() => chunks().find((each) => Number(each.dataset.from) === from));
}

async function goTo(link) {
  clearTimeout(timer);
  await reveal(link);
  show(link.dataset.key);
}

function rewinds() {
  return [...document.querySelectorAll("#overview a[data-key] .arc:first-child")].map((arc) => arc.parentElement);
}
function stepRewind(by) {
  const all = rewinds();
  if (!all.length) return;
  const at = all.findIndex((each) => each.dataset.key === picked);
  goTo(all[at < 0 ? (by > 0 ? 0 : all.length - 1) : (at + by + all.length) % all.length]);
}

function markOrCompare() {
  if (!picked || picked.startsWith("~")) return;
  const place = `${body.dataset.run}/${picked}`;
  const mark = sessionStorage.getItem(MARK);
  if (mark && mark !== place) {
    sessionStorage.removeItem(MARK);
    location.assign(`${body.dataset.base}/compare?a=${encodeURIComponent(mark)}&b=${encodeURIComponent(place)}`);
    return;
  }
  if (mark === place) sessionStorage.removeItem(MARK);
  else sessionStorage.setItem(MARK, place);
  showPicked();
}

if (rows) {
  for (const place of rows.querySelectorAll(".chunk.waiting")) wait(place);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-key]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    goTo(link);
  });
  pane.addEventListener("click", (event) => {
    if (event.target.closest(".back")) { event.preventDefault(); show(""); }
  });
  addEventListener("popstate", () => show(new URLSearchParams(location.search).get("node") ?? "", { push: false }));
  showPicked();
  if (picked) rowOf(picked)?.scrollIntoView({ block: "center" });
  prefill();
}
settle(document);

// --- keys ---

const keys = {
  "j": () => step(1), "ArrowDown": () => step(1), "k": () => step(-1), "ArrowUp": () => step(-1),
  "g": () => edge(false), "Home": () => edge(false), "G": () => edge(true), "End": () => edge(true),
  "n": () => stepRewind(1), "p": () => stepRewind(-1), "c": markOrCompare,
  "Enter": () => { if (picked) show(picked).then(() => pane.focus()); },
  "ArrowRight": () => { if (picked) show(picked).then(() => pane.focus()); },
  "ArrowLeft": () => back(), "Escape": () => back(),
};
function back() {
  rows.focus();
  if (matchMedia("(max-width: 860px)").matches && body.classList.contains("open")) show("");
}
function listKeys(by) {
  const items = [...document.querySelectorAll(".list .item")];
  if (!items.length) return;
  const at = items.indexOf(document.activeElement);
  items[Math.max(0, Math.min(items.length - 1, at + by))].focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select");
  if (typing) {
    if (event.key === "Escape") { event.target.blur(); rows?.focus(); }
    return;
  }
  if (document.getElementById("keys").open) return;
  if (event.key === "?") { document.getElementById("keys").showModal(); return; }
  if (event.key === "t") { nextTheme(); return; }
  if (event.key === "/") {
    const search = document.querySelector(".search input, .pick input");
    if (search) { event.preventDefault(); search.focus(); search.select?.(); }
    return;
  }
  const inPane = pane?.contains(event.target);
  if (rows && keys[event.key]) {
    // within the details the arrows scroll, and Enter follows what has the focus
    if (inPane && ["ArrowDown", "ArrowUp", "Enter", "ArrowRight", "Home", "End"].includes(event.key)) return;
    if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
    event.preventDefault();
    keys[event.key]();
  } else if (!rows) {
    if (event.key === "j" || event.key === "ArrowDown") { event.preventDefault(); listKeys(1); }
    if (event.key === "k" || event.key === "ArrowUp") { event.preventDefault(); listKeys(-1); }
  }
});

// --- a run under way ---

async function refresh(version) {
  body.dataset.version = version;
  const html = await fetchText(addressOf(picked).replace(/&?node=$/, ""));
  const fresh = new DOMParser().parseFromString(html, "text/html");
  for (const id of ["summary", "overview"]) {
    const now = fresh.getElementById(id);
    const old = document.getElementById(id);
    if (now && old && now.outerHTML !== old.outerHTML) old.replaceWith(now);
    else if (now && !old && id === "overview") document.querySelector(".tree").prepend(now);
  }
  const atEnd = rows.scrollTop + rows.clientHeight > rows.scrollHeight - 3 * HEIGHT;
  await refreshRows([...fresh.querySelectorAll("#rows .chunk")]);
  if (atEnd) rows.scrollTop = rows.scrollHeight;
  const now = fresh.querySelector("#pane .node");
  const old = pane.querySelector(".node");
  const busy = pane.querySelector("details[open] form, textarea:focus, input:focus");
  if (now && old && !busy && now.dataset.key === old.dataset.key && old.dataset.open) {
    old.replaceWith(now);
    settle(pane);
  }
  const about = fresh.querySelector("#pane .about");
  if (about) pane.querySelector(".about")?.replaceWith(about);
}

async function refreshRows(fresh) {
  const old = new Map(chunks().map((each) => [each.dataset.from, each]));
  document.querySelector(".tree > .empty")?.remove();
  for (const now of fresh) {
    const was = old.get(now.dataset.from);
    old.delete(now.dataset.from);
    if (!was) {
      rows.append(now);
      if (now.matches(".waiting")) wait(now);
    } else if (now.matches(".waiting")) {
      // what is on the screen is fetched again, the rest when it comes into view
      if (!was.matches(".waiting")) await loadChunk(was);
      else if (was.dataset.count !== now.dataset.count) { was.dataset.count = now.dataset.count; wait(was); }
    } else if (was.outerHTML !== now.outerHTML) {
      was.replaceWith(now);
    }
  }
  for (const gone of old.values()) gone.remove();
  showPicked();
}

if (rows) {
  let source = null;
  let again = "";
  let atWork = false;
  const heard = async (event) => {
    again = event.data;
    if (atWork) return;
    atWork = true;
    try {
      while (again && again !== body.dataset.version) await refresh(again);
    } catch { /* the next change tries again */ }
    atWork = false;
  };
  // a browser opens few connections to one server, and tabs that nobody looks at need none
  const listen = () => {
    source?.close();
    source = null;
    if (document.hidden) return;
    source = new EventSource(`${here}/live?version=${encodeURIComponent(body.dataset.version)}`);
    source.addEventListener("message", heard);
  };
  document.addEventListener("visibilitychange", listen);
  addEventListener("pagehide", () => source?.close());
  listen();
}

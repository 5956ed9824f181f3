// The frame of the page: which run, which screen, and the stream that both follow.
import {ask, listen} from "/static/api.js";
import {$, el, note, say, show} from "/static/dom.js";
import {count, duration, share} from "/static/words.js";

const SCREENS = ["Flow", "Funnel", "Rule", "Rejects", "Quarantine", "Workers", "Schedule", "Events", "Compare"];
const ENDED = new Set(["finished", "stopped", "failed", "killed"]);

// What every screen sees: the runs, the number of the one shown, its state, and a way to another screen.
const page = {runs: [], run: 0, state: null, live: false, at: {}, go, called: (run) => called(run), ask: (path, query = {}) =>
  ask(path, {run: page.run, ...query}, screenSignal.signal)};
let screen = null, shown = "", opened = "", stream = null, screenSignal = new AbortController(), heardAt = 0;

function go(name, at = {}) {
  location.hash = name.toLowerCase() + Object.entries(at).map(([k, v]) => `&${k}=${encodeURIComponent(v)}`).join("");
}

function place() {
  const [name, ...pairs] = location.hash.slice(1).split("&");
  const at = Object.fromEntries(pairs.map((pair) => pair.split("=").map(decodeURIComponent)));
  return {name: SCREENS.find((s) => s.toLowerCase() === name) ?? "Flow", at};
}

async function open() {
  const {name, at} = place(), key = JSON.stringify([name, at]);
  if (key === opened) return;
  opened = key;
  page.at = at;
  if (shown === name && screen?.move?.(at)) return;
  shown = name;
  screenSignal.abort();
  screen = null;
  screenSignal = new AbortController();
  document.title = `${name} · gristmill`;
  for (const link of document.querySelectorAll("nav a"))
    link.dataset.name === name ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  const main = $("main"), mine = screenSignal;
  main.className = `screen-${name.toLowerCase()}`;
  const wait = el("p", {class: "note", "aria-busy": "true"}, "Reading the run …");
  show(main, el("h1", {}, name), wait);
  try {
    const module = await import(`/static/${name.toLowerCase()}.js`);
    const opened = await module.open(main, page);
    if (mine !== screenSignal) return;
    wait.remove();
    screen = opened;
    if (page.state) screen?.update?.(page.state);
  } catch (error) {
    wait.remove();
    if (!mine.signal.aborted) failed(error, main);
  }
}

function failed(error, main = $("main")) {
  if (error.name === "AbortError") return;
  main.append(note(error.status === 401
    ? "This page needs the token of its dashboard: open the whole address that was printed when it was started."
    : `Not shown: ${error.message}`));
}

function frame(state) {
  const s = state.snapshot, chip = $("state"), done = s.input_bytes_total
    ? s.input_bytes_done / s.input_bytes_total : s.partitions_total ? s.partitions_done / s.partitions_total : 0;
  if (chip.dataset.state !== state.run) say($("said"), `The run is ${state.run}.`);
  chip.dataset.state = state.run;
  const run = page.runs[page.run];
  if (run.name !== s.name) {
    run.name = s.name;
    say($("run").options[page.run], called(run));
  }
  say(chip, state.run);
  const bar = $("progress");
  bar.setAttribute("aria-valuenow", Math.round(100 * done));
  bar.firstElementChild.style.width = `${100 * done}%`;
  const left = state.run !== "running" || s.eta_s == null ? [] : [`${duration(s.eta_s)} left` +
    (s.eta_low_s == null || s.eta_high_s == null ? "" : ` (${duration(s.eta_low_s)} – ${duration(s.eta_high_s)})`)];
  say($("line"), [duration(s.elapsed_s), `${count(s.read)} read`, `${count(s.written)} kept`,
    `${share(done, 1)} of the input`, ...left].join(" · "));
}

function heard(kind, state) {
  if (!state.snapshot) return;
  heardAt = Date.now();
  page.state = state;
  page.live = !ENDED.has(state.run);
  performance.mark("update");
  frame(state);
  screen?.update?.(state);
  performance.measure("gristmill-update", "update");
  performance.clearMarks("update");
}

// Follow a run until another is chosen; after a break try again, less and less often.
async function follow() {
  stream?.abort();
  const mine = stream = new AbortController();
  for (let wait = 1; !mine.signal.aborted; wait = Math.min(30, wait * 2)) {
    try {
      await listen({run: page.run}, (kind, state) => { wait = 1; heard(kind, state); }, mine.signal);
    } catch (error) {
      if (mine.signal.aborted) return;
      if (error.status === 401) return failed(error);
      if (page.live) say($("state"), "no connection");
    }
    await new Promise((resolve) => setTimeout(resolve, 1000 * wait));
  }
}

// A run by its name and the end of its path, which tells it from others.
const called = (run) => `${run.name || "run"} – ${run.directory.replace(/\/\.gristmill$/, "").split("/").slice(-2).join("/")}`;

function themes() {
  const names = {auto: "◐ auto", light: "○ light", dark: "● dark"}, order = Object.keys(names);
  const set = (name) => {
    document.documentElement.dataset.theme = name;
    localStorage.setItem("gristmill-theme", name);
    say($("theme"), names[name]);
    dispatchEvent(new Event("theme"));
  };
  $("theme").addEventListener("click", () =>
    set(order[(order.indexOf(document.documentElement.dataset.theme) + 1) % order.length]));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("theme")));
  set(order.find((name) => name === localStorage.getItem("gristmill-theme")) ?? "auto");
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const number = "123456789".indexOf(event.key);
  if (number >= 0) { go(SCREENS[number]); $("main").focus({preventScroll: true}); }
}

async function start() {
  themes();
  show(document.querySelector("nav"), SCREENS.map((name, i) =>
    el("a", {href: `#${name.toLowerCase()}`, "data-name": name, "aria-keyshortcuts": i + 1}, name, el("kbd", {"aria-hidden": "true"}, `${i + 1}`))));
  addEventListener("hashchange", open);
  addEventListener("keydown", keys);
  try {
    page.runs = await ask("runs");
  } catch (error) {
    return failed(error);
  }
  const chooser = $("run");
  show(chooser, page.runs.map((run, i) => el("option", {value: i, title: run.directory}, called(run))));
  chooser.disabled = page.runs.length < 2;
  chooser.addEventListener("change", () => {
    page.run = +chooser.value;
    page.state = null;
    shown = opened = "";
    open();
    follow();
  });
  await open();
  follow();
}

start();

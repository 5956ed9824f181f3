// Flow: how many documents pass each stage now, which one holds the others up, and what the machine is doing.
import {PALETTE, timeChart} from "/static/charts.js";
import {el, say, show} from "/static/dom.js";
import {count, duration, exact, share, size, value} from "/static/words.js";

const AGAIN_S = 60; // after which the history is asked for again; meanwhile snapshots are appended
const POINTS = 600;
const SHARES = ["useful", "setup", "starved", "blocked", "fragmented", "wasted", "scheduler"];

// The group that holds the others up: the longest wait before it or, if nothing waits, the most of its workers busy.
export function slowest(state) {
  const groups = new Map(), live = state.run === "running" || state.run === "draining";
  for (const stage of state.snapshot.stages) {
    const group = groups.get(stage.group) ?? {names: [], wait: stage.queue_s, busy: stage.busy_workers / (stage.workers || 1), spent: 0, group: stage.group};
    group.names.push(stage);
    group.spent += stage.process_s;
    groups.set(stage.group, group);
  }
  const all = [...groups.values()];
  if (!all.length) return null;
  const first = all.reduce((a, b) => (live ? b.wait - a.wait || b.busy - a.busy : b.spent - a.spent) > 0 ? b : a);
  const name = first.names.reduce((a, b) => b.process_s > a.process_s ? b : a).name;
  if (!live) {
    const spent = all.reduce((sum, g) => sum + g.spent, 0), own = Math.max(...first.names.map((s) => s.process_s));
    return spent ? {group: first.group, name, words: `most time: ${name} (${share(own, spent)} of ${duration(spent)} of work)`} : null;
  }
  const why = first.wait >= 0.05 ? `${duration(first.wait)} of work waiting` : `${share(first.busy, 1)} of its workers busy`;
  return {group: first.group, name, words: `slowest: ${name} (${why})`};
}

const states = (stage) => Object.keys(stage.worker_states ?? {}).length ? stage.worker_states
  : {busy: stage.busy_workers, idle: stage.workers - stage.busy_workers};

function row(stage, isFirst) {
  const cell = (cls) => el("td", {class: cls});
  const cells = {name: el("th", {scope: "row", title: stage.name}, el("a", {href: `#funnel&stage=${encodeURIComponent(stage.name)}`}, stage.name)),
    river: cell("river"), in: cell("n"), out: cell("n"), dropped: cell("n drop"), quarantined: cell("n"),
    rate: cell("n"), workers: cell("crew"), wait: cell("n"), memory: cell("n")};
  const parts = {kept: el("i", {class: "kept"}), dropped: el("i", {class: "dropped"}), failed: el("i", {class: "failed"})};
  cells.river.append(el("span", {class: "bar"}, ...Object.values(parts)));
  const crew = {busy: el("i", {class: "busy"}), blocked: el("i", {class: "blocked"}), starting: el("i", {class: "starting"})};
  const numbers = el("span", {class: "n"});
  if (isFirst) cells.workers.append(el("span", {class: "bar crewbar", "aria-hidden": "true"}, ...Object.values(crew)), numbers);
  const node = el("tr", {class: isFirst ? "first" : "fused"}, ...Object.values(cells));
  return {node, update(now, rate, widest, isSlowest) {
    const wide = (part, n) => { part.style.width = widest ? `${100 * n / widest}%` : "0"; };
    wide(parts.kept, now.documents_in - now.dropped - now.quarantined);
    wide(parts.dropped, now.dropped);
    wide(parts.failed, now.quarantined);
    say(cells.in, exact(now.documents_in));
    say(cells.out, exact(now.documents_out));
    say(cells.dropped, now.dropped ? `${exact(now.dropped)}` : "");
    say(cells.quarantined, now.quarantined ? exact(now.quarantined) : "");
    say(cells.rate, count(rate));
    node.classList.toggle("slowest", isSlowest);
    if (!isFirst) return;
    const s = states(now), all = now.workers || 1;
    crew.busy.style.width = `${100 * s.busy / all}%`;
    crew.blocked.style.width = `${100 * (s.blocked ?? 0) / all}%`;
    crew.starting.style.width = `${100 * (s.starting ?? 0) / all}%`;
    say(numbers, now.workers ? `${s.busy}/${now.workers}` : "–");
    say(cells.wait, now.queue_s ? duration(now.queue_s) : "–");
    say(cells.memory, now.memory_bytes ? size(now.memory_bytes) : "–");
  }};
}

export async function open(main, page) {
  const words = el("p", {class: "lead"}), tiles = el("dl", {class: "tiles"});
  const body = el("tbody"), messages = el("ul", {class: "messages"});
  const heads = ["Stage", "Documents", "In#", "Out#", "Dropped#", "Failed#", "Docs/s#", "Workers busy", "Waiting#", "Memory#"];
  const flow = el("table", {class: "flow"}, el("caption", {class: "hidden"}, "Stages in order"), el("thead", {}, el("tr", {},
    heads.map((h) => el("th", {scope: "col", class: h.endsWith("#") && "n"}, h.replace("#", ""))))), body);
  const speed = timeChart("Documents a second", [{name: "read", of: "c1", fill: true}, {name: "kept", of: "c2"}], {format: count});
  const memory = timeChart("Memory", [{name: "in use", of: "c1", fill: true}, {name: "limit", of: "dropped", dash: [4, 4]}], {format: size});
  const workers = timeChart("Workers", [{name: "all", of: "c1"}], {format: count, stacked: true});
  const time = timeChart("Where the time went", [{name: "useful", of: "c1"}], {format: (x) => share(x, 1), stacked: true, most: 1});
  main.append(words, tiles, el("section", {class: "card wide"}, el("h2", {}, "Stages", key()), flow), messages,
    el("div", {class: "grid"}, speed.box, memory.box, workers.box, time.box));
  let rows = [], drawn = "", history = null, askedAt = 0, due = [];

  async function past() {
    const isFirst = !history;
    askedAt = Date.now();
    history = await page.ask("history");
    charts();
    while (isFirst && due.length) due.shift()();
  }

  // A chart takes as long as all the rest of an update, so one is drawn with each.
  function charts() {
    if (!history) return;
    const {time: t, read_per_s, written_per_s, memory_bytes, memory_limit, workers: crews, shares} = history;
    due = [() => speed.set([t, read_per_s, written_per_s]), () => memory.set([t, memory_bytes, memory_limit]), () => {
      const shown = largest(crews, t.length), names = Object.keys(shown);
      workers.set([t, ...names.map((name) => shown[name])], names.map((name, i) => ({name, of: PALETTE[i]})));
    }, () => {
      const kinds = SHARES.filter((kind) => shares[kind]?.some(Boolean));
      time.set(kinds.length ? [t, ...kinds.map((kind) => shares[kind])] : [[]], kinds.map((name) => ({name, of: PALETTE[SHARES.indexOf(name)]})));
    }];
  }

  function update(state) {
    const s = state.snapshot, hold = slowest(state), widest = Math.max(...s.stages.map((stage) => stage.documents_in), 0);
    say(words, [hold?.words, s.shares && s.bound_s && s.elapsed_s && state.run === "finished"
      ? `${share(s.bound_s, s.elapsed_s)} of the optimum` : null].filter(Boolean).join(" · ") || "Nothing has passed yet.");
    tile(tiles, {Read: s.read, Created: s.created || null, Kept: s.written, Dropped: s.dropped, Quarantined: s.quarantined}, s.read + s.created);
    const key = s.stages.map((stage) => stage.name).join("\n");
    if (key !== drawn) {
      drawn = key;
      rows = s.stages.map((stage, i) => row(stage, !i || s.stages[i - 1].group !== stage.group));
      show(body, rows.map((r) => r.node));
    }
    rows.forEach((r, i) => r.update(s.stages[i], state.documents_per_s[i], widest, s.stages[i].name === hold?.name));
    due.shift()?.();
    if (s.messages.length) show(messages, s.messages.slice(-5).map((text) => el("li", {}, text)));
    if (page.live && Date.now() - askedAt > 1000 * AGAIN_S || !history && Date.now() - askedAt > 5000) past().catch(() => {});
    else if (page.live && history) append(state);
  }

  function append({snapshot: s, documents_per_s}) {
    const now = s.made_at || Date.now() / 1000, h = history;
    // A point that would fall on the pixel of the one before is not worth drawing four charts again.
    if (now - h.time.at(-1) < Math.max(0.9, (now - h.time[0]) / POINTS)) return;
    const before = h.last ?? s, seconds = s.elapsed_s - before.elapsed_s;
    h.last = s;
    h.time.push(now);
    h.read_per_s.push(documents_per_s[0] ?? null);
    h.written_per_s.push(seconds > 0 ? (s.written - before.written) / seconds : h.written_per_s.at(-1));
    h.memory_bytes.push(s.memory_bytes);
    h.memory_limit.push(s.memory_limit);
    for (const name of Object.keys(h.workers)) h.workers[name].push(s.stages.find((stage) => stage.name === name)?.workers ?? 0);
    for (const kind of Object.keys(h.shares)) h.shares[kind].push(s.shares[kind] ?? 0);
    charts();
  }
  past().catch(() => {});
  return {update};
}

// As many crews as there are colours: those with most workers, and the others together.
function largest(crews, length) {
  const names = Object.keys(crews);
  if (names.length <= PALETTE.length) return crews;
  const most = new Map(names.map((name) => [name, Math.max(...crews[name])]));
  const kept = new Set([...names].sort((a, b) => most.get(b) - most.get(a)).slice(0, PALETTE.length - 1)), others = new Array(length).fill(0);
  for (const name of names) if (!kept.has(name)) crews[name].forEach((n, i) => { others[i] += n ?? 0; });
  return {...Object.fromEntries(names.filter((name) => kept.has(name)).map((name) => [name, crews[name]])), [`${names.length - kept.size} others`]: others};
}

const key = () => el("ul", {class: "legend"}, [["kept", "passed on"], ["dropped", "dropped"], ["failed", "failed"], ["busy", "busy"], ["blocked", "held back"], ["idle", "idle"]]
  .map(([cls, name]) => el("li", {}, el("i", {class: `swatch ${cls}`}), name)));

function tile(list, numbers, all) {
  for (const [name, n] of Object.entries(numbers)) {
    let box = list.querySelector(`[data-name="${name}"]`);
    if (n == null) { box?.remove(); continue; }
    box ??= list.appendChild(el("div", {"data-name": name}, el("dt", {}, name), el("dd", {}), el("dd", {class: "part"})));
    say(box.children[1], exact(n));
    say(box.children[2], name === "Read" ? "documents" : share(n, all));
  }
}

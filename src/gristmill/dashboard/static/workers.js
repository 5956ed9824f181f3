// Workers: one square each, by what it is doing; nodes and their GPUs. From the log of events, as new as that was read.
import {card, colour, el, note, say, show, table} from "/static/dom.js";
import {duration, exact, share, size} from "/static/words.js";

const AGAIN_S = 3;
const WORDS = {busy: "busy", blocked: "held back", idle: "idle", starting: "starting", ended: "ended", lost: "lost"};

export async function open(main, page) {
  const legend = el("ul", {class: "legend"}, Object.entries(WORDS).map(([cls, name]) => el("li", {}, el("i", {class: `swatch ${cls}`}), name)));
  const groups = el("div"), detail = el("div"), nodes = el("div"), lead = el("p", {class: "lead"});
  main.append(lead, el("section", {class: "card"}, el("h2", {}, "Workers by stage", legend), groups), detail, nodes);
  let askedAt = 0, squares = new Map(), drawn = "", chosen = page.at.worker;

  function square(worker) {
    const button = el("button", {type: "button", class: "square", tabindex: -1, "data-worker": worker.number, onclick: () => choose(worker.number)});
    return {button, set(state, words) {
      if (button.dataset.state === state) return;
      button.dataset.state = state;
      button.className = `square ${state}`;
      button.setAttribute("aria-label", `worker ${words}: ${WORDS[state]}`);
      button.title = `worker ${words}: ${WORDS[state]}`;
    }};
  }

  // Arrow keys move among the squares; one of them is in the order of Tab.
  groups.addEventListener("keydown", (event) => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key], all = [...groups.querySelectorAll(".square")];
    if (!step || !all.length) return;
    event.preventDefault();
    const to = all[(all.indexOf(document.activeElement) + step + all.length) % all.length];
    all.forEach((one) => { one.tabIndex = one === to ? 0 : -1; });
    to.focus();
  });

  async function choose(number) {
    chosen = number;
    const w = await page.ask("worker", {worker: number});
    const most = Math.max(...w.memory.map(([, bytes]) => bytes), 1);
    show(detail, card(`Worker ${w.number} – ${w.stage}`, el("p", {class: "lead"}, `${WORDS[w.state]} · ${exact(w.tasks)} tasks in ${duration(w.busy_s)} of work · ${w.node}`, w.item ? ` · last: ${w.item}` : "", w.note ? ` · ${w.note}` : ""),
      w.memory.length > 1 ? memory(w, most) : note("No samples of its memory."),
      table("Its last tasks", ["Task", "What", "Start#", "Took#", "Documents#"], w.spans.map((s) => [s.item || "–", s.kind, duration(s.start), duration(s.end - s.start), exact(s.documents)]))));
  }

  async function load() {
    askedAt = Date.now();
    const found = await page.ask("workers");
    if (!found.workers.length) return show(groups, note(found.problem || "No workers are known: this executor keeps no log of its own."));
    const key = found.workers.map((w) => w.number).join();
    if (key !== drawn) {
      drawn = key;
      squares = new Map(found.workers.map((w) => [w.number, square(w)]));
      show(groups, found.groups.map((name, g) => {
        const own = found.workers.filter((w) => w.group === g);
        return own.length ? el("div", {class: "crew-row"}, el("h3", {}, name, el("small", {}, exact(own.length))), el("div", {class: "squares"}, own.map((w) => squares.get(w.number).button))) : null;
      }).filter(Boolean));
      groups.querySelector(".square")?.setAttribute("tabindex", 0);
    }
    for (const w of found.workers) squares.get(w.number).set(w.state, `${w.number} of ${found.groups[w.group]}`);
    const counts = {};
    for (const w of found.workers) counts[w.state] = (counts[w.state] ?? 0) + 1;
    say(lead, `${exact(found.workers.length)} workers: ` + Object.entries(counts).map(([state, n]) => `${exact(n)} ${WORDS[state]}`).join(", ") + ` · at ${duration(found.duration_s)}` + (found.problem ? ` · ${found.problem}` : ""));
  }
  await load();
  if (chosen != null) choose(chosen);
  return {update(state) {
    machines(nodes, state.snapshot.nodes ?? []);
    if (page.live && Date.now() - askedAt > 1000 * AGAIN_S) load().catch(() => {});
  }};
}

function memory(w, most) {
  const box = el("canvas", {width: 900, height: 80, class: "spark", role: "img", "aria-label": `memory of worker ${w.number}, at most ${size(most)}`}), pen = box.getContext("2d");
  const first = w.memory[0][0], last = w.memory.at(-1)[0], x = (t) => 900 * (t - first) / (last - first || 1);
  pen.strokeStyle = colour("c1");
  pen.lineWidth = 2;
  w.memory.forEach(([t, bytes], i) => pen[i ? "lineTo" : "moveTo"](x(t), 78 - 74 * bytes / most));
  pen.stroke();
  return el("figure", {}, box, el("figcaption", {class: "note"}, `Memory: at most ${size(most)}, now ${size(w.memory.at(-1)[1])}`));
}

function machines(place, nodes) {
  const rows = nodes.map((n) => [String(n.node ?? n.name ?? ""), share(n.memory_bytes, n.memory_total_bytes), size(n.memory_bytes), size(n.memory_total_bytes), String(n.cpus ?? ""),
    (n.gpus ?? []).map((g) => `${size(g.memory_bytes)} of ${size(g.memory_total_bytes)}`).join(", ") || "–"]);
  const key = JSON.stringify(rows);
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  show(place, rows.length ? card("Machines", table("Machines", ["Machine", "Memory#", "used#", "of#", "CPUs#", "GPU memory"], rows)) : null);
}

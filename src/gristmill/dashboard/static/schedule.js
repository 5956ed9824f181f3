// Schedule: what each worker did when, drawn from the log of events; zoom with the wheel, the buttons or + and -.
import {ask} from "/static/api.js";
import {card, colour, el, note, say, show, table} from "/static/dom.js";
import {duration, exact, share} from "/static/words.js";

const COLOURS = {"set-up": "starting", task: "kept", wasted: "c3", raised: "failed", lost: "dropped", ending: "idle"};
const NAMES = {"set-up": "set-up", task: "task", wasted: "done twice", raised: "failed", lost: "lost", ending: "ending"};
const LABEL = 150;

export async function open(main, page) {
  const canvas = el("canvas", {class: "schedule", tabindex: 0, role: "img", "aria-label": "Tasks of each worker over time. Plus and minus zoom, arrows move; the table below says the same."});
  const where = el("p", {class: "lead"}), under = el("p", {class: "note"}), summary = el("div");
  const button = (text, label, click) => el("button", {type: "button", "aria-label": label, onclick: click}, text);
  main.append(where, el("section", {class: "card"}, el("h2", {}, "Workers over time", el("ul", {class: "legend"}, Object.keys(COLOURS).map((k) => el("li", {}, el("i", {class: `swatch ${COLOURS[k]}`}), NAMES[k])))),
    el("p", {class: "tools"}, button("+", "Zoom in", () => zoom(0.5)), button("−", "Zoom out", () => zoom(2)), button("◀", "Earlier", () => move(-0.25)), button("▶", "Later", () => move(0.25)), button("All", "Show everything", () => load()), button("Chrome trace", "Download as a Chrome trace", save)),
    el("div", {class: "scroll"}, canvas), under), summary);
  let found = null, rows = [], from = 0, to = 0;

  async function load(a, b) {
    found = await page.ask("schedule", a == null ? {} : {from: a, to: b});
    [from, to] = a == null ? [0, found.duration_s] : [a, b];
    if (!found.spans.worker.length) return show(summary, note(found.problem || "Nothing was scheduled in this time."));
    const keys = new Map(), {worker, lane, group} = found.spans;
    worker.forEach((w, i) => keys.set(`${group[i]}.${w}.${lane[i]}`, [group[i], w, lane[i]]));
    rows = [...keys.values()].sort((p, q) => p[0] - q[0] || p[1] - q[1] || p[2] - q[2]);
    say(where, `${duration(from)} to ${duration(to)} of ${duration(found.duration_s)} · ${exact(rows.length)} lanes · ${exact(found.num_spans)} spans${found.num_spans > worker.length ? `, drawn as ${exact(worker.length)}` : ""}${found.problem ? ` · ${found.problem}` : ""}`);
    draw();
    show(summary, card("By worker", table("By worker", ["Worker", "Stage", "Tasks#", "Busy#", "of the time#"], found.busy.map((w) => [String(w.worker), found.groups[w.group], exact(w.tasks), duration(w.busy_s), share(w.busy_s, to - from)]))));
  }

  function draw() {
    const wide = canvas.parentElement.clientWidth, tall = Math.max(6, Math.min(18, Math.floor(560 / rows.length))), ratio = devicePixelRatio, s = found.spans;
    canvas.width = wide * ratio;
    canvas.height = (rows.length * tall + 22) * ratio;
    canvas.style.height = `${rows.length * tall + 22}px`;
    const pen = canvas.getContext("2d"), index = new Map(rows.map((r, i) => [r.join(), i])), x = (t) => LABEL + (wide - LABEL) * (t - from) / (to - from || 1);
    pen.scale(ratio, ratio);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const paint = Object.fromEntries(found.kinds.map((k, i) => [i, colour(COLOURS[k] ?? "c8")]));
    for (let i = 0; i < s.worker.length; i++) {
      const y = index.get([s.group[i], s.worker[i], s.lane[i]].join()) * tall, a = Math.max(LABEL, x(s.start[i])), b = x(s.end[i]);
      pen.fillStyle = paint[s.kind[i]];
      pen.fillRect(a, y + 1, Math.max(0.6, b - a - (b - a > 3 ? 0.6 : 0)), tall - 2);
    }
    pen.fillStyle = colour("muted");
    rows.forEach(([g, w, lane], i) => { if (tall > 9 || !i || rows[i - 1][0] !== g) pen.fillText(`${found.groups[g].slice(0, 16)} ${w}${lane ? `.${lane}` : ""}`, 0, Math.max(6, i * tall + tall / 2), LABEL - 8); });
    for (let k = 0; k <= 6; k++) {
      pen.textAlign = k === 6 ? "right" : k ? "center" : "left";
      pen.fillText(duration(from + k * (to - from) / 6), x(from + k * (to - from) / 6), rows.length * tall + 12);
    }
    pen.textAlign = "left";
    canvas.dataset.tall = tall;
  }

  const zoom = (factor, middle = (from + to) / 2) => {
    const length = Math.min(found.duration_s, (to - from) * factor), start = Math.max(0, Math.min(found.duration_s - length, middle - (middle - from) * length / (to - from)));
    load(start, start + length);
  };
  const move = (part) => {
    const length = to - from, start = Math.max(0, Math.min(found.duration_s - length, from + part * length));
    load(start, start + length);
  };
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [from + (event.clientX - box.left - LABEL) / (box.width - LABEL) * (to - from), rows[Math.floor((event.clientY - box.top) / canvas.dataset.tall)]];
  };
  canvas.addEventListener("wheel", (event) => { if (event.ctrlKey || event.shiftKey) { event.preventDefault(); zoom(event.deltaY > 0 ? 1.5 : 0.67, at(event)[0]); } }, {passive: false});
  canvas.addEventListener("keydown", (event) => ({"+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25)})[event.key]?.());
  canvas.addEventListener("pointermove", (event) => {
    const [t, row] = at(event), s = found.spans;
    const i = row ? s.worker.findIndex((w, k) => w === row[1] && s.lane[k] === row[2] && s.start[k] <= t && s.end[k] >= t) : -1;
    say(under, i < 0 ? "" : `${NAMES[found.kinds[s.kind[i]]]} · ${s.item[i] || `worker ${row[1]}`} · ${duration(s.start[i])} to ${duration(s.end[i])} (${duration(s.end[i] - s.start[i])})${s.note[i] ? ` · ${s.note[i]}` : ""}`);
  });
  canvas.addEventListener("click", (event) => { const row = at(event)[1]; if (row) page.go("Workers", {worker: row[1]}); });
  addEventListener("theme", () => found?.spans.worker.length && canvas.isConnected && draw());

  async function save() {
    const trace = await ask("trace", {run: page.run}), link = el("a", {href: URL.createObjectURL(new Blob([JSON.stringify(trace)], {type: "application/json"})), download: "trace.json"});
    link.click();
    URL.revokeObjectURL(link.href);
  }
  await load();
  return {};
}

// Rule: how a measure is distributed, where the threshold lies, and what another threshold would do.
import {card, choices, el, note, say, show, svg, table} from "/static/dom.js";
import {example} from "/static/rejects.js";
import {exact, share, value} from "/static/words.js";

const W = 900, H = 220, LEFT = 8, BINS = 72, FOOT = 22;

// How many documents a rule would refuse with these bounds. What is not a number stays where it was.
export function refused(tally, low, high) {
  let n = tally.nan_refused;
  tally.edges.forEach((edge, i) => {
    if ((low != null && edge < low) || (high != null && edge > high)) n += tally.kept[i] + tally.refused[i];
  });
  return n;
}

// Where a value is on the axis, from 0 to 1, and back. Values that span many sizes get a logarithmic axis.
function axis(tally) {
  const {edges} = tally, all = edges.map((_, i) => tally.kept[i] + tally.refused[i]), total = all.reduce((a, b) => a + b, 0);
  let seen = 0, first = edges[0], last = edges.at(-1), wasFirst = false;
  edges.forEach((edge, i) => {
    seen += all[i];
    if (!wasFirst && seen > total * 0.002) { first = edge; wasFirst = true; }
    if (seen - all[i] < total * 0.998) last = edge;
  });
  for (const bound of [tally.low, tally.high]) if (bound != null && Math.abs(bound) < 100 * Math.max(Math.abs(first), Math.abs(last), 1e-9)) { first = Math.min(first, bound); last = Math.max(last, bound); }
  const isLog = first > 0 && last / first > 60, f = isLog ? Math.log : (x) => x;
  const pad = (f(last) - f(first)) * 0.03 || Math.abs(f(first)) * 0.1 || 1, from = f(first) - (isLog || first < 0 || first > pad ? pad : 0), to = f(last) + pad;
  return {isLog, at: (x) => (f(x) - from) / (to - from), back: (p) => isLog ? Math.exp(from + p * (to - from)) : from + p * (to - from)};
}

function histogram(tally, scale) {
  const bins = Array.from({length: BINS}, () => [0, 0]);
  tally.edges.forEach((edge, i) => {
    // A slot may be wider than a bin: what is in it is spread over the bins it covers.
    const next = tally.nexts[i], a = scale.at(Math.min(edge, next)) * BINS, b = Math.max(a + 1e-9, scale.at(Math.max(edge, next)) * BINS);
    if (!Number.isFinite(a)) return;
    const whole = Number.isInteger(edge) && next - edge === 1 && b - a < 1.5; // whole numbers stand where they are
    for (let k = Math.floor(a); k < (whole ? Math.floor(a) + 1 : b); k++) {
      const part = whole ? 1 : (Math.min(b, k + 1) - Math.max(a, k)) / (b - a), bin = bins[Math.min(BINS - 1, Math.max(0, k))];
      bin[0] += tally.kept[i] * part;
      bin[1] += tally.refused[i] * part;
    }
  });
  return bins;
}

function ticks(scale) {
  const found = [];
  if (scale.isLog) {
    for (let e = -12; e < 13; e++) for (const m of [1, 2, 5]) found.push(m * 10 ** e);
  } else {
    const [a, b] = [scale.back(0), scale.back(1)], rough = (b - a) / 8, size = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * size).find((s) => s >= rough);
    for (let t = Math.ceil(a / step) * step; t < b; t += step) found.push(+t.toPrecision(12));
  }
  const shown = found.filter((t) => scale.at(t) > 0.01 && scale.at(t) < 0.99);
  return shown.filter((_, i) => i % Math.ceil(shown.length / 12) === 0);
}

function picture(tally, changed) {
  const scale = axis(tally), bins = histogram(tally, scale), top = Math.max(...bins.map(([k, r]) => k + r), 1);
  const now = {low: tally.low, high: tally.high}, x = (p) => LEFT + p * (W - 2 * LEFT), wide = (W - 2 * LEFT) / BINS;
  const height = (n) => (H - 12) * n / top, bars = bins.flatMap(([k, r], i) => [
    svg("rect", {class: "fill-kept", x: x(i / BINS), width: wide - 1, y: H - height(k), height: height(k)}),
    svg("rect", {class: "fill-dropped", x: x(i / BINS), width: wide - 1, y: H - height(k) - height(r), height: height(r)})]);
  const chart = svg("svg", {viewBox: `0 0 ${W} ${H + FOOT}`, class: "histogram", role: "group", "aria-label": `${tally.measure}: kept and refused`},
    bars, svg("line", {class: "base", x1: 0, x2: W, y1: H, y2: H}),
    ticks(scale).map((t) => svg("text", {x: x(scale.at(t)), y: H + 16, "text-anchor": "middle"}, value(t))));
  for (const bound of ["low", "high"]) if (tally[bound] != null) {
    const was = x(scale.at(tally[bound]));
    chart.append(svg("line", {class: "was", x1: was, x2: was, y1: 0, y2: H}));
    const grip = svg("g", {class: "grip", tabindex: 0, role: "slider", "aria-label": bound === "low" ? "least value kept" : "greatest value kept",
      "aria-valuemin": scale.back(0), "aria-valuemax": scale.back(1), "data-bound": bound},
    svg("rect", {class: "reach", x: -10, width: 20, y: 0, height: H}), svg("line", {y1: 0, y2: H}), svg("circle", {cy: 9, r: 6}));
    const label = svg("text", {y: 13});
    grip.append(label);
    const put = (v) => {
      now[bound] = v;
      const at = Math.min(1, Math.max(0, scale.at(v))), left = bound === "low" ? at > 0.12 : at > 0.88;
      grip.setAttribute("transform", `translate(${x(at)} 0)`);
      label.setAttribute("x", left ? -12 : 12);
      label.setAttribute("text-anchor", left ? "end" : "start");
      say(label, value(v) + (scale.at(v) > 1 ? " →" : ""));
      grip.setAttribute("aria-valuenow", v);
      grip.setAttribute("aria-valuetext", value(v));
      changed(now);
    };
    const nearest = (v) => tally.edges.reduce((a, b) => Math.abs(scale.at(b) - scale.at(v)) < Math.abs(scale.at(a) - scale.at(v)) ? b : a);
    const drag = (event) => {
      const box = chart.getBoundingClientRect();
      put(nearest(scale.back(Math.min(1, Math.max(0, ((event.clientX - box.left) * W / box.width - LEFT) / (W - 2 * LEFT))))));
    };
    grip.addEventListener("pointerdown", (event) => { grip.setPointerCapture(event.pointerId); event.preventDefault(); grip.focus(); });
    grip.addEventListener("pointermove", (event) => { if (grip.hasPointerCapture(event.pointerId)) drag(event); });
    grip.addEventListener("keydown", (event) => {
      const step = {ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -1e9, End: 1e9}[event.key];
      if (!step) return event.key === "Escape" && put(tally[bound]);
      event.preventDefault();
      const after = tally.edges.findIndex((edge) => edge >= now[bound]), here = after < 0 ? tally.edges.length : after;
      put(tally.edges[Math.min(tally.edges.length - 1, Math.max(0, here + step))]);
    });
    chart.append(grip);
    put(tally[bound]);
  }
  return {chart, reset() { for (const grip of chart.querySelectorAll(".grip")) grip.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"})); }};
}

// Words in place of numbers: a row a label, as wide as it is common, kept and refused.
function labels(tally) {
  const top = Math.max(...tally.labels.map(([, kept, refused]) => kept + refused), 1);
  const bar = ([, kept, refused]) => svg("svg", {viewBox: "0 0 400 12", class: "labelbar", role: "img", "aria-label": `${exact(kept)} kept, ${exact(refused)} refused`},
    svg("rect", {class: "fill-kept", x: 0, width: 400 * kept / top, y: 1, height: 10}),
    svg("rect", {class: "fill-dropped", x: 400 * kept / top, width: 400 * refused / top, y: 1, height: 10}));
  return table(tally.name, ["label", "", "kept#", "refused#"],
    tally.labels.map((row) => [row[0] ?? el("em", {}, "none"), bar(row), exact(row[1]), exact(row[2])]), {class: "labels"});
}

export async function open(main, page) {
  const rules = await page.ask("rules"), chooser = el("div"), place = el("div");
  if (!rules.length) { main.append(note("This run has recorded no measures: it has no filters, or ran with --observe counts or off.")); return {}; }
  const of = (at) => rules.find((r) => r.stage === at.stage && (r.name === at.rule || !at.rule)) ?? rules[0];
  const select = el("select", {id: "rule", onchange: () => { const r = rules[select.value]; page.go("Rule", {stage: r.stage, rule: r.name}); }},
    rules.map((r, i) => el("option", {value: i}, `${r.stage === r.name ? r.name : `${r.stage} · ${r.name}`} – ${exact(r.refused)} refused`)));
  main.append(el("p", {class: "tools"}, el("label", {}, "Rule ", select)), place);

  async function load() {
    const rule = of(page.at), tally = await page.ask("rule", {stage: rule.stage, rule: rule.name});
    select.value = rules.indexOf(rule);
    const total = tally.num_kept + tally.num_refused, sentence = el("p", {class: "verdict", "aria-live": "polite"});
    const {chart, reset} = tally.edges.length ? picture(tally, (now) => {
      const same = now.low === tally.low && now.high === tally.high, would = same ? tally.num_refused : refused(tally, now.low, now.high);
      sentence.dataset.refused = would;
      say(sentence, same ? `It refused ${exact(tally.num_refused)} of ${exact(total)} documents (${share(tally.num_refused, total)}).`
        : `With ${[now.low == null ? "" : `${value(now.low)} ≤ `, tally.measure, now.high == null ? "" : ` ≤ ${value(now.high)}`].join("")} it would refuse ${exact(would)} of ${exact(total)} (${share(would, total)}) instead of ${exact(tally.num_refused)}.`);
    }) : {chart: tally.labels.length ? labels(tally) : note("No document was measured."), reset() {}};
    if (!tally.edges.length || (tally.low == null && tally.high == null)) say(sentence, `It kept ${exact(tally.num_kept)} and refused ${exact(tally.num_refused)} of ${exact(total)} documents.`);
    const behind = el("div", {class: "behind", hidden: true}, table(tally.name, ["from", "below#", "kept#", "refused#"],
      tally.edges.map((edge, i) => [value(edge), value(tally.nexts[i]), exact(tally.kept[i]), exact(tally.refused[i])])));
    const flip = el("button", {type: "button", class: "quiet", "aria-expanded": "false", onclick: () => { behind.hidden = !behind.hidden; flip.setAttribute("aria-expanded", String(!behind.hidden)); }}, "Table");
    show(place, el("section", {class: "card"}, el("h2", {}, tally.condition ?? tally.measure,
      el("ul", {class: "legend"}, [["kept", "kept"], ["dropped", "refused"]].map(([cls, name]) => el("li", {}, el("i", {class: `swatch ${cls}`}), name))),
      el("button", {type: "button", class: "quiet", onclick: reset}, "Reset"), flip), sentence, chart, behind,
      tally.low != null || tally.high != null ? note("Drag a line, or focus it and use the arrow keys. Counts are exact to a slot of 3 %; rules further on would see other documents.") : null),
    tally.nearest.map((near) => el("div", {class: "grid"},
      card(`Just kept, ${near.bound === "low" ? "at or above" : "at or below"} ${value(near.threshold)}`, near.kept.length ? near.kept.map((e) => example(e, page)) : note("None.")),
      card("Just refused", near.refused.length ? near.refused.map((e) => example(e, page)) : note("None.")))));
  }
  await load();
  return {move() { load(); return true; }};
}

// Funnel: what each rule took away, in documents, bytes or tokens; and who lost most, by source or language.
import {card, choices, el, note, patch, show} from "/static/dom.js";
import {exact, share, size} from "/static/words.js";

const AGAIN_S = 5;
const words = (unit) => unit === "bytes" ? size : exact;

function bar(row, unit, widest) {
  const wide = (cls, n) => el("i", {class: cls, "data-n": n ?? 0}), parts = [wide("kept", row.out[unit]), wide("dropped", row.dropped[unit]), wide("failed", row.failed[unit])];
  parts.forEach((part) => { part.style.width = `${widest ? 100 * part.dataset.n / widest : 0}%`; });
  return el("span", {class: "bar"}, parts);
}

function line(row, unit, first, widest) {
  const say = words(unit), name = row.rule ?? row.stage, of = row.link ?? row, stage = encodeURIComponent(row.stage), rule = encodeURIComponent(of.rule);
  const link = of.measured ? el("a", {href: `#rule&stage=${stage}&rule=${rule}`}, name)
    : of.dropped.documents && of.rule != null ? el("a", {href: `#rejects&stage=${stage}&reason=${rule}`}, name) : name;
  return el("tr", {class: row.rule ? "fused" : "first", "data-stage": row.stage, "data-rule": row.rule ?? ""},
    el("th", {scope: "row", title: name}, link),
    el("td", {class: "river"}, bar(row, unit, widest)),
    ...(row.rule ? ["", say(row.dropped[unit] ?? 0), share(row.dropped[unit], row.in[unit]), "", ""]
      : [say(row.in[unit] ?? 0), row.dropped[unit] ? say(row.dropped[unit]) : "", row.dropped[unit] ? share(row.dropped[unit], row.in[unit]) : "",
        row.failed[unit] ? say(row.failed[unit]) : "", say(row.out[unit] ?? 0)])
      .map((text, i) => el("td", {class: i === 1 || i === 2 ? "n drop" : "n"}, text)),
    el("td", {class: "n"}, row.rule ? "" : share(row.out[unit], first.in[unit])));
}

// A stage with one rule of its own name is one row.
export function folded(rows) {
  const own = (stage) => rows.filter((row) => row.stage === stage && row.rule != null);
  return rows.filter((row) => row.rule !== row.stage || own(row.stage).length > 1).map((row) => {
    const [only, ...more] = row.rule == null ? own(row.stage) : [];
    return only && !more.length && only.rule === row.stage ? {...row, link: only} : row;
  });
}

export async function open(main, page) {
  let unit = "documents", column = null, askedAt = 0, found = null;
  const units = el("div"), lead = el("p", {class: "lead"}), body = el("tbody"), parts = el("div");
  const heads = ["Stage and rule", "", "In#", "Dropped#", "of in#", "Failed#", "Out#", "of all#"];
  main.append(lead, el("section", {class: "card wide"}, el("h2", {}, "What each rule took away", units),
    el("table", {class: "flow funnel"}, el("caption", {class: "hidden"}, "Funnel"), el("thead", {}, el("tr", {}, heads.map((h) =>
      el("th", {scope: "col", class: h.endsWith("#") && "n"}, h.replace("#", ""))))), body)), parts);

  function draw() {
    const rows = folded(found.rows), first = rows.find((row) => row.in.documents) ?? rows[0];
    if (!first) return show(body);
    const widest = Math.max(...rows.map((row) => row.in[unit] ?? 0)), b = found.books;
    show(lead, el("span", {}, `${exact(b.read)} read${b.created ? ` + ${exact(b.created)} created` : ""} = ${exact(b.written)} kept + ${exact(b.dropped)} dropped + ${exact(b.quarantined)} failed`,
      b.partitions < b.partitions_total ? ` · of ${exact(b.partitions)} of ${exact(b.partitions_total)} partitions that are committed` : ""));
    patch(body, rows.map((row) => line(row, unit, first, widest)));
  }

  const seek = () => body.querySelector(`[data-stage="${CSS.escape(page.at.stage ?? "")}"]`)?.scrollIntoView({block: "center"});

  async function slices() {
    if (!column) return show(parts);
    const {values} = await page.ask("slices", {column});
    const say = words(unit), key = unit === "bytes" ? "bytes" : "documents", widest = Math.max(...values.map((v) => v.total[key]), 1);
    const part = (cls, n) => { const i = el("i", {class: cls}); i.style.width = `${100 * n / widest}%`; return i; };
    show(parts, card(`By ${column}`, el("table", {class: "slices"}, el("thead", {}, el("tr", {}, [column, "", "All#", "Kept#", "Share kept#", "Most lost to"].map((h) =>
      el("th", {scope: "col", class: h.endsWith("#") && "n"}, h.replace("#", ""))))), el("tbody", {}, values.map((v) => el("tr", {},
      el("th", {scope: "row"}, v.value ?? "(none)"),
      el("td", {class: "river"}, el("span", {class: "bar"}, part("kept", v.written[key]), part("dropped", v.total[key] - v.written[key]))),
      el("td", {class: "n"}, say(v.total[key])), el("td", {class: "n"}, say(v.written[key])), el("td", {class: "n"}, share(v.written[key], v.total[key])),
      el("td", {}, v.most ?? "")))))));
  }

  async function load() {
    askedAt = Date.now();
    const before = found;
    found = await page.ask("funnel");
    if (JSON.stringify(found) === JSON.stringify(before)) return;
    if (!before) show(units, choices("Unit", found.units, unit, (chosen) => { unit = chosen; draw(); slices(); }, String),
      found.slices.length ? choices("Slices", ["no slices", ...found.slices], "no slices", (chosen) => { column = chosen === "no slices" ? null : chosen; slices(); }, (c) => c === "no slices" ? c : `by ${c}`) : null);
    draw();
    if (!before) seek();
  }
  await load();
  if (!found.rows.length) main.append(note("No partition is committed yet."));
  return {update() { if (page.live && Date.now() - askedAt > 1000 * AGAIN_S) load().catch(() => {}); }, move() { seek(); return true; }};
}

// Compare: two runs side by side, stage by stage and rule by rule.
import {ask} from "/static/api.js";
import {card, el, note, show, table} from "/static/dom.js";
import {folded} from "/static/funnel.js";
import {duration, exact, share, size} from "/static/words.js";

export async function open(main, page) {
  if (page.runs.length < 2) { main.append(note("Only one run is shown. Start the dashboard with two: gristmill dashboard RUN_A RUN_B")); return {}; }
  const place = el("div"), options = () => page.runs.map((run, i) => el("option", {value: i}, page.called(run)));
  const choose = (label, value) => { const select = el("select", {"aria-label": label, onchange: load}, options()); select.value = value; return select; };
  const left = choose("First run", page.run), right = choose("Second run", page.run === 1 ? 0 : 1);
  main.append(el("p", {class: "tools"}, left, el("span", {}, "against"), right), place);

  async function load() {
    const sides = [left.value, right.value], [a, b] = await Promise.all(sides.map(async (run) => ({state: await ask("run", {run}), funnel: await ask("funnel", {run})})));
    const change = (x, y) => x === y ? "" : x ? `${y > x ? "+" : "−"}${share(Math.abs(y - x), x)}` : "new";
    const line = (name, of, words = exact) => { const [x, y] = [a, b].map(of); return [name, words(x), words(y), change(x, y)]; };
    const whole = [line("Read", (r) => r.funnel.books.read), line("Kept", (r) => r.funnel.books.written), line("Dropped", (r) => r.funnel.books.dropped), line("Failed", (r) => r.funnel.books.quarantined),
      line("Time", (r) => r.state.snapshot?.elapsed_s ?? 0, duration), line("Documents a second", (r) => r.state.snapshot ? r.funnel.books.read / r.state.snapshot.elapsed_s : 0), line("Least time possible", (r) => r.state.snapshot?.bound_s ?? 0, duration), line("Input", (r) => r.state.snapshot?.input_bytes_done ?? 0, size)];
    const key = (row) => JSON.stringify([row.stage, row.rule]), index = [a, b].map((r) => new Map(folded(r.funnel.rows).map((row) => [key(row), row])));
    const keys = [...new Set([...index[0].keys(), ...index[1].keys()])];
    const rows = keys.map((k) => [index[0].get(k), index[1].get(k)]).filter(([x, y]) => (x ?? y).rule || (x ?? y).in.documents);
    const cell = (row) => row ? `${exact(row.dropped.documents)} (${share(row.dropped.documents, row.in.documents)})` : "–";
    const body = table("Dropped", ["Stage and rule", "First#", "Second#", "Change#"], rows.map(([x, y]) => [(x ?? y).rule ? `└ ${(x ?? y).rule}` : (x ?? y).stage, cell(x), cell(y), x && y ? change(x.dropped.documents, y.dropped.documents) : "only one"]));
    [...body.tBodies[0].rows].forEach((row, i) => row.classList.toggle("differs", rows[i][0]?.dropped.documents !== rows[i][1]?.dropped.documents));
    show(place, el("div", {class: "sides even"}, card("The whole", table("The whole", ["", "First#", "Second#", "Change#"], whole)), card("Dropped by", body)));
  }
  await load();
  return {};
}

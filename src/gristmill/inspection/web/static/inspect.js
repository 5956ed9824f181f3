// The page of `gristmill inspect --web`: rows, the row at hand, columns with histograms, a difference.
import {ask} from "/static/api.js";
import {$, el, note, say, show} from "/static/dom.js";
import {exact, share, value} from "/static/words.js";

const COUNT = 20;
let about, page, before = [], samples = 0, running;

const number = (rows, isExact) => (isExact ? "" : "≈") + exact(rows);
const wanted = () => ({where: $("where").value.trim(), text: $("text").value.trim()});
const isFiltered = () => Boolean(wanted().where || wanted().text);

// One question at a time: a new one ends the one under way.
async function doing(step) {
  running?.abort();
  const own = running = new AbortController();
  say($("said"), "…");
  try {
    await step(own.signal);
  } catch (error) {
    if (error.name !== "AbortError") say($("said"), error.message);
  }
}

// A long search is answered piece by piece; what was found is shown as soon as it is a page, or the end.
async function load(query, signal) {
  const rows = [];
  let answer, place;
  do {
    const from = place ? {place} : query;
    answer = await ask("page", {count: COUNT - rows.length, ...from, ...("sample" in query ? {} : wanted())}, signal);
    rows.push(...answer.rows);
    place = answer.next;
    if (answer.is_stopped) say($("said"), `looking … ${share(answer.share, 1)}; ${rows.length} found`);
  } while (answer.is_stopped && rows.length < COUNT);
  const first = rows.length ? rows[0].place : answer.place;
  return {...answer, rows, place: first, next: rows.length === COUNT ? place : null};
}

function go(query, remember) {
  return doing(async (signal) => {
    const found = await load(query, signal);
    if (!found.rows.length && page?.rows.length && "place" in query && remember) {
      say($("said"), "this is the last page");
      return;
    }
    if (remember && page) before.push(page.place);
    page = found;
    draw();
  });
}

function draw() {
  const names = about.columns.map((column) => column.name);
  const heads = el("tr", {}, ["row", ...names].map((name) => el("th", {scope: "col", dir: "auto"}, name)));
  const body = page.rows.map((row) => el("tr", {onclick: () => open(row), "data-place": row.place},
    el("th", {scope: "row", class: "n"}, el("button", {type: "button"}, number(row.row, row.is_exact))),
    row.damage ? el("td", {class: "damage", colspan: names.length}, "damaged: " + row.damage)
      : row.cells.map((cell) => el("td", {dir: "auto"}, cell))));
  show($("rows"), el("table", {}, el("caption", {class: "hidden"}, "Rows"), el("thead", {}, heads), el("tbody", {}, body)));
  say($("said"), [page.rows.length ? "" : "no rows", page.said].filter(Boolean).join("; "));
  say($("about"), `${about.paths[0]}${about.num_files > 1 ? ` and ${about.num_files - 1} more` : ""} · ${number(page.num_rows, page.is_exact)} rows`);
}

async function open(row) {
  for (const line of $("rows").querySelectorAll("tbody tr"))
    line.setAttribute("aria-selected", String(line.dataset.place === row.place));
  await doing(async (signal) => {
    const found = await ask("row", {place: row.place}, signal);
    $("one").hidden = false;
    show($("one"), el("h2", {}, `row ${number(found.row, found.is_exact)} · ${found.name}`),
      found.damage ? [el("p", {class: "damage"}, "damaged: " + found.damage), el("pre", {dir: "auto"}, found.raw)] : null,
      found.values.flatMap((one) => [el("h3", {}, one.name), el("pre", {dir: "auto"}, one.text)]));
    say($("said"), "");
  });
}

const bins = (histogram) => {
  const most = Math.max(...histogram.counts);
  return el("div", {class: "bins"}, histogram.counts.flatMap((count, i) => {
    const bar = el("i");
    bar.style.width = `${100 * count / most}%`;
    return [el("span", {}, value(histogram.edges[i])), bar, el("span", {}, exact(count))];
  }));
};

const statistics = () => doing(async (signal) => {
  const found = await ask("statistics", {where: wanted().where}, signal);
  $("one").hidden = false;
  show($("one"), el("h2", {}, "columns"), note(found.said), found.columns.flatMap((column) => [
    el("h3", {}, `${column.name} · ${column.kind}`),
    note([`${share(column.num_null, column.num_rows)} null`,
      column.num_distinct == null ? "" : `${exact(column.num_distinct)} distinct`,
      column.mean == null ? "" : `${column.measure}: mean ${value(column.mean)}, median ${value(column.quantiles[3])}`,
      ...column.frequent.map(([text, count]) => `${text} (${share(count, column.num_rows)})`)].filter(Boolean).join(" · ")),
    column.histogram && column.measure ? bins(column.histogram) : null]));
  say($("said"), "");
});

const difference = () => doing(async (signal) => {
  let found = await ask("difference", {}, signal);
  while (!found.lines) {
    say($("said"), "comparing: both datasets are read …");
    await new Promise((done) => setTimeout(done, 500));
    signal.throwIfAborted();
    found = await ask("difference", {}, signal);
  }
  $("one").hidden = false;
  show($("one"), el("h2", {}, "difference"), el("pre", {}, found.lines.join("\n")));
  say($("said"), "");
});

const steps = {
  first: () => { before = []; return go({place: "0.0"}); },
  previous: () => isFiltered() ? (before.length ? go({place: before.pop()}) : say($("said"), "this is the first page that was found"))
    : go({before: page.place}),
  next: () => page.next ? go({place: page.next}, true) : say($("said"), "this is the last page"),
  last: () => isFiltered() ? say($("said"), "the last page is not known while there is a condition") : go({last: 1}),
  sample: () => go({sample: samples += 1}, true),
  statistics, difference,
};
for (const [id, step] of Object.entries(steps)) $(id).addEventListener("click", step);

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  before = [];
  const row = $("row").value.replaceAll(/\D/g, "");
  go(row ? {row} : {place: "0.0"});
});

doing(async (signal) => {
  about = await ask("about", {}, signal);
  $("difference").hidden = !about.has_difference;
  await go({place: "0.0"});
});

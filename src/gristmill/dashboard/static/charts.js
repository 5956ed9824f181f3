// Charts over time by uPlot, and a table behind each of them.
import {colour, el, note, show, table} from "/static/dom.js";

export const PALETTE = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]]; // besides its colour each line has a pattern
const ROWS = 40;

// `lines` are {name, of: "c1" or a colour name, fill, dash}; data is [times, values...]. `stacked` lines are added up.
export function timeChart(title, lines, {format, stacked = false, most = null, height = 170}) {
  const plot = el("div", {class: "plot", role: "img", "aria-label": `${title}: a chart over time; the button shows it as a table`});
  const behind = el("div", {class: "behind", hidden: true});
  const button = el("button", {type: "button", class: "quiet", "aria-expanded": "false", onclick: flip}, "Table");
  const legend = el("ul", {class: "legend"});
  const box = el("section", {class: "card chart"}, el("h2", {}, title, button), legend, plot, behind);
  let chart = null, data = [[]], drawn = "";

  function flip() {
    behind.hidden = !behind.hidden;
    plot.hidden = !behind.hidden;
    button.setAttribute("aria-expanded", String(!behind.hidden));
    tabulate();
  }

  function tabulate() {
    if (behind.hidden) return;
    const step = Math.max(1, Math.ceil(data[0].length / ROWS));
    const at = data[0].map((_, i) => i).filter((i) => i % step === 0 || i === data[0].length - 1);
    show(behind, table(title, ["Time", ...lines.map((line) => line.name + "#")], at.map((i) =>
      [new Date(1000 * data[0][i]).toLocaleTimeString("en-GB"), ...lines.map((_, k) => data[k + 1][i] == null ? "–" : format(data[k + 1][i]))])));
  }

  function make() {
    chart?.destroy();
    chart = null;
    const axis = {stroke: colour("muted"), grid: {stroke: colour("rule"), width: 1}, ticks: {show: false},
      font: "11px system-ui, sans-serif"};
    const series = lines.map((line, i) => ({label: line.name, stroke: colour(line.of), width: stacked ? 0.5 : 1.5,
      dash: line.dash ?? (stacked ? [] : DASHES[i % DASHES.length]), fill: stacked || line.fill ? colour(line.of + "f") : undefined,
      points: {show: (_, k) => data[k].filter((v) => v != null).length === 1, size: 6, fill: colour(line.of)}})); // no line goes through one
    chart = new uPlot({width: plot.clientWidth || 400, height, cursor: {show: false}, legend: {show: false},
      padding: [8, 8, 0, 0],
      scales: {x: {range: (_, low, high) => high - low < 10 ? [low, low + 10] : [low, high]}, y: {range: (_, low, high) => [0, most ?? ((high || 1) * 1.08)]}},
      axes: [{...axis, size: 40, grid: {show: false}}, {...axis, size: 62, values: (_, ticks) => ticks.map((t) => format(t))}],
      series: [{}, ...series].map((s, i) => stacked && i ? {...s, label: lines[lines.length - i].name, stroke: colour(lines[lines.length - i].of), fill: colour(lines[lines.length - i].of)} : s)},
      summed(), plot);
    show(legend, lines.map((line) => el("li", {}, el("i", {class: `swatch ${line.of}`}), line.name)));
  }

  // Stacked: the sum of all first, then one less each time, so that every band stays visible.
  function summed() {
    if (!stacked) return data;
    const sums = [], total = new Float64Array(data[0].length);
    for (const values of data.slice(1)) {
      values.forEach((v, i) => { total[i] += v ?? 0; });
      sums.unshift(Array.from(total));
    }
    return [data[0], ...sums];
  }

  const watch = new ResizeObserver(() => chart && plot.clientWidth && chart.setSize({width: plot.clientWidth, height}));
  watch.observe(plot);
  addEventListener("theme", () => chart && make());
  return {box, set(given, newLines = lines) {
    lines = newLines;
    data = given;
    const key = lines.map((line) => line.name).join("\n");
    if (!data[0].length) return show(plot, note("No history yet."));
    if (!chart || key !== drawn) { show(plot); make(); drawn = key; } else chart.setData(summed());
    tabulate();
  }};
}

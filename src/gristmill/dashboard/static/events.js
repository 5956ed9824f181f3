// Events: what the scheduler and the run had to say, the latest first.
import {card, choices, el, note, show} from "/static/dom.js";
import {duration, exact} from "/static/words.js";

const AGAIN_S = 3;

export async function open(main, page) {
  const tools = el("div"), place = el("div");
  main.append(tools, place);
  let kind = "all", askedAt = 0;
  async function load() {
    askedAt = Date.now();
    const found = await page.ask("events", kind === "all" ? {} : {kind});
    const kinds = ["all", ...Object.keys(found.counts)];
    if (tools.dataset.kinds !== kinds.join()) {
      tools.dataset.kinds = kinds.join();
      show(tools, choices("Kinds", kinds, kind, (chosen) => { kind = chosen; load(); }, (k) => k === "all" ? k : `${k} ${exact(found.counts[k])}`));
    }
    show(place, card("What happened", found.events.length ? el("table", {class: "events"}, el("thead", {}, el("tr", {}, ["At#", "Kind", "What"].map((h) => el("th", {scope: "col", class: h.endsWith("#") && "n"}, h.replace("#", ""))))),
      el("tbody", {}, found.events.map((e) => el("tr", {"data-kind": e.kind}, el("td", {class: "n"}, duration(e.at_s)), el("td", {}, e.kind), el("td", {class: "source"}, e.text))))) : note(found.problem || "Nothing yet."),
    found.left_out ? note(`${exact(found.left_out)} earlier ones are not shown.`) : null));
  }
  await load();
  return {update() { if (page.live && Date.now() - askedAt > 1000 * AGAIN_S) load().catch(() => {}); }};
}

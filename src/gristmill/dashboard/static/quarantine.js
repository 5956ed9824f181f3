// Quarantine: what could not be processed, by stage and kind of error; each document with its traceback.
import {card, choices, el, note, show} from "/static/dom.js";
import {openDocument} from "/static/rejects.js";
import {exact} from "/static/words.js";

export async function open(main, page) {
  const groups = await page.ask("quarantine"), place = el("div");
  if (!groups.length) { main.append(note("Nothing is in quarantine.")); return {}; }

  async function load(group) {
    const {records} = await page.ask("quarantined", {stage: group.stage, kind: group.kind, message: group.message});
    show(place, card(`${group.kind} in ${group.stage}`, el("p", {class: "lead"}, group.message),
      group.traceback ? el("pre", {class: "traceback", tabindex: 0}, group.traceback) : null,
      el("table", {}, el("thead", {}, el("tr", {}, ["Document", "Where", "Error", ""].map((h) => el("th", {scope: "col"}, h)))),
        el("tbody", {}, records.map((r) => el("tr", {}, el("th", {scope: "row"}, r.id || "(no id)"), el("td", {class: "source"}, r.place), el("td", {class: "source"}, r.error),
          el("td", {}, el("button", {type: "button", class: "open", onclick: () => openDocument(page, r.ref)}, "Open")))))),
      group.documents > records.length ? note(`The first ${exact(records.length)} of ${exact(group.documents)}.`) : null));
  }
  main.append(el("div", {class: "sides"}, card("Errors", choices("Errors", groups, groups[0], load, (g) =>
    [el("span", {}, `${g.stage} · ${g.kind}`), el("b", {class: "n"}, exact(g.documents || g.lost_parts)), el("small", {}, g.message)])), place));
  await load(groups[0]);
  return {};
}

// Rejects: examples of what was dropped, by reason; the whole text on demand.
import {card, choices, el, note, show} from "/static/dom.js";
import {exact, value} from "/static/words.js";

// One document: a few lines of it and, if the run kept it, the rest.
export function example(found, page) {
  const text = el("div", {class: "text", dir: "auto"}, found.text || "(no text)");
  const more = found.ref == null ? null : el("button", {type: "button", class: "quiet", onclick: () => openDocument(page, found.ref)}, "Whole document");
  return el("article", {class: "example"}, el("header", {}, found.value == null ? null : el("b", {class: "n"}, value(found.value)),
    el("bdi", {class: "id"}, found.id || "(no id)"), el("bdi", {class: "source"}, found.source ?? ""), more), text);
}

// A document in a window of its own; Escape closes it.
export async function openDocument(page, ref) {
  const found = await page.ask("document", {ref}), opener = document.activeElement;
  const close = el("button", {type: "button", onclick: () => box.close()}, "Close");
  const box = el("dialog", {"aria-label": "Document"}, el("header", {}, el("b", {}, found.title), close),
    el("dl", {class: "facts"}, Object.entries(found.facts).flatMap(([name, given]) => [el("dt", {}, name), el("dd", {}, String(given))])),
    found.traceback ? el("pre", {class: "traceback", tabindex: 0}, found.traceback) : null,
    el("pre", {class: "text", dir: "auto", tabindex: 0}, found.text), found.cut ? note(`The first ${exact(found.text.length)} characters of ${exact(found.length)}.`) : null);
  box.addEventListener("close", () => { box.remove(); opener?.focus(); });
  document.body.append(box);
  box.showModal();
}

export async function open(main, page) {
  const reasons = await page.ask("reasons"), place = el("div");
  if (!reasons.length) { main.append(note("Nothing was dropped.")); return {}; }
  const first = reasons.find((r) => r.stage === page.at.stage && (r.reason === page.at.reason || !page.at.reason)) ?? reasons[0];

  async function load(reason) {
    const found = await page.ask("examples", {stage: reason.stage, reason: reason.reason});
    show(place, card(`${reason.reason} – ${exact(reason.documents)} documents dropped by ${reason.stage}`,
      found.examples.length ? found.examples.map((e) => example(e, page)) : note("No examples were kept. A run with --rejects DIR keeps every dropped document."), note(found.note)));
  }
  const most = Math.max(...reasons.map((r) => r.documents));
  main.append(el("div", {class: "sides"}, card("Reasons", choices("Reasons", reasons, first, load, (r) => {
    const part = el("i", {class: "dropped"});
    part.style.width = `${100 * r.documents / most}%`;
    return [el("span", {}, r.reason === r.stage ? r.reason : `${r.stage} · ${r.reason}`), el("b", {class: "n"}, exact(r.documents)), el("span", {class: "bar"}, part)];
  })), place));
  await load(first);
  return {};
}

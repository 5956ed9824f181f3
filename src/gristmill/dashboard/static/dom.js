// Elements are made here and nowhere else. Text goes in as text: nothing a run holds is ever read as markup.
import {visible} from "/static/words.js";

const SVG = "http://www.w3.org/2000/svg";

function fill(node, props, children) {
  for (const [name, given] of Object.entries(props)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), given);
    else if (given === true) node.setAttribute(name, "");
    else if (given !== false && given != null) node.setAttribute(name, given);
  }
  for (const child of children.flat()) if (child != null) node.append(child.nodeType ? child : visible(child));
  return node;
}

export const el = (tag, props = {}, ...children) => fill(document.createElement(tag), props, children);
export const svg = (tag, props = {}, ...children) => fill(document.createElementNS(SVG, tag), props, children);
export const $ = (id) => document.getElementById(id);

// Change a text only if it is another: the browser lays out again whatever is touched.
export function say(node, text) {
  text = visible(text);
  if (node.textContent !== text) node.textContent = text;
}

export function show(node, ...children) {
  node.replaceChildren(...children.flat().filter((child) => child != null));
  return node;
}

// Rows in place of others, of which those that are the same stay: the browser lays out again only what is new.
export function patch(body, rows) {
  rows.forEach((row, i) => {
    const there = body.children[i];
    if (!there) body.append(row);
    else if (!there.isEqualNode(row)) there.replaceWith(row);
  });
  while (body.children.length > rows.length) body.lastElementChild.remove();
}

// A table from rows of cells. A column whose name ends with # holds numbers.
export function table(caption, heads, rows, props = {}) {
  const numeric = heads.map((head) => head.endsWith("#"));
  return el("table", props,
    el("caption", {class: "hidden"}, caption),
    el("thead", {}, el("tr", {}, heads.map((head, i) =>
      el("th", {scope: "col", class: numeric[i] && "n"}, head.replace(/#$/, ""))))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, i) =>
      i ? el("td", {class: numeric[i] && "n"}, cell) : el("th", {scope: "row"}, cell))))));
}

export const card = (title, ...children) => el("section", {class: "card"}, el("h2", {}, title), ...children);
export const note = (text) => el("p", {class: "note"}, text);

// A list to choose from, by mouse or keyboard: `pick` is called with the item chosen.
export function choices(label, items, chosen, pick, draw) {
  const list = el("div", {class: "choices", role: "group", "aria-label": label});
  const buttons = items.map((item) => el("button", {type: "button", "aria-pressed": String(item === chosen),
    onclick: (event) => {
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === event.currentTarget)));
      pick(item);
    }}, draw(item)));
  return fill(list, {}, buttons);
}

// The colours of the theme as the canvas needs them: resolved.
let probe;
export function colour(name) {
  probe ??= document.body.appendChild(el("i", {class: "hidden"}));
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

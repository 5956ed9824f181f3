// Numbers, times and sizes in words, the same on every screen.
const thin = " ";
const grouped = new Intl.NumberFormat("en", {maximumFractionDigits: 0});

export const exact = (n) => grouped.format(n).replaceAll(",", thin);

export function count(n) {
  if (!Number.isFinite(n)) return "–";
  if (Math.abs(n) < 10000) return Math.abs(n) < 10 && n % 1 ? n.toFixed(1) : exact(n);
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]])
    if (Math.abs(n) >= size) return (n / size).toFixed(n / size < 100 ? 1 : 0) + thin + unit;
}

export function size(n) {
  if (!n) return "0" + thin + "B";
  const step = Math.min(4, Math.floor(Math.log10(Math.abs(n)) / 3));
  const value = n / 1000 ** step;
  return value.toFixed(step && value < 100 ? 1 : 0) + thin + ["B", "kB", "MB", "GB", "TB"][step];
}

export function duration(s) {
  if (s == null || !Number.isFinite(s)) return "–";
  if (s < 10) return s.toFixed(1) + thin + "s";
  if (s < 60) return s.toFixed(0) + thin + "s";
  const minutes = Math.floor(s / 60), two = (n) => String(Math.floor(n)).padStart(2, "0");
  return minutes < 60 ? `${minutes}:${two(s % 60)}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(s % 60)}`;
}

export function share(part, whole) {
  if (!whole) return "–";
  const percent = 100 * part / whole;
  return (percent && percent < 0.1 ? "<0.1" : percent < 10 ? percent.toFixed(1) : percent.toFixed(0)) + thin + "%";
}

// A measure: three significant digits, whole numbers whole.
export const value = (x) => x == null ? "–" : Number.isInteger(x) ? exact(x) : String(+x.toPrecision(3));

// What cannot be seen, or would turn the text around it, is shown as what it is.
export function visible(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (c) => c < " " ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

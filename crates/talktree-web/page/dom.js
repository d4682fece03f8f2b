// Nodes, times and numbers. Every text of the store becomes a text node here, and nothing else.

// Characters that turn the direction of what follows, or that nobody sees: they are shown as what they are.
const UNSEEN = /([\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}])/u;

export function el(name, props = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const node = document.createElement(tag || "div");
  if (classes.length) node.className = classes.join(" ");
  // Before `dir=auto`: with it, a browser looks for the direction of all texts at each one that is appended.
  for (const child of children.flat(2)) if (child != null && child !== false) node.append(child);
  for (const [key, value] of Object.entries(props)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== false && value != null) node.setAttribute(key, value === true ? "" : value);
  }
  return node;
}

export function svg(name, props = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(props)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// Nodes of a text from the store.
export function texts(text) {
  return String(text).split(UNSEEN).filter(Boolean).map((piece, at) =>
    UNSEEN.test(piece) && piece.length <= 2 ? el("span.unseen", {}, "U+" + piece.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")) : piece);
}

// A text on one line.
export function line(text, max = 160) {
  const short = String(text).replace(/\s+/g, " ").trim();
  return texts(short.length > max ? short.slice(0, max - 1).toWellFormed() + "…" : short);
}

export function button(label, onclick, props = {}) {
  return el("button", { type: "button", onclick, ...props }, label);
}

const ICONS = {
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zm5-2 5 5",
  filter: "M4 6h16M7 12h10M10 18h4",
  tree: "M7 20V4m0 11c0-6 10-2 10-9M7 4v0M17 5v0",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2v2m0 16v2M2 12h2m16 0h2M5 5l1.5 1.5m11 11L19 19M5 19l1.5-1.5m11-11L19 5",
  chart: "M5 20V10m7 10V4m7 16v-7",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1m2 4a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  eye: "M2 12s4-7 10-7 10 7 10 7-4 7-10 7-10-7-10-7zm10 3a3 3 0 1 0 0-6 3 3 0 0 0 0 6z",
  back: "M15 5l-7 7 7 7",
  next: "M9 5l7 7-7 7",
  more: "M4.5 12h1m6 0h1m6 0h1",
  up: "M6 15l6-6 6 6",
  down: "M6 9l6 6 6-6",
  pin: "M12 21v-6m-5 0h10l-2-4V5h1V3H8v2h1v6z",
  help: "M9 9a3 3 0 1 1 4 3c-1 .5-1 1-1 2m0 4h0",
};

export function icon(name) {
  const path = svg("path", { d: ICONS[name] });
  return svg("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, path);
}

export function iconButton(name, label, onclick, props = {}) {
  return button(icon(name), onclick, { class: "icon-button", "aria-label": label, title: label, ...props });
}

const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const UNITS = [[60, "second"], [3600, "minute"], [86400, "hour"], [604800, "day"]];
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const DATE = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const MINUTE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

// How long ago it was, or the date.
export function ago(time) {
  const then = new Date(time), seconds = (then - Date.now()) / 1000;
  for (let at = 0; at < UNITS.length; at++) {
    const unit = at ? UNITS[at - 1][0] : 1;
    if (Math.abs(seconds) < UNITS[at][0]) return RELATIVE.format(Math.round(seconds / unit), UNITS[at][1]);
  }
  return (then.getFullYear() === new Date().getFullYear() ? DAY : DATE).format(then);
}

export function timeOf(time) {
  return el("time", { datetime: time, title: MINUTE.format(new Date(time)) }, ago(time));
}

export function minute(time) {
  return MINUTE.format(new Date(time));
}

// The heading under which a list has a time.
export function period(time) {
  const then = new Date(time), today = new Date().setHours(0, 0, 0, 0);
  if (then >= today) return "Today";
  if (then >= today - 86400e3) return "Yesterday";
  if (then >= today - 6 * 86400e3) return "This week";
  return new Intl.DateTimeFormat(undefined, { month: "long", year: "numeric" }).format(then);
}

export function number(count) {
  return new Intl.NumberFormat().format(count);
}

export function short(count) {
  return new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 }).format(count);
}

export function plural(count, one, many = one + "s") {
  return `${number(count)} ${count === 1 ? one : many}`;
}

export function size(bytes) {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

export function money(costs) {
  return costs.filter(({ micros }) => micros > 0).map(({ micros, currency }) => {
    const amount = micros / 1e6;
    const digits = amount !== 0 && amount < 0.1 ? 4 : 2;
    try {
      return new Intl.NumberFormat(undefined, { style: "currency", currency, minimumFractionDigits: 2, maximumFractionDigits: digits }).format(amount);
    } catch {
      return `${amount.toFixed(digits)} ${currency}`;
    }
  }).join(" + ");
}

// What the address says: #s=SESSION&m=MESSAGE&leaf=..&raw=1, or #usage=1.
export function place() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

export function hashOf(params) {
  return "#" + new URLSearchParams(Object.entries(params).filter(([, value]) => value));
}

export function go(params) {
  location.hash = hashOf(params);
}

// Numbers the questions about one place of the page: an answer is shown only if nothing was asked since.
export function asker() {
  let last = 0;
  return () => {
    const mine = ++last;
    return () => mine === last;
  };
}

export const askMain = asker();

// Says something for a moment, also to a screen reader.
export function say(text) {
  const status = document.getElementById("status");
  status.textContent = text;
  status.classList.add("is-shown");
  clearTimeout(say.timer);
  say.timer = setTimeout(() => status.classList.remove("is-shown"), 4000);
}

export function dialog(title, ...content) {
  const node = el("dialog", { "aria-label": title, onclose: () => node.remove(), onclick: (event) => event.target === node && node.close() },
    el("header", {}, el("h2", {}, title), el("form", { method: "dialog" }, el("button.icon-button", { "aria-label": "Close" }, "✕"))),
    el("div.content", {}, ...content));
  document.body.append(node);
  node.showModal();
  return node;
}

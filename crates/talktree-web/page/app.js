// The page: what the address shows, the keys, light and dark, and what changes meanwhile.
import { api, isFile } from "./api.js";
import { closeConversation, markFound, move, openConversation, refresh, toEnd, toggleSelected, toggleTree, turnBranch } from "./conversation.js";
import { dialog, el, go, icon, iconButton, place, say } from "./dom.js";
import { buildSide, find, focusList, focusSearch, markCurrent, moveInList, refreshSessions, showCurrent } from "./sessions.js";
import { openUsage } from "./usage.js";

let start = { can_write: false };
let live = { session: null, close: () => {} };

async function route() {
  const now = place(), { hash } = location;
  document.body.classList.toggle("is-reading", Boolean(now.s || now.usage));
  markCurrent();
  showCurrent();
  listen(now.s ?? null);
  try {
    if (now.s) return await openConversation(now, start.can_write);
    closeConversation();
    if (now.usage) return await openUsage();
    document.title = "talktree";
    welcome();
  } catch (error) {
    if (location.hash !== hash) return;
    closeConversation();
    document.getElementById("main").replaceChildren(el("div.welcome", {}, el("h1", {}, "That did not work"), el("p", {}, error.message)));
  }
}

function welcome() {
  document.getElementById("main").replaceChildren(el("div.welcome", {}, icon("tree"), el("h1", {}, "Your conversations"),
    el("p", {}, "Choose one at the side, or press ", el("kbd", {}, "/"), " and search what anyone ever said. ", el("kbd", {}, "?"), " lists the keys."),
    start.owner ? el("p.about", {}, "Only conversations of ", el("bdi", {}, start.owner), " are shown.") : null,
    el("p.about", {}, start.can_write ? "This page may change the store." : "This page only reads.")));
}

function listen(session) {
  if (live.isOpen && live.session === session) return;
  live.close();
  live = { session, isOpen: true, close: api.live(session, (changed) => {
    if (changed.list || changed.session) refreshSessions();
    if (changed.session) refresh().catch((error) => say(error.message));
  }) };
}

const KEYS = [
  ["j  k", "the next or previous message, or row of the list", { j: () => step(1), k: () => step(-1) }],
  ["h  l", "the branch before or after, at this message", { h: () => turnBranch(-1), l: () => turnBranch(1) }],
  ["Enter", "open a row of the list, or, while you search, the first one"],
  ["Esc", "leave the search, or close a window"],
  ["/", "search", { "/": focusSearch }],
  ["o", "open or close tools, thoughts and summaries of a message", { o: toggleSelected }],
  ["g  G", "the beginning or the end of the conversation", { g: () => toEnd(false), G: () => toEnd(true) }],
  ["b", "show or hide the branches", { b: toggleTree }],
  ["s", "to the list of conversations", { s: () => (document.body.classList.remove("is-reading"), focusList()) }],
  ["u", "usage", { u: () => isFile || go({ usage: 1 }) }],
  ["t", "light or dark", { t: turnTheme }],
  ["?", "these keys", { "?": help }],
];
const step = (by) => moveInList(by) || move(by) || focusList();
const ACTIONS = Object.assign({}, ...KEYS.map(([, , actions]) => actions));

function help() {
  dialog("Keys", el("dl.keys", {}, KEYS.map(([keys, what]) => [el("dt", {}, keys.split("  ").map((key) => el("kbd", {}, key))), el("dd", {}, what)])));
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
  const action = ACTIONS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function turnTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const next = (document.documentElement.dataset.theme ?? system) === "dark" ? "light" : "dark";
  setTheme(next === system ? "auto" : next);
}

function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // A file may have no storage.
  }
}

try {
  setTheme(localStorage.getItem("theme") ?? "auto");
} catch {
  // The same.
}
buildSide([
  isFile ? null : el("a.icon-button", { href: "#usage=1", "aria-label": "Usage", title: "Usage (u)" }, icon("chart")),
  iconButton("sun", "Light or dark (t)", turnTheme),
  iconButton("help", "Keys (?)", help),
], markFound);
addEventListener("hashchange", route);
addEventListener("keydown", pressed);
start = await api.start();
await Promise.all([find(), route()]);
showCurrent();
if (isFile && !place().s) go({ s: (await api.sessions()).sessions[0].id });

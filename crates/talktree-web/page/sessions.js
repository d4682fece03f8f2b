// The side: the list of sessions with its filters, and, as somebody types, what a search finds.
import { api, isFile } from "./api.js";
import { ago, asker, button, el, hashOf, icon, iconButton, line, period, place, plural, say, short, texts, timeOf } from "./dom.js";

const DEBOUNCE = 120;

const ask = asker();

const side = { filters: {}, after: null, reading: null, shown: "", known: { owner: new Set(), source: new Set(), model: new Set(), tag: new Set() } };

export function buildSide(tools, onFound) {
  const search = el("input", { type: "search", id: "search", placeholder: isFile ? "Search this conversation" : "Search everything", "aria-label": "Search", value: place().q, autocomplete: "off", spellcheck: "false", oninput: typed, onkeydown: moved });
  side.list = el("div.scroll", { id: "sessions", onscroll: listScrolled });
  side.form = filterForm();
  document.getElementById("side").append(
    el("header.bar", {}, el("a.brand", { href: "#" }, icon("tree"), "talktree"), el("div.tools", {}, tools)),
    el("div.search", {}, icon("search"), search, el("kbd", {}, "/"), isFile ? null : iconButton("filter", "Filters", toggleFilters, { "aria-expanded": "false", id: "filters" })),
    side.form, side.list);
  [side.search, side.onFound] = [search, onFound];
}

function filterForm() {
  const field = (name, label, input) => el("label", {}, el("span", {}, label), input ?? el("input", { name, list: "known-" + name, autocomplete: "off", onclick: (event) => event.currentTarget.showPicker?.() }));
  const state = el("select", { name: "state" }, [["", "All"], ["open", "Open"], ["ended", "Ended"], ["trash", "In the trash"]].map(([value, label]) => el("option", { value }, label)));
  const changed = () => {
    side.filters = Object.fromEntries([...new FormData(form)].filter(([, value]) => value));
    // The day is meant to the end of it.
    if (side.filters.until) side.filters.until += "T23:59:59Z";
    document.getElementById("filters").classList.toggle("is-on", Object.keys(side.filters).length > 0);
    find();
  };
  const lists = Object.keys(side.known).map((name) => el("datalist", { id: "known-" + name }));
  const form = el("form.filters", { hidden: true, onchange: changed, onsubmit: (event) => (event.preventDefault(), changed()) },
    field("name", "Name"), field("owner", "Owner"), field("source", "Source"), field("model", "Model"), field("tag", "Tag"), field("state", "State", state),
    field("since", "Last message from", el("input", { type: "date", name: "since" })), field("until", "Last message to", el("input", { type: "date", name: "until" })),
    button("Clear", () => (form.reset(), changed()), { class: "quiet" }), lists);
  return form;
}

function toggleFilters() {
  side.form.hidden = !side.form.hidden;
  document.getElementById("filters").setAttribute("aria-expanded", String(!side.form.hidden));
  if (!side.form.hidden) api.sessions({ limit: 200 }).then(({ sessions }) => sessions.forEach(know), (error) => say(error.message));
}

// What there is to filter by.
function know(session) {
  for (const [name, known] of Object.entries(side.known)) {
    for (const value of name === "tag" ? session.tags ?? [] : [session[name]]) {
      if (!value || known.has(value) || known.size > 200) continue;
      known.add(value);
      side.form.querySelector("#known-" + name).append(el("option", { value }));
    }
  }
}

// Reads the list anew. The focus stays on its row.
async function loadSessions() {
  const isLast = (side.isLast = ask());
  try {
    const found = await api.sessions(side.filters);
    if (!isLast() || side.search.value.trim()) return;
    side.after = found.after;
    side.period = null;
    const { id } = side.list.contains(document.activeElement) ? document.activeElement.dataset : {};
    side.list.replaceChildren(...rows(found.sessions));
    if (id) [...side.list.querySelectorAll(".session")].find((row) => row.dataset.id === id)?.focus({ preventScroll: true });
    if (!found.sessions.length) side.list.append(el("p.empty", {}, Object.keys(side.filters).length ? "No conversation meets the filters." : "There is no conversation yet."));
    markCurrent();
  } catch (error) {
    say(error.message);
  }
}

// Reads the list anew when something changed, unless somebody searches or has scrolled.
export function refreshSessions() {
  if (!side.search.value.trim() && side.list.scrollTop < 400) loadSessions();
}

function listScrolled() {
  const { scrollTop, clientHeight, scrollHeight } = side.list;
  if (scrollTop + clientHeight > scrollHeight - 800) readOn();
}

// Reads a page at a time: who asks meanwhile waits for it.
function readOn(limit) {
  return (side.reading ??= readPage(limit).finally(() => (side.reading = null)));
}

async function readPage(limit) {
  if (!side.after || side.search.value.trim()) return;
  const { isLast } = side;
  try {
    const found = await api.sessions({ ...side.filters, after: side.after, limit });
    if (!isLast()) return;
    side.after = found.after;
    side.list.append(...rows(found.sessions));
    markCurrent();
  } catch (error) {
    say(error.message);
  }
}

export function titleOf(session) {
  return session.name ?? session.preview ?? session.title ?? session.id;
}

function rows(sessions) {
  const nodes = [];
  for (const session of sessions) {
    know(session);
    const at = session.last_message_at ?? session.created_at;
    if (side.period !== period(at)) nodes.push(el("h2.period", {}, (side.period = period(at))));
    const chips = [session.owner, session.source, session.model, ...(session.tags ?? [])].filter(Boolean);
    nodes.push(el("a.session", { href: hashOf({ s: session.id }), "data-id": session.id },
      el("span.title", { dir: "auto", class: session.name ? "title" : "title is-quoted" }, session.is_pinned ? icon("pin") : null, line(titleOf(session), 120)),
      el("span.about", {}, `${ago(at)} · ${plural(session.messages, "message")} `, chips.map((text) => el("span.chip", { title: text }, line(text, 28))))));
  }
  return nodes;
}

export function markCurrent() {
  const { s, m } = place();
  for (const node of side.list.querySelectorAll(".session, .hit")) {
    const isCurrent = node.dataset.id === s && (!node.dataset.message || node.dataset.message === m);
    if (isCurrent) node.setAttribute("aria-current", "true");
    else node.removeAttribute("aria-current");
  }
}

// Brings the row of what is open into view. Of a link it may be further down: so far the list is read on.
export async function showCurrent() {
  const row = () => side.list.querySelector("[aria-current]");
  for (let pages = 0; place().s && side.after && !row() && pages < 5; pages++) await readOn(200);
  row()?.scrollIntoView({ block: "nearest" });
}

function typed() {
  clearTimeout(side.timer);
  side.timer = setTimeout(find, DEBOUNCE);
}

// Shows what the search finds, or the list. One search at a time: what was typed meanwhile is searched next.
export function find() {
  clearTimeout(side.timer);
  side.isStale = true;
  return (side.finding ??= findAll());
}

async function findAll() {
  while (side.isStale) {
    side.isStale = false;
    const query = side.search.value.trim();
    try {
      if (query) await findNow(query);
      else await loadSessions();
      side.shown = query;
      if (!query) side.words = [];
      if ((place().q ?? "") !== query) history.replaceState(null, "", hashOf({ ...place(), q: query }));
      side.onFound();
    } catch (error) {
      say(error.message);
    }
  }
  side.finding = null;
}

async function findNow(query) {
  // The last word may not be typed to its end. So many words begin with three letters that a search of a million messages takes 130 ms, not 20.
  const isBeginning = /[\p{L}\p{N}]{4}$/u.test(query) && !/[":]\S*$|(^|\s)-\S*$/.test(query);
  ask();
  const search = (q, propose) => api.search({ ...side.filters, q, session: isFile ? place().s : null, propose });
  let found = isBeginning && await search(query + "*");
  if (!found?.hits?.length) found = await search(query, true);
  const { hits, sessions, about } = found;
  const groups = Map.groupBy(hits, (hit) => hit.session);
  if (about.steps.length) about.notices.push("Little or nothing was found as it is written; there are also:");
  const nodes = [...about.notices, ...about.steps].slice(0, 6).map((text) => el("p.notice", {}, line(text, 300)));
  if (about.is_partial) nodes.push(el("p.notice", {}, "The search ran out of time; there may be more."));
  for (const [id, hits] of groups) {
    const session = sessions[id] ?? { id };
    nodes.push(el("section.group", {},
      el("h2", {}, el("a", { href: hashOf({ s: id, q: query }), dir: "auto" }, line(titleOf(session), 90)), el("span.about", {}, ago(session.last_message_at ?? session.created_at))),
      hits.map((hit) => hitRow(hit, query))));
  }
  if (!hits.length) nodes.push(el("p.empty", {}, Object.keys(side.filters).length ? "Nothing was found in the conversations that meet the filters." : "Nothing was found."));
  if (about.alternatives.length) nodes.push(el("p.notice", {}, "This finds something:"), ...about.alternatives.map(([widening, query]) =>
    el("p.notice", {}, button(line(query, 80), () => ((side.search.value = query), find())), " ", widening)));
  side.words = [...new Set(hits.flatMap((hit) => hit.pieces).flatMap(([text, isMatch]) => isMatch ? [text] : []))].sort((a, b) => b.length - a.length);
  side.list.replaceChildren(...nodes);
  side.list.scrollTop = 0;
  markCurrent();
}

// Letters of scripts that have spaces between words.
const LETTERS = /^(?:[^\P{L}\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}]|\p{N}){2}$/u;

// Returns where a text has words that the search found: whole ones, as those of `camelCase` are.
export function foundIn(text) {
  if (!side.words?.length) return [];
  const isInside = (at) => LETTERS.test(text.slice(at - 1, at + 1)) && !/\p{Ll}\p{Lu}/u.test(text.slice(at - 1, at + 1));
  const words = side.words.map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join("|");
  const all = [...text.matchAll(new RegExp(words, "giu"))].map(({ index, 0: word }) => [index, index + word.length]);
  return all.filter((ends) => !ends.some(isInside));
}

function hitRow(hit, query) {
  // What is in a tool is JSON there.
  const plain = (text) => texts((hit.in_tools ? text.replace(/\\[nrt]/g, " ").replace(/\\(["\\/])/g, "$1") : text).replace(/\s+/g, " "));
  const where = [!hit.on_path && "another branch", hit.under && "under a summary", hit.in_tools && "in a tool", hit.hidden && "hidden"].filter(Boolean);
  return el("a.hit", { href: hashOf({ s: hit.session, m: hit.id, raw: hit.under ? 1 : null, q: query }), "data-id": hit.session, "data-message": hit.id },
    el("span.about", {}, el("span.role", {}, line(hit.role, 20)), timeOf(hit.at), where.map((text) => el("span.where", {}, text))),
    el("span.snippet", { dir: "auto" }, hit.pieces.map(([text, isMatch]) => isMatch ? el("mark", {}, plain(text)) : plain(text))));
}

// The arrows go through the list while the search has the focus.
async function moved(event) {
  if (event.key === "Escape") {
    side.search.value = "";
    side.search.blur();
    find();
  } else if (event.key === "ArrowDown" || event.key === "Enter") {
    event.preventDefault();
    if (side.search.value.trim() !== side.shown) await find();
    if (side.search.value.trim() !== side.shown) return;
    const first = side.list.querySelector("a.hit, a.session");
    if (event.key === "Enter") first?.click();
    first?.focus();
  }
}

// Moves the focus in the list; returns whether it was there.
export function moveInList(by) {
  const rows = [...side.list.querySelectorAll("a.hit, a.session")];
  const at = rows.indexOf(document.activeElement);
  if (at < 0) return false;
  (rows[at + by] ?? rows[at]).focus();
  return true;
}

export function focusList() {
  (side.list.querySelector("[aria-current]") ?? side.list.querySelector("a.hit, a.session"))?.focus();
}

export function focusSearch() {
  document.body.classList.remove("is-reading");
  side.search.focus();
  side.search.select();
}

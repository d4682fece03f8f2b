// A conversation: the messages around a place, its branches, its summaries, and what a model saw.
import { api, isFile } from "./api.js";
import { askMain, asker, button, dialog, el, go, hashOf, icon, iconButton, line, minute, money, number, place, plural, say, short, size, texts, timeOf } from "./dom.js";
import { codeBlock, link, markdown } from "./markdown.js";
import { foundIn, titleOf } from "./sessions.js";
import { drawTree, outline } from "./tree.js";

const PAGE = 60;
// How many messages are in the document at most.
const WINDOW = 240;
// How far from an end the next page is read, in pixels.
const NEAR = 1_500;

let view = null;

export async function openConversation({ s, m, leaf, raw, summaries }, canWrite) {
  const main = document.getElementById("main"), isLast = askMain();
  const isSame = view?.session === s;
  if (isSame && !view.isStale && view.leaf === (leaf ?? null) && view.raw === Boolean(raw) && m && nodeOf(m)) {
    view.isLast = isLast;
    return show(m);
  }
  const [about, page] = await Promise.all([isSame && !view.isStale ? view.about : api.session({ session: s }), api.messages({ session: s, around: m, leaf, raw, summaries, limit: PAGE })]);
  if (!isLast()) return;
  view = { session: s, isLast, about, outlined: outline(about.tree), canWrite, items: [], marked: isSame ? view.marked : null, ...pageOf(page) };
  view.items = page.messages;
  view.list = el("div.messages", { role: "feed", "aria-label": "Messages" });
  view.list.append(...page.messages.map(article));
  view.top = el("header.bar.conversation", {});
  view.scroller = el("div.scroll", { id: "scroller", onscroll: textScrolled, tabindex: -1 }, el("div.column", {}, view.list));
  main.replaceChildren(view.top, view.scroller);
  document.title = `${titleOf(about.info)} · talktree`;
  drawTop();
  drawBranches();
  if (m) show(nodeOf(m) ? m : page.around);
  else {
    view.scroller.scrollTop = view.scroller.scrollHeight;
    if (page.messages.length) select(view.list.lastChild, !isSame && !document.activeElement.matches("input"));
  }
  watcher.disconnect();
  watcher.observe(view.list, { childList: true, subtree: true });
  markFound();
  fill();
}

export function closeConversation() {
  askMain();
  view = null;
  document.body.classList.remove("has-tree");
  document.getElementById("tree").replaceChildren();
}

function pageOf({ leaf, raw, before, after, total, head }) {
  return { leaf, raw, before, after, total, head };
}

function drawTop() {
  const { info, usage } = view.about;
  const about = [usage && money(usage.costs), info.model, info.source, info.owner].filter(Boolean).join(" · ");
  const mode = (isRaw, label, title) => button(label, () => turn({ raw: isRaw ? 1 : null }), { "aria-pressed": String(view.raw === isRaw), title });
  view.place = el("span.place", {});
  view.top.replaceChildren(
    iconButton("back", "Back to the list", () => document.body.classList.remove("is-reading"), { class: "icon-button narrow" }),
    el("div.heading", {}, el("h1", { dir: "auto" }, line(titleOf(info), 140)), el("p.about", {}, view.place, about ? " · " : "", line(about, 200))),
    el("div.tools", {},
      view.about.tree.segments.some((segment) => segment.hidden || segment.compactions?.length) || view.raw ? el("div.switch", { role: "group", "aria-label": "What is shown" }, mode(false, "Model’s view", "With summaries, as a model sees it"), mode(true, "Everything", "As it was said, hidden messages too")) : null,
      iconButton("up", "To the beginning (g)", () => toEnd(false)), iconButton("down", "To the end (G)", () => toEnd(true)),
      view.canWrite ? iconButton("more", "Change the conversation", changeSession) : null,
      view.outlined.hasMore ? iconButton("tree", "Branches (b)", toggleTree) : null));
  placed();
}

export function toggleTree() {
  if (view && !view.outlined.hasMore) return say("This conversation has one branch.");
  document.body.classList.toggle(innerWidth < 1000 ? "shows-tree" : "hides-tree");
}

function drawBranches() {
  const open = (leaf, anchor) => {
    document.body.classList.remove("shows-tree");
    turn({ leaf: leaf === view.head ? null : leaf, m: anchor });
  };
  document.body.classList.toggle("has-tree", view.outlined.hasMore);
  document.getElementById("tree").replaceChildren(...drawTree(view.outlined, view.leaf, open), iconButton("back", "Close", toggleTree, { class: "icon-button narrow close" }));
  document.querySelector("#tree [aria-current]")?.scrollIntoView({ block: "nearest" });
}

// Goes to another leaf, message or way of reading; what is not named stays.
function turn({ leaf = view.leaf, raw = view.raw ? 1 : null, m = topItem(raw), summaries = view.raw && !raw ? 1 : null }) {
  view.turned = true;
  const next = hashOf({ s: view.session, m, leaf, raw, summaries, q: place().q });
  if (location.hash === next) openConversation(place(), view.canWrite);
  else location.hash = next;
}

// The id at the top; where no summaries are shown, it is that of the first message of one.
function topItem(isRaw) {
  const item = view.items.find((item) => item.id === topMessage()?.dataset.id);
  return isRaw && item?.compaction ? item.compaction.first : item?.id;
}

// ---- the window of messages

async function textScrolled() {
  placed();
  await fill();
}

async function fill() {
  if (!view || view.isLoading) return;
  const { scroller } = view;
  const isNearTop = view.before && scroller.scrollTop < NEAR;
  const isNearEnd = view.after && scroller.scrollTop + scroller.clientHeight > scroller.scrollHeight - NEAR;
  if (!isNearTop && !isNearEnd) return;
  const now = view;
  view.isLoading = true;
  try {
    await load(isNearTop);
  } catch (error) {
    say(error.message);
    now.before = now.after = false;
  } finally {
    now.isLoading = false;
  }
  if (view === now) fill();
}

async function load(isBefore) {
  const now = view, { session, leaf, raw, items } = view;
  const cursor = isBefore ? { before: items[0].id } : { after: items.at(-1).id };
  const page = await api.messages({ session, leaf, raw: raw ? 1 : null, limit: PAGE, ...cursor });
  if (view !== now) return;
  const anchor = topMessage(), top = anchor?.getBoundingClientRect().top;
  const nodes = page.messages.map(article);
  if (isBefore) {
    view.list.prepend(...nodes);
    view.items = [...page.messages, ...items];
    view.before = page.before;
    while (view.items.length > WINDOW) view.items.pop(), view.list.lastChild.remove(), (view.after = true);
  } else {
    view.list.append(...nodes);
    view.items = [...items, ...page.messages];
    view.after = page.after;
    while (view.items.length > WINDOW) view.items.shift(), view.list.firstChild.remove(), (view.before = true);
  }
  view.total = page.total;
  // What is read stays where it is.
  if (anchor?.isConnected) view.scroller.scrollTop += anchor.getBoundingClientRect().top - top;
}

function topMessage() {
  const edge = view.scroller.getBoundingClientRect().top;
  return [...view.list.children].find((node) => node.getBoundingClientRect().bottom > edge + 40);
}

function placed() {
  cancelAnimationFrame(placed.frame);
  placed.frame = requestAnimationFrame(() => {
    if (!view) return;
    // That of the selected message, if it is seen.
    const { top, bottom } = view.scroller.getBoundingClientRect(), box = selected()?.getBoundingClientRect();
    const at = [...view.list.children].indexOf(box && box.bottom > top && box.top < bottom ? selected() : topMessage());
    if (at < 0) return;
    view.place.textContent = `${number(view.items[at].position)} of ${number(view.total)}`;
  });
}

export function toEnd(isEnd) {
  if (!view) return;
  const isThere = isEnd ? !view.after : !view.before;
  if (isThere) view.scroller.scrollTop = isEnd ? view.scroller.scrollHeight : 0;
  else if (isEnd) go({ s: view.session, leaf: view.leaf, raw: view.raw ? 1 : null, q: place().q, at: "end" + Date.now() });
  else turn({ m: view.outlined.start, summaries: view.raw ? null : 1 });
}

function nodeOf(id) {
  return [...view.list.children].find((node) => node.dataset.id === id);
}

function show(id) {
  const node = nodeOf(id);
  if (!node) return;
  node.scrollIntoView({ block: view.turned ? "start" : "center" });
  if (view.turned) view.scroller.scrollTop -= 24;
  view.sought = !view.turned && place().q ? id : null;
  markFound();
  view.turned = false;
  select(node);
  node.classList.remove("is-found");
  requestAnimationFrame(() => node.classList.add("is-found"));
}

function select(node, isFocused = true) {
  for (const other of view.list.querySelectorAll(":scope > .is-selected")) other.classList.remove("is-selected");
  node.classList.add("is-selected");
  if (isFocused) node.focus({ preventScroll: true });
  placed();
}

const watcher = new MutationObserver(() => markFound());

// Marks the words that the search found. In the message that was opened the first one is brought into view, out of what is closed.
export function markFound() {
  if (!view || !CSS.highlights) return;
  const ranges = [];
  for (const body of view.list.querySelectorAll(".body")) {
    const texts = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
    for (let node; (node = texts.nextNode()); ) {
      for (const [startOffset, endOffset] of foundIn(node.data)) {
        ranges.push(new StaticRange({ startContainer: node, startOffset, endContainer: node, endOffset }));
      }
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
  const node = view.sought && nodeOf(view.sought);
  if (!node) return;
  const has = (node) => ranges.find((range) => node.contains(range.startContainer));
  const first = has(node), all = [...node.querySelectorAll("details")], isClosed = all.some((details) => !details.open);
  for (const details of all) details.open = !first || Boolean(has(details));
  if (first || !isClosed) view.sought = null;
  first?.startContainer.parentElement.scrollIntoView({ block: "center" });
}

function selected() {
  return view.list.querySelector(":scope > .is-selected");
}

// Goes to the next or the previous message; returns whether a conversation is shown.
export function move(by) {
  if (!view) return false;
  const next = selected() ? (by > 0 ? selected().nextElementSibling : selected().previousElementSibling) : topMessage();
  if (next) select(next);
  next?.scrollIntoView({ block: "nearest" });
  return true;
}

// The next or the previous branch, at the selected message or the nearest branch point above it.
export function turnBranch(by) {
  if (!view) return;
  const items = view.items, from = items.findIndex((item) => item.id === (selected() ?? topMessage())?.dataset.id);
  const at = [...items.keys()].slice(0, from + 1).reverse().concat([...items.keys()].slice(from + 1)).find((at) => view.outlined.branchAt(items[at].id));
  if (at != null) toSibling(view.outlined.branchAt(items[at].id), by);
}

function toSibling({ at, siblings }, by) {
  const next = siblings[(at + by + siblings.length) % siblings.length];
  turn({ leaf: view.outlined.leafBelow(next), m: view.outlined.first(next) });
}

// Reads what a program wrote meanwhile.
export async function refresh() {
  if (!view) return;
  const now = view, { session, leaf, raw } = view;
  const about = await api.session({ session });
  if (!now.isLast()) return;
  now.about = about;
  now.outlined = outline(now.about.tree);
  drawTop();
  drawBranches();
  if (now.after) return;
  const page = await api.messages({ session, leaf, raw: raw ? 1 : null, limit: PAGE });
  if (!now.isLast()) return;
  const { scroller } = now, isAtEnd = scroller.scrollTop + scroller.clientHeight > scroller.scrollHeight - 80;
  const first = now.items.findIndex((item) => item.id === page.messages[0]?.id);
  if (first < 0) return openConversation({ s: session, leaf, raw: raw ? 1 : null }, now.canWrite);
  [now.total, now.head] = [page.total, page.head];
  for (const mark of now.list.querySelectorAll(".mark.head")) mark.hidden = mark.closest("article").dataset.id !== now.head;
  const kept = now.items.slice(first);
  page.messages.forEach((message, at) => {
    if (JSON.stringify(kept[at]) === JSON.stringify(message)) return;
    const node = article(message);
    if (kept[at]) now.list.children[first + at].replaceWith(node);
    else now.list.append(node);
  });
  while (now.list.children.length > first + page.messages.length) now.list.lastChild.remove();
  now.items = [...now.items.slice(0, first), ...page.messages];
  if (isAtEnd) scroller.scrollTop = scroller.scrollHeight;
  placed();
}

// ---- a message

function article(message) {
  const { about } = view;
  const labels = about.labels.filter((label) => label.id === message.id).map((label) => label.name);
  const tags = Object.hasOwn(about.tags, message.id) ? about.tags[message.id] : [];
  if (message.compaction) return summary(message);
  const who = message.author ?? message.role;
  const head = el("header", {},
    el("span.who", { dir: "auto" }, line(who, 60)), message.author ? el("span.role", {}, line(message.role, 20)) : null,
    timeOf(message.at), message.model ? el("span.model", {}, line(message.model, 40)) : null,
    el("span.mark.head", { hidden: message.id !== view.head }, "head"),
    el("span.mark.first", { hidden: message.id !== view.marked }, "first to summarise"),
    labels.map((label) => el("span.mark.label", {}, line(label, 40))), tags.map((tag) => el("span.mark.tag", {}, line(tag, 40))),
    branchNav(message.id), actions(message));
  const body = el("div.body", {}, paired(message.parts).map(([part, at]) => partNode(part, message.id, at)));
  const attributes = { "data-id": message.id, tabindex: -1, "aria-label": `${who}, ${minute(message.at)}`, onclick: (event) => event.currentTarget.parentNode === view.list && select(event.currentTarget) };
  if (!message.hidden) return el("article.message", { ...attributes, class: `message is-${message.role}` }, head, body);
  return el("article.message.is-hidden", attributes, el("details", {}, el("summary", {}, "Hidden ", line(message.role, 20), " message"), head, body));
}

function branchNav(id) {
  const branch = view.outlined.branchAt(id);
  if (!branch) return null;
  const { at, siblings } = branch;
  return el("span.branch", { role: "group", "aria-label": "Branches" },
    iconButton("back", "The branch before (h)", (event) => (event.stopPropagation(), toSibling(branch, -1))),
    el("span", {}, `${at + 1}/${siblings.length}`),
    iconButton("next", "The next branch (l)", (event) => (event.stopPropagation(), toSibling(branch, 1))));
}

function actions(message) {
  const address = hashOf({ s: view.session, m: message.id, leaf: view.leaf, raw: view.raw ? 1 : null });
  return el("span.actions", {},
    message.role === "assistant" && !isFile ? iconButton("eye", "What the model saw", () => openSeen(message)) : null,
    view.canWrite ? iconButton("more", "Change", () => change(message)) : null,
    el("a.icon-button", { href: address, "aria-label": "Link to this message", title: "Copy the link to this message", onclick: copyLink }, icon("link")));
}

async function copyLink(event) {
  event.preventDefault();
  const address = event.currentTarget.href;
  history.replaceState(null, "", address);
  try {
    await navigator.clipboard.writeText(address);
    say("The link is copied.");
  } catch {
    say("The address of the page is the link.");
  }
}

// The parts with their places; a call with its result, if they are in one message, is one of them.
function paired(parts) {
  const calls = new Map(), all = [];
  parts.forEach((part, at) => {
    const call = part.kind === "tool" && part.input == null ? calls.get(part.call) : null;
    if (call && !part.cut) return Object.assign(call, { output: part.output, error: part.error });
    const shown = { ...part };
    if (part.kind === "tool") calls.set(part.call, shown);
    all.push([shown, at]);
  });
  return all;
}

function partNode(part, message, at) {
  const more = part.cut ? cutNote(part, message, at) : null;
  switch (part.kind) {
    case "text":
      return [part.text ? markdown(part.text) : null, more];
    case "reasoning":
      return part.text.trim() ? el("details.reasoning", {}, el("summary", {}, "Thought"), lazily(() => [markdown(part.text), more])) : null;
    case "tool":
      return tool(part, more);
    case "file":
      return file(part, message, at);
    default:
      return el("details.tool", {}, el("summary", {}, line(part.name, 60)), lazily(() => [json(part.json ?? ""), more]));
  }
}

// What is closed costs nothing until it is opened.
function lazily(make) {
  const node = el("div.inner");
  queueMicrotask(() => node.parentNode?.addEventListener("toggle", () => node.childNodes.length || node.append(...[make()].flat().filter(Boolean))));
  return node;
}

function tool(part, more) {
  const state = part.error != null ? "failed" : "";
  const name = part.name || (part.output != null || part.error != null ? "result" : "tool");
  const title = part.input != null && part.input !== "{}" ? brief(part.input) : part.error ?? brief(part.output ?? "");
  const section = (label, text) => text == null ? null : [el("h4", {}, label), json(text)];
  return el("details.tool", { class: part.error != null ? "tool is-failed" : "tool" },
    el("summary", {}, el("span.name", {}, line(name, 60)), el("span.hint", {}, line(title, 90)), state ? el("span.state", {}, state) : null),
    lazily(() => [section("Input", part.input), section("Result", part.output), section("Error", part.error), more].flat(2)));
}

// JSON on one line for people: what it holds, with names where there are several.
function brief(text) {
  const shown = (value) => typeof value === "string" ? value : JSON.stringify(value);
  try {
    const value = JSON.parse(text), pairs = value?.constructor === Object ? Object.entries(value) : [];
    if (typeof value === "string") return brief(value);
    return pairs.length > 1 ? pairs.map(([name, value]) => `${name}: ${shown(value)}`).join(", ") : shown(pairs[0]?.[1] ?? value);
  } catch {
    return text;
  }
}

function json(text) {
  let shown = text, language = "";
  try {
    const value = JSON.parse(text);
    if (typeof value === "string") shown = value;
    else [shown, language] = [JSON.stringify(value, null, 2), "json"];
  } catch {
    // It is cut, or no JSON.
  }
  return codeBlock(shown, language);
}

function cutNote(part, message, at) {
  return el("p.cut", {}, "Only the beginning is shown. ", el("a", { href: api.partAddress(view.session, message, at), target: "_blank" }, `Show all (${size(part.cut)})`));
}

function file(part, message, at) {
  const name = part.name ?? part.type;
  const address = part.bytes ? part.url ?? api.partAddress(view.session, message, at) : null;
  const label = [el("span", {}, line(name, 80)), el("span.about", {}, line(part.type, 60))];
  if (part.image) {
    const image = el("img", { src: address, alt: part.name ?? "An image", loading: "lazy", onerror: () => figure.replaceWith(el("div.file", {}, label)) });
    const figure = el("figure", {}, image, part.name ? el("figcaption", {}, line(name, 80)) : null);
    return figure;
  }
  if (address) return el("a.file", { href: address, download: part.name ?? "file" }, label);
  return el("div.file", {}, /^(https?|mailto):/i.test(part.url ?? "") ? link(part.url, label) : label);
}

function summary(message) {
  const { id, count, last } = message.compaction;
  const inner = el("div.opened", { hidden: true });
  const show = async (after) => {
    const { messages, more } = await api.expand({ session: view.session, compaction: id, after, limit: PAGE });
    if (!inner.isConnected) return;
    inner.querySelector(":scope > .cut")?.remove();
    inner.append(...messages.map(article));
    if (more) inner.append(button("Show more", () => show(messages.at(-1).id), { class: "cut" }));
  };
  const toggle = button(`Open ${plural(count, "message")}`, async () => {
    if (!inner.childNodes.length) await show();
    inner.hidden = !inner.hidden;
    toggle.setAttribute("aria-expanded", String(!inner.hidden));
    toggle.textContent = inner.hidden ? `Open ${plural(count, "message")}` : "Close";
  }, { "aria-expanded": "false", class: "open" });
  return el("article.message.is-summary", { "data-id": message.id, tabindex: -1, "aria-label": `Summary of ${plural(count, "message")}`, onclick: (event) => event.currentTarget.parentNode === view.list && select(event.currentTarget) },
    el("header", {}, el("span.who", {}, "Summary"), el("span", {}, `of ${plural(count, "message")}`), timeOf(message.at), branchNav(last),
      view.canWrite ? button("Remove", () => write("uncompact", { compaction: id }), { class: "quiet" }) : null),
    el("div.body", {}, message.parts.map((part, at) => partNode(part, message.id, at))), toggle, inner);
}

// Opens what is closed in the selected message, or closes it.
export function toggleSelected() {
  const node = view && selected();
  if (!node) return;
  const summary = node.querySelector(":scope > .open");
  if (summary) return summary.click();
  const closed = [...node.querySelectorAll("details")];
  const isOpen = closed.some((details) => details.open);
  for (const details of closed) details.open = !isOpen;
}

// ---- what the model saw

const FORMS = [["", "As text"], ["anthropic", "Anthropic"], ["openai-chat", "OpenAI chat"], ["openai-responses", "OpenAI responses"]];

async function openSeen(message) {
  const content = el("div");
  const tabs = FORMS.map(([form, label]) => button(label, () => draw(form), { role: "tab", "data-form": form }));
  const ask = asker();
  dialog("What the model saw", el("div.switch", { role: "tablist" }, tabs), content).classList.add("is-wide");
  draw("");

  async function draw(form) {
    for (const tab of tabs) tab.setAttribute("aria-selected", String(tab.dataset.form === form));
    const isLast = ask(), seen = await api.seen({ session: view.session, message: message.id, provider: form });
    if (!view || !isLast()) return;
    const changed = seen.blocks.filter((block) => block.then !== block.now);
    const count = (test) => seen.messages.filter(test).length;
    const since = [[count(isUnder), "went under a summary"], [count((message) => message.state === "removed"), "was removed"]];
    const changes = since.filter(([count]) => count).map(([count, what]) => `${plural(count, "message")} ${count > 1 ? what.replace("was", "were") : what}`);
    if (changed.length) changes.push(`${plural(changed.length, "text")} of the prompt changed`);
    const intro = el("p.intro", {}, how(seen.is_recorded),
      ` ${minute(seen.at)}: ${plural(seen.count, "message")}, about ${short(seen.tokens)} tokens. `,
      changes.length ? `Since then ${changes.join(", ")}.` : "A model would see the same messages today.",
      seen.tools.length ? ` Tools: ${line(seen.tools.join(", "), 400)}.` : "");
    if (form) return content.replaceChildren(intro, codeBlock(JSON.stringify(seen.request, null, 2), "json"));
    const texts_ = changed.map((block) => el("div.changed", {}, el("h3", {}, line(block.label, 60)), el("div.sides", {}, side("Then", block.then), side("Now", block.now))));
    content.replaceChildren(intro,
      seen.prompt ? el("details.tool", {}, el("summary", {}, "Prompt ", seen.is_recorded ? how(seen.is_prompt_exact) : null), el("div.inner", {}, codeBlock(seen.prompt, ""))) : el("p.about", {}, "No prompt is stored with the conversation."),
      ...texts_,
      seen.left_out ? el("p.cut", {}, `${number(seen.left_out)} earlier messages are not listed.`) : "",
      el("div.messages", {}, seen.messages.map((message) => {
        if (!message.id) return el("p.cut", {}, "A message or a summary that was removed since.");
        const node = article(message);
        node.querySelector("header .actions")?.remove();
        node.querySelector("header .branch")?.remove();
        node.querySelector("header").append(el("span.about", {}, `${short(message.tokens)} tokens`), isUnder(message) ? el("span.mark.gone", {}, "now under a summary") : "",
          seen.is_recorded && message.state !== "exact" ? how(false) : "");
        return node;
      })));
  }

  function how(isExact) {
    const why = isExact ? "A record of the request was stored with the answer." : "It was not recorded. It is reconstructed from the messages, summaries and texts of that time.";
    return el("span.mark.label", { title: why }, isExact ? "exact" : "reconstructed");
  }

  function isUnder(message) {
    return message.id && message.gone && !message.hidden;
  }

  function side(label, text) {
    return el("div", {}, el("h4", {}, label), el("div.plain", { dir: "auto" }, text == null ? "—" : texts(text)));
  }
}

// ---- what may be changed, with --write

// Writes. What is refused is said in the dialog, which stays open with what was typed.
async function write(verb, fields, node) {
  const now = view;
  try {
    await api.write(verb, { session: now.session, ...fields });
    node?.close();
    now.isStale = true;
    if (verb === "compact") now.marked = null;
    const isMoved = ["checkout", "undo"].includes(verb);
    if (now.isLast()) await openConversation({ s: now.session, leaf: isMoved ? null : now.leaf, raw: now.raw ? 1 : null, m: topItem(true), summaries: now.raw ? null : 1 }, now.canWrite);
    say(verb === "checkout" ? "Done. The conversation’s own menu undoes it." : "Done.");
  } catch (error) {
    if (node?.open) node.querySelector(".fault").textContent = error.message;
    else say(error.message);
  }
}

function writeDialog(title, rows) {
  const fault = el("p.fault", { role: "alert" });
  const row = (verb, label, fields = () => ({}), ...inputs) =>
    el("form.row", { onsubmit: (event) => (event.preventDefault(), (fault.textContent = ""), write(verb, fields(), node)) }, inputs, el("button", {}, label));
  const node = dialog(title, ...rows(row, () => node.close()), fault);
}

function markFirst(id) {
  view.marked = id;
  for (const mark of view.list.querySelectorAll(".mark.first")) mark.hidden = mark.closest("article").dataset.id !== id;
}

function change(message) {
  const label = el("input", { name: "label", placeholder: "A name", "aria-label": "Label" });
  const text = el("textarea", { rows: 5, placeholder: "What should a model read in place of these messages?", "aria-label": "Summary" });
  const labels = view.about.labels.filter((label) => label.id === message.id);
  const from = view.marked;
  writeDialog("Change", (row, close) => [
    row("checkout", "Continue here", () => ({ message: message.id }), el("span.about", {}, "The next message is appended below this one.")),
    row("label", "Label", () => ({ message: message.id, name: label.value }), label),
    labels.map(({ name }) => row("unlabel", `Remove “${name}”`, () => ({ name }))),
    from ? row("compact", "Summarise", () => ({ first: from, last: message.id, summary: text.value }), el("span", {}, "What is between the marked message and this one:"), text) : null,
    el("div.row", {}, button(from ? "Mark this one instead" : "Mark as the first to summarise", () => (close(), markFirst(message.id), say("Now choose the last message to summarise."))), from ? null : el("span.about", {}, "Then choose the last one.")),
  ].flat().filter(Boolean));
}

function changeSession() {
  const { info } = view.about;
  const name = el("input", { value: info.name ?? "", "aria-label": "Name" });
  writeDialog("Change the conversation", (row) => [
    row("rename", "Rename", () => ({ name: name.value }), name),
    row("undo", "Undo “Continue here”", undefined, el("span.about", {}, "The next message is appended where it was before.")),
    row(info.is_pinned ? "unpin" : "pin", info.is_pinned ? "Take the pin away" : "Pin", undefined, el("span.about", {}, "No rule discards what is pinned.")),
    info.deleted_at ? row("restore", "Restore") : row("trash", "Put into the trash"),
  ]);
}

// What the page asks: the server, or the session that this file holds. Both answer alike.

const inside = JSON.parse(document.getElementById("data").textContent);

// How much of a part a file shows at once: as much as the server, MAX_TEXT in `view.rs`.
const MAX_SHOWN = 20_000;

export const isFile = inside !== null;

export const api = isFile ? ofFile(inside) : ofServer();

function ofServer() {
  const get = (name) => async (params = {}) => {
    const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value != null && value !== "" && value !== false));
    return answer(`api/${name}?${query}`);
  };
  async function answer(address, options) {
    const response = await fetch(address, options).catch(() => {
      throw new Error("The server has ended. Start `talktree serve` again, and open the address that it prints.");
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    return answer;
  }
  const names = ["start", "sessions", "search", "session", "messages", "expand", "usage", "seen"];
  return {
    ...Object.fromEntries(names.map((name) => [name, get(name)])),
    write: async (verb, fields) => answer("api/write", { method: "POST", body: JSON.stringify({ verb, ...fields }) }),
    partAddress: (session, message, part) => `api/part?${new URLSearchParams({ session, message, part })}`,
    live(session, changed) {
      let events = null, before = document.hidden ? {} : null;
      const heard = (event) => {
        const now = JSON.parse(event.data);
        if (before) changed({ list: String(now.list) !== String(before.list), session: String(now.session) !== String(before.session) });
        before = now;
      };
      // A browser has few connections to a server: a tab that nobody sees has none, and asks once it is seen.
      const turn = () => {
        events?.close();
        if (document.hidden) return;
        events = new EventSource(`api/live?${new URLSearchParams(session ? { session } : {})}`);
        events.onmessage = heard;
      };
      document.addEventListener("visibilitychange", turn);
      turn();
      return () => {
        document.removeEventListener("visibilitychange", turn);
        events?.close();
      };
    },
  };
}

function ofFile({ info, messages, tree, head, compactions = [], elisions = [], labels = [], tags = [] }) {
  const byId = new Map(messages.map((message) => [message.id, message]));
  // The messages with a marker in place of a tool's result, as a model reads them.
  const elided = new Map();
  for (const { message: id, call, marker } of elisions) {
    const message = elided.get(id) ?? byId.get(id);
    const parts = message.parts.map((part) => part.kind === "tool" && part.call === call && part.output != null ? { ...part, output: JSON.stringify(marker) } : part);
    elided.set(id, { ...message, parts });
  }
  const summaries = new Map(compactions.map((it) => ["compaction_" + it.id, it]));
  const real = (id) => summaries.get(id)?.last ?? id;
  const textOf = (message) => message.parts.filter((part) => part.kind === "text").map((part) => part.text).join("\n");
  const textsOf = (part) => [part.text, part.input, part.output, part.error, part.json].filter(Boolean).join("\n\n");
  const uncut = new Map();
  const whole = (message) => message.parts.map((part) => uncut.get(part) ?? textsOf(part)).join("\n");
  for (const part of new Set([...messages, ...elided.values()].flatMap((message) => message.parts))) {
    const text = textsOf(part);
    if (text.length <= MAX_SHOWN) continue;
    uncut.set(part, text);
    part.cut = text.length;
    for (const name of ["text", "input", "output", "error", "json"]) part[name] = part[name]?.slice(0, MAX_SHOWN).toWellFormed();
  }
  for (const mark of tree.segments.flatMap((segment) => segment.landmarks)) mark.preview = textOf(byId.get(mark.id) ?? { parts: [] }).slice(0, 60);

  function path(leaf) {
    const path = [];
    for (let at = byId.get(real(leaf)); at; at = byId.get(at.parent)) path.push(at);
    return path.reverse();
  }

  // The path with summaries in place of what they replace: of several that end at a message, the one that reaches furthest back.
  function shown(path, isRaw, allowed = compactions) {
    if (isRaw) return path;
    const places = new Map(path.map((message, at) => [message.id, at]));
    const ends = new Map();
    for (const it of allowed) {
      const first = places.get(it.first), last = places.get(it.last);
      if (first != null && last != null && !(ends.get(last)?.first <= first)) ends.set(last, { first, it });
    }
    const items = [];
    for (let at = path.length - 1; at >= 0; at--) {
      const end = ends.get(at);
      if (end) items.push(asMessage(end.it)), at = end.first;
      else if (!path[at].hidden) items.push(elided.get(path[at].id) ?? path[at]);
    }
    return items.reverse();
  }

  function asMessage(it) {
    const { id, first, last, count } = it;
    return { id: "compaction_" + id, role: "assistant", at: it.created_at, parts: [{ kind: "text", text: it.summary }], compaction: { id, first, last, count } };
  }

  function covers(compaction, id) {
    const ids = compaction ? path(compaction.last).map((message) => message.id) : [];
    return ids.includes(id) && ids.indexOf(id) >= ids.indexOf(compaction.first);
  }

  const children = Map.groupBy(messages, (message) => message.parent);
  function leafOf(id) {
    let at = id;
    for (let next; (next = children.get(at)); ) at = next.at(-1).id;
    return at;
  }

  return {
    start: async () => ({ can_write: false }),
    sessions: async () => ({ sessions: [{ ...info, messages: messages.length, last_message_at: messages.at(-1)?.at, preview: null }], after: null }),
    session: async () => ({ info: { ...info, messages: messages.length }, tree, labels, tags: tagsOf(), usage: null }),
    async messages({ leaf, raw, around, before, after, summaries, limit = 60 }) {
      if (around && summaries) around = shown(path(leaf ?? head), false).find((item) => item.id === around || covers(item.compaction, around))?.id ?? around;
      const places = around ? [[leaf, raw], [leaf, true], [leafOf(real(around)), raw], [leafOf(real(around)), true]] : [[leaf, raw]];
      for (const [leaf, raw] of places) {
        const items = shown(path(leaf ?? head), raw);
        const at = (id) => items.findIndex((message) => message.id === id);
        let from = Math.max(0, items.length - limit), to = items.length;
        if (around && at(around) < 0) continue;
        if (around) [from, to] = [Math.max(0, at(around) - limit / 2), at(around) + limit / 2];
        if (before) [from, to] = [Math.max(0, at(before) - limit), at(before)];
        if (after) [from, to] = [at(after) + 1, at(after) + 1 + limit];
        const places = new Map(path(leaf ?? head).map((message, at) => [message.id, at + 1]));
        // What is looked for is shown as it is stored, as the server does.
        const asked = (item) => (item.id === around && byId.get(around)) || item;
        const page = items.slice(from, to).map((item) => ({ ...asked(item), position: places.get(real(item.id)) }));
        return { leaf: leaf ?? null, raw: Boolean(raw), messages: page, before: from > 0, after: to < items.length, total: places.size, head, around };
      }
      throw new Error("there is no such message");
    },
    async expand({ compaction, after, limit }) {
      const it = summaries.get("compaction_" + compaction);
      const range = path(it.last);
      const inner = compactions.filter((other) => it.nested?.includes(other.id));
      const items = shown(range.slice(range.findIndex((message) => message.id === it.first)), false, inner);
      const from = items.findIndex((item) => item.id === after) + 1;
      return { messages: items.slice(from, from + limit), more: from + limit < items.length };
    },
    async search({ q }) {
      const words = q.toLowerCase().replace(/[*"]/g, "").split(/\s+/).filter(Boolean);
      const onPath = new Set(path(head).map((message) => message.id));
      const found = messages.filter((message) => words.every((word) => whole(message).toLowerCase().includes(word))).slice(-100).reverse();
      const hits = found.map((message) => {
        const text = whole(message), lower = text.toLowerCase();
        const start = Math.max(0, lower.indexOf(words[0]) - 60);
        const pieces = [];
        let at = start;
        for (let end = start + 200; at < Math.min(end, text.length); ) {
          const next = words.map((word) => [lower.indexOf(word, at), word.length]).filter(([place]) => place >= 0 && place < end).sort((a, b) => a[0] - b[0])[0];
          if (!next) next_(end, false);
          else next_(next[0], false), next_(next[0] + next[1], true);
        }
        function next_(to, isMatch) {
          if (to > at) pieces.push([text.slice(at, to).toWellFormed(), isMatch]);
          at = Math.max(at, to);
        }
        const under = compactions.find((it) => covers(it, message.id));
        return { session: info.id, id: message.id, role: message.role, at: message.at, pieces, on_path: onPath.has(message.id), under: under?.id ?? null, in_tools: !words.some((word) => textOf(message).toLowerCase().includes(word)), hidden: message.hidden };
      });
      return { hits, sessions: { [info.id]: info }, about: { steps: [], notices: [], alternatives: [] } };
    },
    partAddress: (_, message, at) => URL.createObjectURL(new Blob([uncut.get(byId.get(message).parts[at])], { type: "text/plain;charset=utf-8" })),
    live: () => () => {},
  };

  function tagsOf() {
    const all = Object.create(null);
    for (const { message, tag } of tags) (all[message] ??= []).push(tag);
    return all;
  }
}

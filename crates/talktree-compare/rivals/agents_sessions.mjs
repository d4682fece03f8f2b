// `agents/sessions`, the successor: the Sessions capability, bound to a stand-in for the storage of a Durable Object
// with the few services it needs.

import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

import { Storage, versions } from "./storage.mjs";
import { load, message, require, run } from "./tasks.mjs";

const { Sessions } = await load("agents-sessions/sessions");
const built = dirname(dirname(require.resolve("agents-sessions/sessions")));
// The function that `Lifecycle.use()` calls; no public module exports it under its name.
const file = readdirSync(built).find((name) => /^capability-[^-]+\.js$/.test(name));
const bind = Object.values(await import(pathToFileURL(join(built, file)))).find(
  (member) => member.name === "bindLifecycleCapability",
);

class Chat {
  static async open(folder, isFull) {
    const chat = new Chat();
    chat.storage = new Storage(folder, isFull);
    const sessions = new Sessions();
    const ready = Promise.resolve();
    bind(sessions, { storage: chat.storage, events: { emit() {} }, ready: () => ready });
    await sessions.onStart();
    chat.session = sessions.session();
    return chat;
  }

  append(entry) {
    return this.session.appendMessage(message(entry));
  }

  async fill(entries) {
    this.storage.db.exec("BEGIN");
    for (const one of entries) await this.append(one);
    this.storage.db.exec("COMMIT");
  }

  history() {
    return this.session.getHistory();
  }

  async last(count) {
    const last = [];
    for await (const one of this.session.history({ newestFirst: true })) {
      last.push(one);
      if (last.length === count) break;
    }
    return last.reverse();
  }

  branch(at, entry) {
    return this.session.appendMessage(message(entry), { parentId: at });
  }

  compact(first, last, summary) {
    return this.session.addCompaction(summary, first, last);
  }

  async search(word, limit) {
    return (await this.session.search(word, { limit })).map((hit) => hit.content);
  }

  close() {
    this.storage.close();
  }
}

await run({
  versions: `agents 0.32.0, ${versions()}`,
  lacks: { "fork-small": "has no forks", fork: "has no forks" },
  notes: {
    append: "keeps no index before the first search",
    "append-full": "keeps no index before the first search",
    branch: "keeps no index before the first search",
    "search-first": "builds the whole index",
  },
  longest: 10_001,
  open: Chat.open,
});

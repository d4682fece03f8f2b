// `agents/experimental/memory/session`: a SessionManager and one of its sessions, over a `sql` tag.

import { Storage, versions } from "./storage.mjs";
import { load, message, run } from "./tasks.mjs";

const { SessionManager } = await load("agents-0.22/experimental/memory/session");

class Chat {
  constructor(folder, isFull) {
    this.storage = new Storage(folder, isFull);
    this.sql = (strings, ...values) => this.storage.rows(strings.join("?"), values);
    this.manager = SessionManager.create(this);
    const first = this.sql`SELECT name FROM sqlite_schema WHERE name = ${"assistant_sessions"}`;
    // A fork is updated later than its chat, so the chat is found by its name.
    this.id = first.length > 0
      ? this.sql`SELECT id FROM assistant_sessions WHERE name = ${"chat"}`[0].id
      : this.manager.create("chat").id;
    this.session = this.manager.getSession(this.id);
  }

  append(entry) {
    return this.session.appendMessage(message(entry));
  }

  // `appendMessage` scans the whole search table for the id, so a large store is filled by INSERTs into its tables.
  async fill(entries) {
    await this.session.getHistory();
    this.storage.transactionSync(() => {
      let parent = null;
      for (const one of entries) {
        const { id, role, text } = one;
        this.sql`INSERT INTO assistant_messages (id, session_id, parent_id, role, content)
                 VALUES (${id}, ${this.id}, ${parent}, ${role}, ${JSON.stringify(message(one))})`;
        this.sql`INSERT INTO assistant_fts (id, session_id, role, content)
                 VALUES (${id}, ${this.id}, ${role}, ${text})`;
        parent = id;
      }
    });
  }

  history() {
    return this.session.getHistory();
  }

  async last(count) {
    return (await this.session.getRecentHistory(0, count)).messages;
  }

  branch(at, entry) {
    return this.session.appendMessage(message(entry), at);
  }

  async fork(at) {
    return (await this.manager.fork(this.id, at, "fork")).id;
  }

  async forkLength(id) {
    return (await this.manager.getSession(id).getHistory()).length;
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
  versions: `agents 0.22.0, ${versions()}`,
  lacks: {},
  notes: {
    last: "walks the whole path",
    "last-cold": "walks the whole path",
    "search-huge": "filled by INSERTs into its tables, because its append slows down as the store grows",
    "search-common": "filled by INSERTs into its tables, because its append slows down as the store grows",
  },
  longest: 10_001,
  open: (folder, isFull) => new Chat(folder, isFull),
});

// better-sqlite3 in the form that each generation expects: a `sql` tag, and the storage of a Durable Object.
// Statements are cached by their text.

import { join } from "node:path";

import { require } from "./tasks.mjs";

const Database = require("better-sqlite3");
export const versions = () => {
  const sqlite = new Database(":memory:").prepare("SELECT sqlite_version()").pluck().get();
  const version = require("better-sqlite3/package.json").version;
  return `better-sqlite3 ${version}, SQLite ${sqlite}, node ${process.version}`;
};

export class Storage {
  #statements = new Map();

  constructor(folder, isFull) {
    this.db = new Database(join(folder, "store.db"));
    this.db.pragma("journal_mode = WAL");
    this.db.pragma(`synchronous = ${isFull ? "FULL" : "NORMAL"}`);
    this.sql = { exec: (query, ...params) => this.#exec(query, params) };
  }

  statement(query) {
    let statement = this.#statements.get(query);
    if (!statement) {
      statement = this.db.prepare(query);
      this.#statements.set(query, statement);
    }
    return statement;
  }

  /** Runs a statement and returns its rows. */
  rows(query, params) {
    const statement = this.statement(query);
    if (statement.reader) return statement.all(params);
    statement.run(params);
    return [];
  }

  #exec(query, params) {
    const statement = this.statement(query);
    const bound = params.map((value) => (value instanceof ArrayBuffer ? Buffer.from(value) : value));
    const rows = statement.reader ? statement.all(bound) : [];
    const rowsWritten = statement.reader ? 0 : statement.run(bound).changes;
    return {
      rowsWritten,
      toArray: () => rows,
      one: () => {
        if (rows.length !== 1) throw new Error(`${rows.length} rows instead of one`);
        return rows[0];
      },
      [Symbol.iterator]: () => rows[Symbol.iterator](),
    };
  }

  transactionSync(task) {
    if (this.db.inTransaction) return this.db.transaction(task)();
    this.statement("BEGIN IMMEDIATE").run();
    try {
      const answer = task();
      this.statement("COMMIT").run();
      return answer;
    } catch (error) {
      this.statement("ROLLBACK").run();
      throw error;
    }
  }

  #keys() {
    this.db.exec("CREATE TABLE IF NOT EXISTS key_value (key TEXT PRIMARY KEY, value TEXT)");
  }

  async get(key) {
    this.#keys();
    const value = this.statement("SELECT value FROM key_value WHERE key = ?").pluck().get(key);
    return value === undefined ? undefined : JSON.parse(value);
  }

  async put(key, value) {
    this.#keys();
    this.statement("INSERT OR REPLACE INTO key_value VALUES (?, ?)").run(key, JSON.stringify(value));
  }

  close() {
    this.db.close();
  }
}

// PostgresSessionProvider of the Cloudflare Agents SDK, on the server whose URL TALKTREE_TEST_POSTGRES holds: what
// `just bench-postgres` prints at the end. Its tables go into a schema of their own, which is dropped at the end.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const TEXT = "Can we deploy on Friday, please?";
// How many messages a chat has before it is measured.
const MESSAGES = 1_000;
// The customer creates the tables: these columns and indexes its documents ask for.
const TABLES = `
  DROP SCHEMA IF EXISTS bench_cloudflare CASCADE;
  CREATE SCHEMA bench_cloudflare;
  SET search_path TO bench_cloudflare;
  CREATE TABLE assistant_messages (
    session_id TEXT NOT NULL, id TEXT NOT NULL, parent_id TEXT, role TEXT NOT NULL, content TEXT NOT NULL, text_content TEXT NOT NULL,
    created_at TIMESTAMPTZ DEFAULT NOW(),
    content_tsv TSVECTOR GENERATED ALWAYS AS (to_tsvector('english', text_content)) STORED,
    PRIMARY KEY (session_id, id));
  CREATE INDEX ON assistant_messages (parent_id);
  CREATE INDEX ON assistant_messages (session_id);
  CREATE INDEX ON assistant_messages USING GIN (content_tsv);
  CREATE TABLE assistant_compactions (
    id TEXT PRIMARY KEY, session_id TEXT NOT NULL, summary TEXT NOT NULL, from_message_id TEXT NOT NULL, to_message_id TEXT NOT NULL,
    created_at TIMESTAMPTZ DEFAULT NOW())`;

const require = createRequire(join(process.env.RIVALS, "index.js"));
const { PostgresSessionProvider } = await import(pathToFileURL(require.resolve("agents/experimental/memory/session")));
const { Client } = require("pg");

const url = new URL(process.env.TALKTREE_TEST_POSTGRES);
const client = new Client({
  user: url.username || "postgres",
  password: decodeURIComponent(url.password) || undefined,
  database: url.pathname.slice(1) || "postgres",
  host: url.searchParams.getAll("host").at(-1) ?? url.hostname,
  port: Number(url.port) || 5432,
});
await client.connect();
await client.query(TABLES);

let ids = 0;
const message = () => ({ id: `message-${(ids += 1)}`, role: "user", parts: [{ type: "text", text: TEXT }] });

/** A chat with so many messages, each the parent of the next. */
async function filled(name, count) {
  const provider = new PostgresSessionProvider(client, name);
  let parent = null;
  for (let at = 0; at < count; at += 1) {
    const next = message();
    await provider.appendMessage(next, parent);
    parent = next.id;
  }
  return provider;
}

async function timed(task, work, rounds) {
  await work();
  const times = [];
  for (let round = 0; round < rounds; round += 1) {
    const start = performance.now();
    await work();
    times.push(performance.now() - start);
  }
  times.sort((a, b) => a - b);
  const [median, late] = [times[rounds >> 1], times[Math.floor((rounds - 1) * 0.95)]];
  console.log(`${"cloudflare".padEnd(20)} ${task.padEnd(36)} ${median.toFixed(3).padStart(9)} ms ${late.toFixed(3).padStart(9)} ms`);
}

const { agents } = JSON.parse(readFileSync(join(process.env.RIVALS, "package.json"), "utf8")).dependencies;
console.log(`\nagents ${agents}; ${MESSAGES} messages`);
const chat = await filled("chat", MESSAGES);
const bulk = await filled("bulk", 10_000);
await client.query("ANALYZE");
await timed("append", () => chat.appendMessage(message()), 100);
await timed("the whole history, for the last 20", () => chat.getHistory(), 20);
await timed("history of 10 000", () => bulk.getHistory(), 9);
await timed("search in one session", () => bulk.searchMessages("deploy Friday", 10), 9);
await client.query("DROP SCHEMA bench_cloudflare CASCADE");
await client.end();

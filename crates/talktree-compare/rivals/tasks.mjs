// The tasks of src/tasks.rs, for the rivals written in JavaScript.

import { cpSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const plan = JSON.parse(readFileSync(process.argv[2], "utf8"));
const messages = JSON.parse(readFileSync(plan.texts, "utf8"));
const now = () => Number(process.hrtime.bigint()) / 1e9;
const print = (line) => process.stdout.write(JSON.stringify(line) + "\n");

/** Resolves modules in the folder where the rivals are installed. */
export const require = createRequire(join(process.env.RIVALS, "index.js"));
export const load = (name) => import(pathToFileURL(require.resolve(name)));
export const message = ({ id, role, text }) => ({ id, role, parts: [{ type: "text", text }] });
export const textOf = (item) => item.parts[0].text;

function expect(isTrue, what) {
  if (!isTrue) throw new Error(what);
}

function checkHistory(history, count, last) {
  const text = history.length > 0 ? textOf(history.at(-1)) : "";
  expect(history.length === count && text === messages[last].text, `${history.length} messages, expected ${count}; last ${text}`);
}

function checkHits(found, word, expected) {
  expect(
    found.length === Math.min(expected, plan.hits) && found.every((text) => text.includes(word)),
    `${found.length} hits for ${word}`,
  );
}

function folder(name) {
  const path = join(plan.folder, name);
  mkdirSync(path);
  return path;
}

function copy(of, name) {
  const path = folder(name);
  cpSync(of, path, { recursive: true });
  return path;
}

/**
 * Times a task: one round to warm up, then at least five rounds and enough to fill `plan.seconds`. After ten times
 * `plan.seconds` no further round begins, except the first that counts. A cold task has no round to warm up.
 */
async function repeat(task, check, isWarmedUp = true) {
  const times = [];
  const begin = now();
  let spent = 0;
  for (let round = 0; round <= 500; round++) {
    const start = now();
    const answer = await task();
    const time = now() - start;
    await check(answer);
    if (round === 0 && isWarmedUp) continue;
    const isLate = now() - begin > 10 * plan.seconds;
    times.push(time);
    spent += time;
    if (isLate || (times.length >= 5 && spent >= plan.seconds)) break;
  }
  return times;
}

/** Runs all tasks and prints their times. */
export async function run(rival) {
  print({ versions: rival.versions });
  const wants = (task) => plan.only.length === 0 || plan.only.includes(task);
  const does = (task) => wants(task) && !(task in rival.lacks);
  for (const [task, why] of Object.entries(rival.lacks)) if (wants(task)) print({ task, why });
  const report = (task, times) => {
    times.sort((a, b) => a - b);
    print({ task, seconds: times[Math.floor(times.length / 2)], rounds: times.length, note: rival.notes[task] });
  };
  const using = async (path, isFull, task) => {
    const chat = await rival.open(path, isFull);
    try {
      return await task(chat);
    } finally {
      await chat.close();
    }
  };
  const filled = (name, count) => {
    const path = folder(name);
    return using(path, false, (chat) => chat.fill(messages.slice(0, count))).then(() => path);
  };
  const appends = async (chat, messages) => {
    const start = now();
    for (const one of messages) await chat.append(one);
    return (now() - start) / messages.length;
  };

  // Append.
  let large;
  if (does("append")) {
    const times = [];
    const begin = now();
    for (let round = 0; round < plan.rounds; round++) {
      large = folder(`append-${round}`);
      await using(large, false, async (chat) => {
        times.push(await appends(chat, messages.slice(0, plan.large)));
        checkHistory(await chat.history(), plan.large, plan.large - 1);
      });
      if (now() - begin > 20) break;
    }
    report("append", times);
  } else {
    large = await filled("large", plan.large);
  }
  const small = await filled("small", plan.small);

  // Other writes.
  const next = messages.slice(plan.large, plan.large + plan.deep);
  const begin = now();
  const writes = { "append-deep": [], "append-full": [], branch: [] };
  for (let round = 0; round < plan.rounds; round++) {
    if (does("append-deep")) {
      await using(copy(large, `deep-${round}`), false, async (chat) => {
        await chat.last(1);
        if (does("search")) await chat.search(plan.usual, plan.hits);
        writes["append-deep"].push(await appends(chat, next));
        const count = Math.min(plan.large + plan.deep, rival.longest ?? Infinity);
        checkHistory(await chat.history(), count, plan.large + plan.deep - 1);
      });
    }
    if (does("append-full")) {
      await using(folder(`full-${round}`), true, async (chat) => {
        writes["append-full"].push(await appends(chat, messages.slice(0, plan.deep)));
        checkHistory(await chat.history(), plan.deep, plan.deep - 1);
      });
    }
    if (does("branch")) {
      await using(copy(large, `branch-${round}`), false, async (chat) => {
        const middle = messages[plan.large / 2 - 1].id;
        const start = now();
        for (const one of next) await chat.branch(middle, one);
        writes.branch.push((now() - start) / plan.deep);
        checkHistory(await chat.history(), plan.large / 2 + 1, plan.large + plan.deep - 1);
      });
    }
    if (now() - begin > 20) break;
  }
  for (const [task, times] of Object.entries(writes)) if (times.length > 0) report(task, times);

  // Reads.
  const reads = [
    [small, plan.small, "history-small", "resume-small", (chat) => chat.history()],
    [large, plan.large, "history", "resume", (chat) => chat.history()],
    [large, plan.large, "last", "last-cold", (chat) => chat.last(plan.recent)],
  ];
  for (const [path, count, warm, cold, read] of reads) {
    const shown = warm === "last" ? plan.recent : count;
    if (does(warm)) {
      await using(path, false, async (chat) => {
        report(warm, await repeat(() => read(chat), (history) => checkHistory(history, shown, count - 1)));
      });
    }
    if (does(cold)) {
      const times = await repeat(
        async () => {
          const chat = await rival.open(path, false);
          return [chat, await read(chat)];
        },
        async ([chat, history]) => {
          checkHistory(history, shown, count - 1);
          await chat.close();
        },
        false,
      );
      report(cold, times);
    }
  }
  if (does("compacted")) {
    await using(copy(large, "compacted"), false, async (chat) => {
      const covered = Math.floor((plan.large - plan.uncovered) / plan.compactions);
      for (let number = 0; number < plan.compactions; number++) {
        const [first, end] = [number * covered, (number + 1) * covered];
        await chat.compact(messages[first].id, messages[end - 1].id, `Summary ${number}: ${messages[first].text}`);
      }
      const shown = plan.large - covered * plan.compactions + plan.compactions;
      report("compacted", await repeat(() => chat.history(), (history) => checkHistory(history, shown, plan.large - 1)));
    });
  }

  // Search.
  const searches = async (chat, task, word, expected) => {
    if (!does(task)) return;
    report(task, await repeat(() => chat.search(word, plan.hits), (found) => checkHits(found, word, expected)));
  };
  if (does("search-first")) {
    const times = [];
    for (let round = 0; round < plan.rounds; round++) {
      await using(copy(large, `first-${round}`), false, async (chat) => {
        await chat.last(1);
        const start = now();
        const found = await chat.search(plan.usual, plan.hits);
        times.push(now() - start);
        checkHits(found, plan.usual, plan.usual_large);
      });
    }
    report("search-first", times);
  }
  if (does("search")) {
    await using(copy(large, "search"), false, (chat) => searches(chat, "search", plan.usual, plan.usual_large));
  }
  if (does("search-huge") || does("search-common")) {
    await using(await filled("huge", plan.huge), false, async (chat) => {
      await searches(chat, "search-huge", plan.usual, plan.usual_huge);
      await searches(chat, "search-common", plan.common, plan.common_huge);
    });
  }

  // Forks.
  for (const [path, count, task] of [[small, plan.small, "fork-small"], [large, plan.large, "fork"]]) {
    if (!does(task)) continue;
    await using(copy(path, task), false, async (chat) => {
      const times = await repeat(
        () => chat.fork(messages[count - 1].id),
        async (name) => {
          const length = await chat.forkLength(name);
          expect(length === count, `the fork has ${length} messages, expected ${count}`);
        },
      );
      report(task, times);
    });
  }
}

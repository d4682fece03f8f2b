// The page in Chromium: `node test.mjs SAMPLE MODULES CHROMIUM [PICTURES]` starts the sample, goes through the flows, and, with a
// folder, makes the pictures of the documents.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [sample, modules, executablePath, pictures] = process.argv.slice(2);
const require = createRequire(join(modules, "/"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const folder = mkdtempSync(join(tmpdir(), "talktree-web-"));
const server = spawn(sample, [folder], { stdio: ["pipe", "pipe", "inherit"] });
const address = await new Promise((resolve, reject) => {
  server.stdout.once("data", (line) => resolve(String(line).trim()));
  server.once("exit", (code) => reject(new Error(`the sample ended with ${code}`)));
});
const origin = new URL(address).origin;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

// Opens a page that may ask its own server alone, and on which nothing fails.
async function visit(hash = "", options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: "light", locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.outside = [];
  page.faults = [];
  page.on("request", (request) => {
    if (!request.url().startsWith(origin) && !/^(data|file|blob):/.test(request.url())) page.outside.push(request.url());
  });
  page.on("pageerror", (error) => page.faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && page.faults.push(message.text()));
  page.on("dialog", (dialog) => (page.faults.push(dialog.message()), dialog.dismiss()));
  page.on("popup", (popup) => page.faults.push(popup.url()));
  await page.goto((options.url ?? address) + hash);
  await page.locator("#sessions .session").first().waitFor({ state: "attached" });
  return page;
}

async function done(page) {
  assert.deepEqual(page.outside, [], "something outside was asked");
  assert.deepEqual(page.faults, [], "something failed");
  assert.equal(await page.evaluate(() => window.hacked), undefined, "a text of a message ran");
  await page.context().close();
}

const message = (page, text) => page.locator("#scroller .messages > article", { hasText: text });

async function hasNoFault(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"] }));
  const serious = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  const told = serious.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 4).map((node) => `${node.target} ${node.failureSummary}`).join("; ")}`);
  assert.deepEqual(told, [], `axe, ${what}`);
}

const tests = {
  // The functions alone: in the page a slow one would be hidden among the others.
  async "no text takes long, whatever it repeats"() {
    const source = ["dom.js", "markdown.js"].map((name) => readFileSync(new URL(`../../page/${name}`, import.meta.url), "utf8"));
    const node = () => ({ append() {}, setAttribute() {}, addEventListener() {} });
    globalThis.document = { createElement: node, createElementNS: node };
    const { markdown, codeBlock } = await import("data:text/javascript," + encodeURIComponent(source.join("\n").replace(/^import .*$/gm, "")));
    const repeated = ["#", " ", "|", "-", "`", "*", "[", "~", "_", ".", "# ", "| ", "` ", "``a", "**a ", "[](", "/* ", '"\\', "> "];
    for (const piece of repeated) {
      for (const start of ["", "# a", "a|b\n-", "https://x", "/*", "**", "[a]("]) {
        const text = start + piece.repeat(40_000 / piece.length) + "x", began = performance.now();
        markdown(text);
        codeBlock(text.slice(0, 30_000), "rust");
        const took = performance.now() - began;
        // A quadratic expression takes several seconds.
        assert.ok(took < 1_000, `${JSON.stringify(text.slice(0, 20))} takes ${took} ms`);
      }
    }
    // A call has some hundred thousand arguments at most.
    for (const piece of ["``a", "`\n", "\u0001"]) markdown("x" + piece.repeat(1_000_000 / piece.length));
  },

  async "the page asks only its server, and nobody without its token gets anything, not even after a visit"() {
    const page = await visit();
    await page.getByText("Your conversations").waitFor();
    assert.deepEqual(await page.context().cookies(), []);
    const statuses = await page.evaluate((paths) => Promise.all(paths.map(async (path) => (await fetch(path)).status)), ["/", "/api/sessions", "/0123/api/sessions", "api/sessions"]);
    assert.deepEqual(statuses, [403, 403, 403, 200]);
    page.faults = page.faults.filter((fault) => !fault.includes("403"));
    await done(page);
  },

  async "the list scrolls to its end, and filters narrow it"() {
    const page = await visit();
    const count = () => page.locator("#sessions .session").count();
    for (let n = 0; n < 30 && await count() < 135; n++) {
      await page.locator("#sessions").evaluate((list) => list.scrollTo(0, list.scrollHeight));
      await page.waitForTimeout(60);
    }
    assert.equal(await count(), 135);
    await page.getByRole("button", { name: "Filters" }).click();
    await page.getByLabel("Owner").fill("linus");
    await page.getByLabel("Owner").press("Enter");
    await page.waitForFunction(() => [...document.querySelectorAll("#sessions .session")].every((row) => row.textContent.includes("linus")));
    await page.getByRole("button", { name: "Clear" }).click();
    await page.getByLabel("Tag").fill("garden");
    await page.getByLabel("Tag").press("Enter");
    await page.waitForFunction(() => document.querySelectorAll("#sessions .session").length === 1);
    // They narrow a search, too.
    await page.getByLabel("Search", { exact: true }).fill("staging");
    await page.getByText("Nothing was found in the conversations that meet the filters.").waitFor();
    await page.getByRole("button", { name: "Clear" }).click();
    await page.locator("#sessions .hit").first().waitFor();
    await done(page);
  },

  async "keys alone lead from the list into a conversation, and Enter waits for what was typed"() {
    const page = await visit();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.locator("article.is-selected:focus:last-child").waitFor();
    await page.keyboard.press("k");
    await page.locator("article.is-selected:focus:nth-last-child(2)").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.insertText("rolling deployment");
    await page.keyboard.press("Enter");
    await page.locator("article.is-selected", { hasText: "three replicas" }).waitFor();
    await done(page);
  },

  // At most eight clicks or keys.
  async "the other answer we left behind in March is found"() {
    for (const way of ["clicks", "keys"]) {
      const page = await visit();
      let steps = 0;
      const step = (made) => (steps++, made);
      if (way === "clicks") {
        await step(page.getByRole("button", { name: "Filters" }).click());
        await step(page.getByLabel("Last message to").fill("2026-03-31"));
        await page.waitForFunction(() => document.querySelector("#sessions .period")?.textContent === "March 2026");
        await step(page.getByText("What to plant by the fence").click());
        await step(page.locator("#tree .row", { hasText: "climbing hydrangea" }).click());
      } else {
        await step(page.keyboard.press("/"));
        await step(page.keyboard.insertText("left behind hydrangea"));
        await page.locator("#sessions .hit", { hasText: "another branch" }).first().waitFor();
        await step(page.keyboard.press("Enter"));
      }
      await message(page, "A climbing hydrangea").waitFor();
      assert.match(await message(page, "A climbing hydrangea").textContent(), /2\/3/);
      assert.ok(steps <= 8, `${steps} steps`);
      await done(page);
    }
  },

  async "a search as somebody types says where each hit is, and leads into its surroundings"() {
    const page = await visit();
    await page.keyboard.press("/");
    await page.keyboard.type("rolling deploym", { delay: 10 });
    const hit = page.locator("#sessions .hit").first();
    await hit.getByText("under a summary").waitFor();
    assert.ok(await hit.locator("mark").count() > 0);
    await hit.click();
    await page.locator("article.is-selected", { hasText: "three replicas" }).waitFor();
    await message(page, "Can we deploy the new search service").waitFor();
    await page.waitForFunction(() => CSS.highlights.get("found")?.size > 0);
    await page.reload();
    await page.locator("#sessions .hit").first().waitFor();
    await page.waitForFunction(() => CSS.highlights.get("found")?.size > 0);
    await page.getByLabel("Search", { exact: true }).fill("staging role:system");
    await page.getByRole("button", { name: "staging", exact: true }).click();
    await page.locator("#sessions .hit").first().waitFor();
    // What is left out is no beginning of a word.
    const asked = page.waitForRequest((request) => new URL(request.url()).searchParams.get("q")?.includes("-test"));
    await page.getByLabel("Search", { exact: true }).fill("deploy -test");
    assert.equal(new URL((await asked).url()).searchParams.get("q"), "deploy -test");
    await done(page);
  },

  async "branches are turned by arrows and keys, and a click leads to any leaf"() {
    const page = await visit("#s=garden");
    await message(page, "Ferns and hostas").getByRole("button", { name: "The next branch" }).click();
    await message(page, "Too slow, I think.").waitFor();
    await page.keyboard.press("l");
    await message(page, "paint it blue").waitFor();
    assert.equal(await message(page, "Too slow").count(), 0);
    await page.keyboard.press("l");
    await message(page, "In April").waitFor();
    await page.locator("#tree .mark.label", { hasText: "hydrangea" }).click();
    await page.locator("article.is-selected", { hasText: "climbing" }).waitFor();
    await page.goBack();
    await message(page, "In April").waitFor();
    await done(page);
  },

  async "summaries open level by level, and tools, thoughts and hidden messages on demand"() {
    const page = await visit("#s=deployment");
    const summary = page.locator("article.is-summary").first();
    await summary.getByRole("button", { name: "Open" }).click();
    await summary.locator("article.is-summary").getByRole("button", { name: "Open" }).click();
    const answer = summary.locator("article.message", { hasText: "each drained for 30 seconds" }).last();
    await answer.locator("details.tool summary").first().click();
    await answer.getByText("deploy/plan.toml").last().waitFor();
    await page.getByRole("button", { name: "Everything" }).click();
    await page.getByText("Hidden system message").click();
    await page.getByText("opened deploy/plan.toml in the editor").waitFor();
    assert.ok(await page.locator("figure img").evaluate((image) => image.naturalWidth) > 0);
    await page.goto(address + "#s=other-5");
    await message(page, "A question about").waitFor();
    await page.getByRole("button", { name: "Everything" }).click();
    await page.getByText("Hidden system message").click();
    await page.getByText("Nobody summarised this.").waitFor();
    await done(page);
  },

  async "a marker in place of a tool's result is shown as a model reads it, in a file, too"() {
    for (const url of [address, "file://" + join(folder, "export.html")]) {
      const page = await visit("#s=deployment", { url });
      const summary = page.locator("article.is-summary").first();
      await summary.getByRole("button", { name: "Open" }).click();
      await summary.locator("article.is-summary").getByRole("button", { name: "Open" }).click();
      const seen = summary.locator("article.message", { hasText: "each drained for 30 seconds" }).last();
      await seen.locator("details.tool summary").click();
      await seen.getByText("[cleared]").last().waitFor();
      assert.equal(await seen.getByText("drain_seconds").count(), 0);
      await page.getByRole("button", { name: "Everything" }).click();
      await summary.waitFor({ state: "detached" });
      const said = message(page, "each drained for 30 seconds");
      await said.locator("details.tool summary").first().click();
      await said.getByText("drain_seconds").waitFor();
      assert.equal(await said.getByText("[cleared]").count(), 0);
      await done(page);
    }
  },

  async "what a model saw is shown as it was, and as a request"() {
    const page = await visit("#s=deployment&raw=1");
    const answer = message(page, "Latency is flat");
    await answer.hover();
    await answer.getByRole("button", { name: "What the model saw" }).click();
    const seen = page.getByRole("dialog", { name: "What the model saw" });
    await seen.getByText("reconstructed").waitFor();
    await seen.getByText("now under a summary").first().waitFor();
    await seen.getByRole("tab", { name: "Anthropic" }).click();
    await seen.getByText("tool_use").first().waitFor();
    await page.keyboard.press("Escape");
    server.stdin.write("It was recorded.\n");
    const recorded = message(page, "It was recorded.");
    await recorded.getByRole("button", { name: "What the model saw" }).click();
    await seen.getByText("exact").first().waitFor();
    await done(page);
  },

  async "a long conversation is a window that moves"() {
    const page = await visit("#s=long");
    await message(page, "Message 2999 ").waitFor();
    for (let n = 0; n < 14; n++) {
      await page.locator("#scroller").evaluate((scroller) => scroller.scrollTo(0, 0));
      await page.waitForTimeout(120);
    }
    const count = await page.locator(".messages > article").count();
    assert.ok(count <= 240, `${count} messages are in the document`);
    assert.equal(await message(page, "Message 2999 ").count(), 0);
    await page.keyboard.press("g");
    await message(page, "Message 0 of").waitFor();
    await page.keyboard.press("G");
    await message(page, "Message 2999 ").waitFor();
    await done(page);
  },

  async "a link leads to a message, and copies itself"() {
    const page = await visit("#s=long&m=long-1500");
    await page.locator("article.is-selected", { hasText: "Message 1500 " }).waitFor();
    assert.match(await page.locator(".place").textContent(), /^1,501 of 3,000/);
    await page.goto(address + "#s=other-120");
    await page.waitForFunction(() => {
      const { top, bottom } = document.querySelector("#sessions [aria-current]")?.getBoundingClientRect() ?? {};
      return top >= 0 && bottom <= innerHeight;
    });
    await done(page);
  },

  async "an ended server is said to have ended, and one key turns the colours"() {
    const page = await visit();
    await page.keyboard.press("t");
    await page.locator("html[data-theme=dark]").waitFor();
    await page.route(/api\/session\?/, (route) => route.abort());
    await page.locator("#sessions .session").first().click();
    await page.getByText("The server has ended.").waitFor();
    page.faults = page.faults.filter((fault) => !fault.includes("ERR_FAILED"));
    await done(page);
  },

  async "what a bot writes meanwhile appears"() {
    const page = await visit("#s=deployment");
    await message(page, "Shall I send it?").or(message(page, "new search index")).first().waitFor();
    await page.waitForTimeout(1_000);
    const row = page.locator("#sessions .session").nth(2);
    await row.focus();
    server.stdin.write("It is sent.\n");
    await message(page, "It is sent.").waitFor({ timeout: 5_000 });
    assert.equal(await page.locator(".mark.head:visible").count(), 2, "one in the text, one at the side");
    assert.ok(await message(page, "It is sent.").locator(".mark.head").isVisible());
    await page.locator("#sessions .session", { hasText: "Deploying the search service" }).getByText(/^(now|\d+ seconds? ago) ·/).waitFor();
    assert.ok(await row.evaluate((row) => row === document.activeElement), "the focus is lost");
    await done(page);
  },

  async "a tab that nobody sees holds no connection, and reads on when it is seen"() {
    const page = await visit("#s=deployment");
    await page.locator(".messages > article").first().waitFor();
    await page.waitForTimeout(1_000);
    const turn = (hidden) => page.evaluate((hidden) => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
    await turn(true);
    server.stdin.write("Nobody looks.\n");
    await page.waitForTimeout(2_000);
    assert.equal(await message(page, "Nobody looks.").count(), 0);
    await turn(false);
    await message(page, "Nobody looks.").waitFor({ timeout: 5_000 });
    await done(page);
  },

  async "the last click wins, not the last answer"() {
    const page = await visit();
    let wait;
    const late = new Promise((resolve) => (wait = resolve));
    await page.route(/api\/usage/, async (route) => (await late, route.continue()));
    await page.getByRole("link", { name: "Usage" }).click();
    await page.locator("#sessions .session", { hasText: "Deploying the search service" }).click();
    await message(page, "Can we deploy").or(page.locator("article.is-summary")).first().waitFor();
    wait();
    await page.waitForTimeout(700);
    await page.locator("h1", { hasText: "Deploying the search service" }).waitFor({ timeout: 1_000 });
    await done(page);
  },

  async "labels, names, heads and summaries are changed"() {
    const page = await visit("#s=other-3");
    const answer = message(page, "An answer about").first();
    await answer.hover();
    await answer.getByRole("button", { name: "Change" }).click();
    await page.getByRole("button", { name: "Label", exact: true }).click();
    await page.locator("dialog .fault", { hasText: "missing" }).waitFor();
    page.faults = page.faults.filter((fault) => !fault.includes("400"));
    await page.getByLabel("Label").fill("favourite");
    await page.getByLabel("Label").press("Enter");
    await answer.getByText("favourite").waitFor();
    const question = message(page, "A question about").first();
    await question.hover();
    await question.getByRole("button", { name: "Change" }).click();
    await page.getByRole("button", { name: "Continue here" }).click();
    await question.locator(".mark.head:visible").waitFor();
    await page.getByRole("button", { name: "Change the conversation" }).click();
    await page.getByRole("button", { name: "Undo" }).click();
    await answer.locator(".mark.head:visible").waitFor();
    await page.getByRole("button", { name: "Change the conversation" }).click();
    await page.getByLabel("Name", { exact: true }).last().fill("Renamed here");
    await page.getByRole("button", { name: "Rename" }).click();
    await page.locator("h1", { hasText: "Renamed here" }).waitFor();
    await answer.hover();
    await answer.getByRole("button", { name: "Change", exact: true }).click();
    await page.getByRole("button", { name: "Mark as the first" }).click();
    await answer.getByText("first to summarise").waitFor();
    // The ends may be chosen in either order.
    await question.hover();
    await question.getByRole("button", { name: "Change", exact: true }).click();
    await page.getByLabel("Summary").fill("In short.");
    await page.getByRole("button", { name: "Summarise" }).click();
    await page.locator("article.is-summary", { hasText: "In short." }).getByRole("button", { name: "Remove" }).click();
    await answer.waitFor();
    assert.equal(await page.locator("article.is-summary").count(), 0);
    await done(page);
  },

  async "hostile messages run nothing and load nothing"() {
    for (const options of [{}, { url: "file://" + join(folder, "hostile.html") }]) {
      const page = await visit("#s=hostile&raw=1", options);
      await message(page, "<!-- <script> -->").waitFor();
      for (const summary of await page.locator("summary").all()) await summary.click();
      await page.keyboard.press("g");
      await message(page, "onerror=window.hacked=11").waitFor();
      const links = await page.locator("#scroller a[href]").evaluateAll((links) => links.map((link) => [link.protocol, link.rel]));
      assert.ok(links.every(([protocol]) => ["http:", "https:", "mailto:", "data:", "blob:", "file:"].includes(protocol)), String(links));
      const outside = await page.locator(".markdown a").evaluateAll((links) => links.every((link) => link.rel.includes("noreferrer") && link.rel.includes("noopener")));
      assert.ok(outside);
      const made = await page.locator("#main :is(script, iframe, object, embed, svg[onload], style, form, [onerror], [onload], [onmouseover])").count();
      assert.equal(made, 0);
      assert.ok(await page.locator("body").isVisible());
      await page.waitForTimeout(200);
      await done(page);
    }
  },

  async "an exported file shows its branches and summaries without a network"() {
    const page = await visit("", { url: "file://" + join(folder, "export.html"), offline: true });
    await message(page, "new search index").waitFor();
    await page.locator("article.is-summary").first().getByRole("button", { name: "Open" }).click();
    await page.getByText("Who has to know?").waitFor();
    await message(page, "new search index").getByRole("button", { name: "The branch before" }).click();
    await message(page, "Shall I send it?").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("staging");
    await page.locator("#sessions .hit", { hasText: "under a summary" }).first().click();
    await page.locator("article.is-selected", { hasText: "staging" }).waitFor();
    await done(page);
  },

  async "usage is shown by day, model, owner and session"() {
    const page = await visit("#usage=1");
    await page.getByRole("button", { name: "All", exact: true }).click();
    await page.getByText("By owner").waitFor();
    await page.locator(".sums", { hasText: "linus" }).first().waitFor();
    const last = await page.locator(".chart .axis").last().textContent();
    assert.ok(Date.now() - Date.parse(last) < 32 * 86400e3, `the chart ends at ${last}`);
    await done(page);
  },

  async "axe finds no serious fault"() {
    for (const colorScheme of ["light", "dark"]) {
      for (const hash of ["", "#s=deployment", "#s=languages", "#s=hostile&raw=1", "#usage=1"]) {
        const page = await visit(hash, { colorScheme });
        await page.waitForTimeout(400);
        await hasNoFault(page, `${hash || "start"}, ${colorScheme}`);
        await page.context().close();
      }
    }
    const page = await visit("", { colorScheme: "dark" });
    await page.keyboard.press("/");
    await page.keyboard.type("deploy");
    await page.locator("#sessions .hit").first().waitFor();
    await hasNoFault(page, "search");
    await page.context().close();
  },
};

// It takes as long as all the others, and sees the same on every store.
if (process.env.TALKTREE_TEST_POSTGRES) delete tests["axe finds no serious fault"];

// name, width, height, address, what is done first
const shots = [
  ["conversation-light", 1280, 680, "#s=deployment", (page) => page.locator("article.is-summary").first().getByRole("button", { name: "Open" }).click()],
  ["branches-dark", 1280, 680, "#s=garden", (page) => message(page, "Ferns").getByRole("button", { name: "The next branch" }).click()],
  ["search-light", 1280, 680, "#s=deployment", async (page) => { await page.keyboard.press("/"); await page.keyboard.type("planning staging"); await page.locator(".hit").first().click(); }],
  ["seen-light", 1280, 680, "#s=deployment&raw=1", async (page) => { await message(page, "Latency is flat").hover(); await message(page, "Latency is flat").getByRole("button", { name: "What the model saw" }).click(); }],
  ["usage-dark", 1280, 680, "#usage=1", () => {}],
  ["phone-light", 420, 680, "#s=deployment", () => {}],
  ["phone-dark", 420, 680, "#s=languages", () => {}],
];

let failed = 0;
try {
  if (pictures) {
    for (const [name, width, height, hash, act] of shots) {
      const page = await visit(hash, { viewport: { width, height }, colorScheme: name.endsWith("dark") ? "dark" : "light" });
      await act(page);
      await page.waitForTimeout(600);
      await page.screenshot({ path: join(pictures, `page-${name}.png`) });
      await page.context().close();
    }
  } else {
    for (const [name, test] of Object.entries(tests)) {
      const began = Date.now();
      try {
        await test();
        console.log(`ok ${name} (${Date.now() - began} ms)`);
      } catch (error) {
        failed++;
        console.log(`FAILED ${name}\n${error.stack}`);
        for (const context of browser.contexts()) await context.close();
      }
    }
  }
} finally {
  await browser.close();
  server.removeAllListeners("exit");
  server.stdin.end();
  await new Promise((resolve) => server.once("exit", resolve));
  rmSync(folder, { recursive: true });
}
process.exitCode = failed ? 1 : 0;

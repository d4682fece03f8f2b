// Markdown as nodes. Nothing of a message becomes HTML: no tag is read, no image is loaded, and a link leads only to http, https or mailto.
import { el, texts } from "./dom.js";

const MAX_DEPTH = 8;
const MAX_COLUMNS = 50;

export function markdown(text) {
  return el("div.markdown", {}, blocks(text.split(/\r\n|[\n\r\u2028\u2029]/), 0));
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const FENCE_END = /^ {0,3}(`{3,}|~{3,})\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(?:\s+|$)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*)$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const TABLE = /^[\s|:-]+$/;

// For what has its marks at a side: `auto` does not look into paragraphs that have a direction of their own.
function direction(text) {
  return /^[^\p{L}]*[\u0590-\u08ff\ufb1d-\ufefc]/u.test(text) ? "rtl" : "ltr";
}

function blocks(lines, depth) {
  const nodes = [];
  let at = 0;
  const while_ = (test) => {
    const from = at;
    while (at < lines.length && test(lines[at])) at++;
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    if (!line.trim()) {
      at++;
    } else if (fence) {
      at++;
      // All of its marks are one kind, so a longer fence starts with a shorter one.
      const code = while_((next) => !FENCE_END.exec(next)?.[1].startsWith(fence[1]));
      at++;
      nodes.push(codeBlock(code.join("\n"), fence[2].toLowerCase()));
    } else if (HEADING.test(line)) {
      const [, marks, title] = HEADING.exec(line);
      at++;
      // Below the headings of the page.
      nodes.push(el("h" + Math.min(6, marks.length + 2), { dir: "auto" }, inline(title.trimEnd().replace(/ #+$/, ""), depth)));
    } else if (RULE.test(line)) {
      at++;
      nodes.push(el("hr"));
    } else if (QUOTE.test(line) && depth < MAX_DEPTH) {
      const quoted = while_((next) => QUOTE.test(next)).map((next) => next.replace(QUOTE, ""));
      nodes.push(el("blockquote", { dir: direction(quoted.join(" ")) }, blocks(quoted, depth + 1)));
    } else if (ITEM.test(line) && depth < MAX_DEPTH) {
      nodes.push(list());
    } else if (line.includes("|") && at + 1 < lines.length && lines[at + 1].includes("-") && TABLE.test(lines[at + 1])) {
      nodes.push(table(while_((next) => next.includes("|") && next.trim())));
    } else {
      at++;
      const more = while_((next) => next.trim() && !FENCE.test(next) && !HEADING.test(next) && !QUOTE.test(next) && !ITEM.test(next));
      nodes.push(el("p", { dir: "auto" }, inline([line, ...more].join("\n"), depth)));
    }
  }
  return nodes;

  function list() {
    const [, indent, mark] = ITEM.exec(lines[at]);
    const isOrdered = /\d/.test(mark);
    const first = lines[at];
    const items = [];
    while (at < lines.length) {
      const item = ITEM.exec(lines[at]);
      if (!item || item[1].length > indent.length + 1 || /\d/.test(item[2]) !== isOrdered) break;
      const inner = [lines[at].slice(item[0].length)];
      at++;
      inner.push(...while_((next) => !next.trim() || /^\s/.test(next) && next.search(/\S/) > item[1].length)
        .map((next) => next.slice(Math.min(next.search(/\S|$/), item[0].length))));
      items.push(el("li", { dir: "auto" }, blocks(inner, depth + 1)));
    }
    // A list of short lines is set closely.
    const start = isOrdered ? parseInt(mark, 10) : null;
    return el(isOrdered ? "ol" : "ul", { dir: direction(first), start: start === 1 ? null : start }, items.length ? items : el("li"));
  }

  function table(rows) {
    const cells = (row) => row.trim().replace(/^\||\|$/g, "").split("|").slice(0, MAX_COLUMNS).map((cell) => cell.trim());
    const [head, , ...body] = rows.map(cells);
    const row = (tag) => (row) => el("tr", {}, row.map((cell) => el(tag, { dir: "auto" }, inline(cell, depth))));
    return el("div.table", { tabindex: 0, role: "group", "aria-label": "Table" }, el("table", {}, el("thead", {}, row("th")(head)), el("tbody", {}, body.map(row("td")))));
  }
}

const INLINE = new RegExp([
  "(?<code>(?<ticks>`{1,20})(?<coded>[^`]{1,2000}?)\\k<ticks>(?!`))",
  "(?<link>!?\\[(?<label>[^\\]\\n]{0,200})\\]\\((?<target>[^()\\s]{1,2000}(?:\\([^()\\s]{0,200}\\)[^()\\s]{0,200})?)(?:\\s+\"[^\"\\n]{0,200}\")?\\))",
  "(?<strong>\\*\\*(?=\\S)(?<bold>[^]{0,500}?\\S)\\*\\*)",
  "(?<emphasis>(?<![\\w*])\\*(?=[^\\s*])(?<leaning>[^*\\n]{0,500}?[^\\s*])\\*(?!\\*)|(?<!\\w)_(?=[^\\s_])(?<under>[^_\\n]{0,500}?[^\\s_])_(?!\\w))",
  "(?<struck>~~(?=\\S)(?<gone>[^~]{0,500}?\\S)~~)",
  "(?<bare>https?:\\/\\/[^\\s<>\"'`]{1,2000})",
  "(?<escape>\\\\[\\\\`*_{}\\[\\]()#+.!|~<>-])",
  "(?<break> {2,20}\\n|\\n)",
].join("|"), "gu");

function inline(text, depth) {
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    const before = text.slice(end, match.index), isFirst = !end;
    nodes.push(texts(before));
    end = match.index + match[0].length;
    const found = match.groups;
    const inner = (text) => depth < MAX_DEPTH ? inline(text, depth + 1) : texts(text);
    if (found.code) {
      // A line may break between two of them. Where it may not, a browser looks through all that follows at each line.
      if (!isFirst && !/\s/.test(before)) nodes.push(el("wbr"));
      nodes.push(found.coded.trim() ? el("code", {}, texts(found.coded.trim())) : texts(found.code));
    } else if (found.link) nodes.push(link(found.target, found.link[0] === "!" ? ["image: ", ...texts(found.label)] : inner(found.label)));
    else if (found.strong) nodes.push(el("strong", {}, inner(found.bold)));
    else if (found.emphasis) nodes.push(el("em", {}, inner(found.leaning ?? found.under)));
    else if (found.struck) nodes.push(el("s", {}, inner(found.gone)));
    else if (found.bare) {
      let length = found.bare.length;
      while (".,;:!?)]}".includes(found.bare[length - 1])) length--;
      const address = found.bare.slice(0, length);
      nodes.push(link(address, texts(address)), found.bare.slice(length));
    } else if (found.escape) nodes.push(found.escape[1]);
    else nodes.push(el("br"));
  }
  nodes.push(texts(text.slice(end)));
  return nodes;
}

export function link(target, label) {
  let address = null;
  try {
    address = new URL(target);
  } catch {
    // No address.
  }
  const isSafe = address && ["http:", "https:", "mailto:"].includes(address.protocol);
  if (!isSafe) return el("span.dead", { title: target.slice(0, 200).toWellFormed() }, label);
  return el("a", { href: address.href, rel: "noreferrer noopener nofollow", target: "_blank", title: address.href.slice(0, 200) }, label);
}

export function codeBlock(code, language = "") {
  const copy = el("button.copy", { type: "button", onclick: () => navigator.clipboard?.writeText(code) }, "Copy");
  const pre = el("pre", { tabindex: 0, "aria-label": language ? `${language} code` : "Code" }, el("code", {}, highlighted(code, language)));
  return el("div.code", { dir: "ltr" }, el("div.bar", {}, el("span", {}, language), copy), pre);
}

const HASHED = new Set(["python", "py", "sh", "bash", "zsh", "shell", "console", "ruby", "rb", "yaml", "yml", "toml", "perl", "r", "make", "dockerfile"]);
const KEYWORDS = "as async await bool break case catch class const continue def default do elif else enum except export extends false False finally fn for from func function if impl import in int interface is lambda let loop match mod mut new nil None not null of or and pass pub raise return self Self static string struct super switch this throw trait true True try type typeof use var void where while with yield SELECT FROM WHERE INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE JOIN ON GROUP ORDER BY LIMIT echo then fi done";
const MAX_HIGHLIGHTED = 30_000;

function highlighted(code, language) {
  if (!language || ["text", "txt", "plain"].includes(language) || code.length > MAX_HIGHLIGHTED) return texts(code);
  const comment = HASHED.has(language) ? "#[^\\n]*" : language === "json" ? "(?!)" : language === "sql" ? "--[^\\n]*" : "\\/\\/[^\\n]*|\\/\\*[^]*?(?:\\*\\/|$)";
  const tokens = new RegExp(`(?<comment>${comment})|(?<string>"(?:\\\\.|[^"\\\\\\n]){0,1000}"|'(?:\\\\.|[^'\\\\\\n]){0,1000}'|\`[^\`]{0,1000}\`)|(?<number>\\b\\d[\\w.]*)|(?<keyword>\\b(?:${KEYWORDS.replaceAll(" ", "|")})\\b)`, "g");
  const nodes = [];
  let end = 0;
  for (const match of code.matchAll(tokens)) {
    nodes.push(...texts(code.slice(end, match.index)));
    end = match.index + match[0].length;
    const kind = Object.keys(match.groups).find((name) => match.groups[name] != null);
    nodes.push(el("span.is-" + kind, {}, texts(match[0])));
  }
  nodes.push(...texts(code.slice(end)));
  return nodes;
}

// Usage: tokens and cost by day, model, owner and session.
import { api } from "./api.js";
import { askMain, button, el, hashOf, line, money, number, short, svg } from "./dom.js";

const SPANS = [["30d", "30 days"], ["90d", "90 days"], ["365d", "A year"], ["", "All"]];
const MAX_BARS = 12;

// Without a choice the last 90 days are shown, or everything if nothing was used in them.
export async function openUsage(since) {
  const main = document.getElementById("main"), isLast = askMain();
  since ??= (await api.usage({ since: "90d" })).rows[0]?.answers ? "90d" : "";
  const groups = ["day", "model", "owner", "session"];
  const [total, ...found] = await Promise.all([null, ...groups].map((by) => api.usage({ by, since })));
  if (!isLast()) return;
  const sum = total.rows[0] ?? { answers: 0, input: 0, output: 0, cache_read: 0, costs: [] };
  document.title = "Usage · talktree";
  const figure = (label, value) => el("div.figure", {}, el("span.value", {}, value), el("span.about", {}, label));
  const spans = SPANS.map(([span, label]) => button(label, () => openUsage(span), { "aria-pressed": String(span === since) }));
  main.replaceChildren(
    el("header.bar.conversation", {}, button("‹", () => document.body.classList.remove("is-reading"), { class: "icon-button narrow", "aria-label": "Back to the list" }), el("div.heading", {}, el("h1", {}, "Usage")), el("div.tools", {}, el("div.switch", { role: "group", "aria-label": "Time" }, spans))),
    el("div.scroll", { tabindex: 0 }, el("div.column.usage", {},
      el("div.figures", {}, figure("answers", number(sum.answers)), figure("tokens in", short(sum.input)), figure("of them cached", short(sum.cache_read)), figure("tokens out", short(sum.output)), figure("cost", money(sum.costs) || "—")),
      days(found[0].rows, since), bars("By model", found[1].rows), bars("By owner", found[2].rows), bars("By session", found[3].rows, true))));
}

const tokens = (row) => row.input + row.output;

// The bars of the chart, to this day: of days, weeks or months, so that there are not too many.
function periods(rows, since) {
  const day = 86400e3, last = Math.floor(Date.now() / day) * day;
  const first = Math.max(since ? last - parseInt(since) * day : Date.parse(rows.at(-1).group), last - 30_000 * day);
  const [unit, length] = [["day", 1], ["week", 7], ["month", 31]].find(([, length]) => (last - first) / day / length < 120) ?? ["month", 31];
  const begin = (time) => unit === "day" ? time : unit === "week" ? time - ((time / day + 3) % 7) * day : Date.parse(new Date(time).toISOString().slice(0, 7));
  const all = new Map();
  for (let at = begin(first); at <= last; at = begin(at + length * day)) {
    all.set(at, { group: new Date(at).toISOString().slice(0, unit === "month" ? 7 : 10), input: 0, output: 0, costs: [] });
  }
  for (const row of rows) {
    const sum = all.get(begin(Math.min(Math.max(Date.parse(row.group), first), last)));
    [sum.input, sum.output] = [sum.input + row.input, sum.output + row.output];
    for (const { currency, micros } of row.costs) {
      const known = sum.costs.find((cost) => cost.currency === currency);
      if (known) known.micros += micros;
      else sum.costs.push({ currency, micros });
    }
  }
  return [unit, [...all.values()]];
}

function days(rows, since) {
  if (!rows.length) return el("p.empty", {}, "No usage is stored for this time.");
  const [unit, list] = periods(rows, since);
  const [width, height] = [680, 160], most = Math.max(...list.map(tokens), 1), left = 44, step = (width - left) / list.length;
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height + 22}`, role: "img", "aria-label": `Tokens by ${unit}, at most ${number(most)}`, class: "chart" });
  for (const share of [0.5, 1]) {
    const y = height - share * (height - 10);
    chart.append(svg("line", { x1: left, x2: width, y1: y, y2: y, class: "grid" }), svg("text", { x: left - 8, y: y + 4, class: "axis", "text-anchor": "end" }, short(most * share)));
  }
  list.forEach((row, at) => {
    const bar = (share, from, kind) => svg("rect", { x: left + at * step + step * 0.1, width: Math.min(step * 0.8, 24), y: height - (from + share) * (height - 10), height: share * (height - 10), rx: Math.min(2, step / 4), class: kind });
    const [input, output] = [row.input / most, row.output / most];
    chart.append(svg("g", {}, svg("title", {}, `${unit === "week" ? "week of " : ""}${row.group}: ${number(row.input)} in, ${number(row.output)} out ${money(row.costs)}`), svg("rect", { x: left + at * step, width: step, y: 0, height, class: "hover" }), bar(input, 0, "input"), bar(output, input, "output")));
  });
  for (const at of new Set([0, Math.floor(list.length / 2), list.length - 1])) {
    chart.append(svg("text", { x: at === list.length - 1 ? width : left + at * step, y: height + 16, class: "axis", "text-anchor": at === 0 ? "start" : at === list.length - 1 ? "end" : "middle" }, list[at].group));
  }
  return el("section", {}, el("h2", {}, "By " + unit), el("p.legend", {}, el("span.key.input", {}), "in", el("span.key.output", {}), "out"), chart);
}

function bars(title, rows, areSessions = false) {
  const named = rows.filter((row) => row.group != null).slice(0, MAX_BARS);
  if (!named.length) return null;
  const most = Math.max(...named.map(tokens), 1);
  const row = (row) => {
    const name = line(row.name ?? row.group, 70);
    const chart = svg("svg", { viewBox: "0 0 100 6", preserveAspectRatio: "none", class: "bar-chart", "aria-hidden": "true" },
      svg("rect", { width: (100 * row.input) / most, height: 6, class: "input" }), svg("rect", { x: (100 * row.input) / most, width: (100 * row.output) / most, height: 6, class: "output" }));
    return el("tr", {}, el("th", { scope: "row", dir: "auto" }, areSessions ? el("a", { href: hashOf({ s: row.group }) }, name) : name, chart), el("td", {}, short(tokens(row))), el("td", {}, money(row.costs)));
  };
  return el("section", {}, el("h2", {}, title), el("table.sums", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Name"), el("th", { scope: "col" }, "Tokens"), el("th", { scope: "col" }, "Cost"))), el("tbody", {}, named.map(row))));
}

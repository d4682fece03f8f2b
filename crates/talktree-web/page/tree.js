// The branches beside the text: a row for each segment between two branch points, its labels, its summaries.
import { el, icon, line, number, plural } from "./dom.js";

const MAX_ROWS = 2_000;
const MAX_INDENT = 7;

// What the outline says about messages: which has siblings, which leaf is below.
export function outline(tree) {
  const { segments, roots } = tree;
  const byFirst = new Map(segments.map((segment, at) => [segment.first, at]));
  return {
    tree,
    // The messages at whose place there are others, and which of them this one is.
    branchAt(id) {
      const at = byFirst.get(id);
      if (at == null) return null;
      const siblings = segments[at].parent == null ? roots : segments[segments[at].parent].children;
      return siblings.length > 1 ? { at: siblings.indexOf(at), siblings } : null;
    },
    // The newest leaf below a segment, or the head if it is below.
    leafBelow(at) {
      const head = this.pathOf(null);
      while (segments[at].children.length) {
        at = segments[at].children.find((child) => head.has(child)) ?? segments[at].children.at(-1);
      }
      return segments[at].last;
    },
    first: (at) => segments[at].first,
    // The segments from the root to a leaf, or to the head.
    pathOf(leaf) {
      const target = leaf ?? tree.head;
      let at = segments.findIndex((segment) => segment.last === target || segment.landmarks.some((mark) => mark.id === target));
      const path = new Set();
      for (; at >= 0 && at != null; at = segments[at].parent) path.add(at);
      return path;
    },
    hasMore: segments.length > 1 || segments.some((segment) => segment.compactions?.length || segment.landmarks.some((mark) => mark.labels.length)),
    start: roots.length ? segments[roots[0]].first : null,
  };
}

export function drawTree(outlined, leaf, open) {
  const { segments, roots, head } = outlined.tree;
  const path = outlined.pathOf(leaf);
  const rows = [];
  const jobs = roots.toReversed().map((at) => ({ at, depth: 0 }));
  while (jobs.length && rows.length < MAX_ROWS) {
    const { at, depth } = jobs.pop();
    rows.push(row(segments[at], at, depth));
    // The way to what is shown goes straight down, and is drawn last.
    const children = segments[at].children;
    const main = children.find((child) => path.has(child)) ?? children.at(-1);
    if (main != null) jobs.push({ at: main, depth });
    for (const child of children.toReversed()) if (child !== main) jobs.push({ at: child, depth: depth + 1 });
  }
  const leaves = segments.filter((segment) => !segment.children.length).length;
  return [
    el("header", {}, el("h2", {}, "Branches"), el("p", {}, `${plural(outlined.tree.messages, "message")}, ${plural(leaves, "branch", "branches")}`)),
    el("ul.rows", {}, rows, jobs.length ? el("li.left-out", {}, `${number(jobs.length)} more`) : null),
  ];

  function row(segment, at, depth) {
    const mark = segment.landmarks.find((mark) => !mark.hidden) ?? segment.landmarks[0] ?? { role: "", preview: "" };
    const marks = segment.landmarks.flatMap((mark) => [...mark.labels.map((label) => ["label", label, mark.id]), ...(mark.id === head ? [["head", "head", mark.id]] : [])]);
    const summaries = segment.compactions ?? [];
    const isOn = path.has(at), isLeaf = !segment.children.length;
    const title = mark.preview || mark.role || "message";
    const open_ = () => open(outlined.leafBelow(at), segment.first);
    return el("li", { class: isOn ? "is-on" : null, "data-depth": Math.min(depth, MAX_INDENT) },
      el("button.row", { type: "button", onclick: open_, "data-leaf": isLeaf, "aria-current": isOn && isLeaf ? "true" : null },
        el("span.dot", { class: `dot is-${mark.role}` }),
        el("span.title", { dir: "auto" }, line(title.replace(/\*\*|`|^[\s>#]+/g, ""), 90)),
        segment.count > 1 ? el("span.count", { title: plural(segment.count, "message") }, number(segment.count)) : null),
      marks.length || summaries.length ? el("div.marks", {},
        marks.map(([kind, name, id]) => el(`button.mark.${kind}`, { type: "button", onclick: () => open(kind === "head" ? null : outlined.leafBelow(at), id) }, line(name, 40))),
        summaries.length ? el("span.mark.summary", { title: "Summaries that end here" }, icon("more"), plural(summaries.length, "summary", "summaries")) : null) : null);
  }
}

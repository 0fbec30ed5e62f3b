// Text as Slack writes it (mrkdwn, rich_text, the markdown block), as elements.
import { h } from "./dom.js";
import { emoji, glyph } from "./emoji.js";

const unescape = (s) => s.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");

// link is a link when it leads to the web or to a mailbox, and text otherwise.
function link(url, label) {
  let ok = false;
  try { ok = ["http:", "https:", "mailto:"].includes(new URL(url).protocol); } catch { /* no address */ }
  const content = label === undefined || label === "" ? url : label;
  if (!ok) return h("span", {}, content);
  return h("a", { href: url, target: "_blank", rel: "noopener noreferrer nofollow", title: url }, content);
}

export function mention(id, names) {
  const p = names.person(id);
  return h("span", { class: "mention" + (id === names.me() ? " me" : ""), dir: "auto" }, "@" + (p ? p.name : id));
}

function channelName(id, names) { const c = names.channel(id); return h("span", { class: "mention" }, "#" + (c ? c.name : id)); }

// token is what stands between < and >.
function token(body, names) {
  const bar = body.indexOf("|");
  const target = bar < 0 ? body : body.slice(0, bar);
  const label = bar < 0 ? "" : unescape(body.slice(bar + 1));
  if (target.startsWith("@")) return mention(target.slice(1), names);
  if (target.startsWith("#")) return channelName(target.slice(1), names);
  if (target.startsWith("!date^")) return h("time", {}, label || unescape(target));
  if (target.startsWith("!subteam^")) return h("span", { class: "mention" }, label || "@group");
  if (target.startsWith("!")) return h("span", { class: "mention" }, "@" + (label || target.slice(1)));
  return link(unescape(target), label);
}

const marks = { "*": "strong", _: "em", "~": "s" };

// styled finds the end of a mark that opens at i: *bold*, _italic_, ~struck~.
function closing(s, i) {
  const mark = s[i];
  const before = i === 0 ? " " : s[i - 1];
  if (/[\p{L}\p{N}*_~]/u.test(before) || i + 1 >= s.length || /\s/.test(s[i + 1]) || s[i + 1] === mark) return -1;
  for (let j = i + 1; j < Math.min(s.length, i + 3000) && s[j] !== "\n"; j++) {
    if (s[j] === "`") { const end = s.indexOf("`", j + 1); if (end < 0) return -1; j = end; continue; }
    if (s[j] === "<") { const end = s.indexOf(">", j + 1); if (end > 0) { j = end; continue; } }
    if (s[j] !== mark || /\s/.test(s[j - 1])) continue;
    const after = j + 1 < s.length ? s[j + 1] : " ";
    if (!/[\p{L}\p{N}]/u.test(after)) return j;
  }
  return -1;
}

// inline is a piece of running mrkdwn.
function inline(s, names, depth = 0) {
  const out = [];
  let text = "";
  const flush = () => { if (text) out.push(unescape(text)); text = ""; };
  for (let i = 0; i < s.length; i++) {
    const c = s[i];
    if (c === "`") {
      const end = s.indexOf("`", i + 1);
      if (end > i + 1 && !s.slice(i, end).includes("\n")) {
        flush();
        out.push(h("code", {}, plainTokens(s.slice(i + 1, end))));
        i = end;
        continue;
      }
    } else if (c === "<") {
      const end = s.indexOf(">", i + 1);
      if (end > i + 1) { flush(); out.push(token(s.slice(i + 1, end), names)); i = end; continue; }
    } else if (c === ":") {
      const m = /^:([a-z0-9_+-]+):/.exec(s.slice(i, i + 60));
      if (m && emoji(m[1])) { flush(); out.push(emojiSpan(m[1])); i += m[0].length - 1; continue; }
    } else if (marks[c] && depth < 6) {
      const end = closing(s, i);
      if (end > 0) { flush(); out.push(h(marks[c], {}, inline(s.slice(i + 1, end), names, depth + 1))); i = end; continue; }
    }
    text += c;
  }
  flush();
  return out;
}

function emojiSpan(name) { return h("span", { class: "emoji", role: "img", "aria-label": name.replaceAll("_", " "), title: ":" + name + ":" }, emoji(name)); }

// plainTokens is code: only links are tokens there, and they are shown as they read.
function plainTokens(s) {
  return unescape(s.replace(/<([^<>|]+)(?:\|([^<>]*))?>/g, (_, target, label) => label || target));
}

// mrkdwn is a text with Slack's marks.
export function mrkdwn(s, names) {
  const out = [];
  const fence = /```\n?([\s\S]*?)```\n?/g;
  let at = 0;
  for (const m of s.matchAll(fence)) {
    out.push(paragraphs(s.slice(at, m.index), names));
    out.push(h("pre", {}, plainTokens(m[1].replace(/\n$/, ""))));
    at = m.index + m[0].length;
  }
  out.push(paragraphs(s.slice(at), names));
  return out;
}

// paragraphs is running text with its quotes. Lines that are no quote stay together: a mark does not span lines.
function paragraphs(s, names) {
  const out = [];
  let quote = [];
  let lines = [];
  const flush = () => {
    if (lines.length) out.push(h("div", { class: "para", dir: "auto" }, inline(lines.join("\n"), names)));
    if (quote.length) out.push(h("blockquote", { dir: "auto" }, inline(quote.join("\n"), names)));
    lines = []; quote = [];
  };
  for (const line of s.replace(/\n$/, "").split("\n")) {
    const m = /^&gt;\s?(.*)$/.exec(line);
    if (m) { if (lines.length) flush(); quote.push(m[1]); } else { if (quote.length) flush(); lines.push(line); }
  }
  flush();
  return s === "" ? [] : out;
}

// textObject is plain_text or mrkdwn.
export function textObject(t, names) {
  if (!t) return [];
  if (t.type === "mrkdwn") return mrkdwn(t.text || "", names);
  return h("span", { dir: "auto", class: "plain" }, withEmoji(t.text || ""));
}

export function withEmoji(s) {
  return s.split(/(:[a-z0-9_+-]+:)/).map((part) => {
    const m = /^:([a-z0-9_+-]+):$/.exec(part);
    return m && emoji(m[1]) ? emojiSpan(m[1]) : part;
  });
}

// richText is a rich_text block.
export function richText(block, names) {
  return (block.elements || []).map((el) => richPart(el, names));
}

function richPart(el, names) {
  const inner = () => (el.elements || []).map((e) => richLeaf(e, names));
  switch (el.type) {
    case "rich_text_preformatted": return h("pre", {}, inner());
    case "rich_text_quote": return h("blockquote", { dir: "auto" }, inner());
    case "rich_text_list": {
      const items = (el.elements || []).map((s) => h("li", { dir: "auto" }, (s.elements || []).map((e) => richLeaf(e, names))));
      return h(el.style === "ordered" ? "ol" : "ul", { class: "indent-" + Math.min(Number(el.indent) || 0, 6), start: el.offset ? Number(el.offset) + 1 : null }, items);
    }
    default: return h("div", { class: "para", dir: "auto" }, inner());
  }
}

function richLeaf(e, names) {
  let node;
  switch (e.type) {
    case "text": node = document.createTextNode(e.text || ""); break;
    case "link": node = link(e.url || "", e.text); break;
    case "user": node = mention(e.user_id, names); break;
    case "channel": node = channelName(e.channel_id, names); break;
    case "usergroup": node = h("span", { class: "mention" }, "@group"); break;
    case "broadcast": node = h("span", { class: "mention" }, "@" + e.range); break;
    case "emoji": node = h("span", { class: "emoji", role: "img", "aria-label": String(e.name).replaceAll("_", " ") }, glyph(e.name, e.unicode)); break;
    case "date": node = document.createTextNode(e.fallback || new Date(e.timestamp * 1000).toLocaleString()); break;
    case "color": node = document.createTextNode(e.value || ""); break;
    default: node = document.createTextNode(typeof e.text === "string" ? e.text : "");
  }
  for (const [style, tag] of [["code", "code"], ["strike", "s"], ["italic", "em"], ["bold", "strong"]]) {
    if (e.style && e.style[style]) node = h(tag, {}, node);
  }
  return node;
}

// markdown is the markdown block: headings, lists, quotes, code, tables, rules and what stands within lines.
export function markdown(s, names, depth = 0) {
  const out = [];
  const lines = s.split("\n");
  let i = 0;
  const take = (test) => { const got = []; while (i < lines.length && test(lines[i])) got.push(lines[i++]); return got; };
  while (i < lines.length) {
    const line = lines[i];
    let m;
    if (/^\s*$/.test(line)) { i++; continue; }
    if ((m = /^\s*(```+|~~~+)\s*(.*)$/.exec(line))) {
      i++;
      const body = take((l) => !l.trim().startsWith(m[1]));
      i++;
      out.push(h("pre", { data: { lang: m[2] || "" } }, body.join("\n")));
    } else if ((m = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line))) {
      i++;
      out.push(h("div", { class: "heading level-" + m[1].length, role: "heading", "aria-level": String(m[1].length + 2), dir: "auto" }, mdInline(m[2], names)));
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) { i++; out.push(h("hr")); }
    else if (/^\s*>/.test(line)) {
      const body = take((l) => /^\s*>/.test(l)).map((l) => l.replace(/^\s*>\s?/, ""));
      out.push(h("blockquote", { dir: "auto" }, depth < 8 ? markdown(body.join("\n"), names, depth + 1) : body.join("\n")));
    } else if (/^\s*([-*+]|\d+[.)])\s+/.test(line)) out.push(mdList(lines, () => i, (n) => { i = n; }, names, depth));
    else if (line.includes("|") && i + 1 < lines.length && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[i + 1])) {
      const rows = take((l) => l.includes("|"));
      out.push(mdTable(rows, names));
    } else {
      const body = [lines[i++]];
      while (i < lines.length && !/^\s*$/.test(lines[i]) && !/^(\s*(```|~~~|>|[-*+]\s|\d+[.)]\s)|#{1,6}\s)/.test(lines[i])) body.push(lines[i++]);
      out.push(h("p", { dir: "auto" }, mdInline(body.join("\n"), names)));
    }
  }
  return out;
}

function mdList(lines, at, move, names, depth) {
  let i = at();
  const first = /^(\s*)([-*+]|\d+[.)])\s+/.exec(lines[i]);
  const indent = first[1].length;
  const ordered = /\d/.test(first[2]);
  const items = [];
  while (i < lines.length) {
    const m = /^(\s*)([-*+]|\d+[.)])\s+(.*)$/.exec(lines[i]);
    if (!m || m[1].length < indent) break;
    const body = [m[3]];
    i++;
    const inside = m[1].length + 1;
    while (i < lines.length && (/^\s*$/.test(lines[i]) ? i + 1 < lines.length && /^\s{2,}\S/.test(lines[i + 1]) : lines[i].search(/\S/) >= inside)) {
      body.push(lines[i].slice(Math.min(lines[i].search(/\S|$/), inside + 1)));
      i++;
    }
    const task = /^\[([ xX])\]\s+/.exec(body[0]);
    if (task) body[0] = (task[1] === " " ? "☐ " : "☑ ") + body[0].slice(task[0].length);
    items.push(h("li", { dir: "auto" }, body.length === 1 || depth > 8 ? mdInline(body.join("\n"), names) : markdown(body.join("\n"), names, depth + 1)));
  }
  move(i);
  return h(ordered ? "ol" : "ul", ordered ? { start: parseInt(first[2], 10) } : {}, items);
}

function mdTable(rows, names) {
  const cells = (row) => row.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((c) => c.trim().replace(/\\\|/g, "|"));
  const head = cells(rows[0]).map((c) => h("th", { scope: "col", dir: "auto" }, mdInline(c, names)));
  const body = rows.slice(2).map((r) => h("tr", {}, cells(r).map((c) => h("td", { dir: "auto" }, mdInline(c, names)))));
  return h("div", { class: "table" }, h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)));
}

const mdRules = [
  [/^\\([\\`*_{}[\]()#+\-.!|~>])/, (m) => m[1]],
  [/^(`+)([\s\S]*?[^`])\1(?!`)/, (m) => h("code", {}, m[2].replace(/^ (.*) $/s, "$1"))],
  [/^!\[([^\]]*)\]\(([^)\s]+)[^)]*\)/, (m) => link(m[2], m[1] || m[2])],
  [/^\[([^\]]+)\]\(([^)\s]+)[^)]*\)/, (m, n, d) => link(m[2], mdInline(m[1], n, d + 1))],
  [/^<(https?:\/\/[^\s>]+)>/, (m) => link(m[1])],
  [/^<(@[UW][A-Z0-9]+)(?:\|[^>]*)?>/, (m, n) => mention(m[1].slice(1), n)],
  [/^https?:\/\/[^\s<>)]+[^\s<>).,;:!?'"]/, (m) => link(m[0])],
  [/^\*\*(?=\S)([\s\S]*?\S)\*\*/, (m, n, d) => h("strong", {}, mdInline(m[1], n, d + 1))],
  [/^__(?=\S)([\s\S]*?\S)__(?!\w)/, (m, n, d) => h("strong", {}, mdInline(m[1], n, d + 1))],
  [/^~~(?=\S)([\s\S]*?\S)~~/, (m, n, d) => h("s", {}, mdInline(m[1], n, d + 1))],
  [/^\*(?=[^\s*])([\s\S]*?[^\s*])\*(?!\*)/, (m, n, d) => h("em", {}, mdInline(m[1], n, d + 1))],
  [/^_(?=[^\s_])([\s\S]*?[^\s_])_(?!\w)/, (m, n, d) => h("em", {}, mdInline(m[1], n, d + 1))],
  [/^:([a-z0-9_+-]+):/, (m) => (emoji(m[1]) ? emojiSpan(m[1]) : null)],
];

function mdInline(s, names, depth = 0) {
  const out = [];
  let text = "";
  const starts = "\\`![<h*_~:";
  for (let i = 0; i < s.length;) {
    const wordBefore = i > 0 && /\w/.test(s[i - 1]);
    let hit = null;
    if (depth < 6 && starts.includes(s[i]) && !(wordBefore && "_h:".includes(s[i]))) {
      const rest = s.slice(i, i + 4000);
      for (const [rule, make] of mdRules) {
        const m = rule.exec(rest);
        const node = m && make(m, names, depth);
        if (node) { hit = [m[0].length, node]; break; }
      }
    }
    if (hit) {
      if (text) out.push(entities(text));
      text = "";
      out.push(hit[1]);
      i += hit[0];
    } else text += s[i++];
  }
  if (text) out.push(entities(text));
  return out;
}

function entities(s) { return s.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&quot;/g, '"').replace(/&amp;/g, "&"); }


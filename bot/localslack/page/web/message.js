// One message as an element.
import { h, icon, clock, popover, closePopover } from "./dom.js";
import { blocks } from "./blocks.js";
import { mrkdwn } from "./text.js";
import { emoji, picks } from "./emoji.js";

const hues = [174, 262, 24, 210, 330, 95, 45, 290];

export function avatar(person, size = "") {
  if (person && person.bot) return h("img", { class: "avatar " + size, src: "/icon.svg", alt: "" });
  const name = person ? person.realName || person.name : "?";
  let sum = 0;
  for (const c of (person ? person.id : "?")) sum = (sum * 31 + c.charCodeAt(0)) % 9973;
  const el = h("span", { class: "avatar letters " + size, "aria-hidden": "true" }, [...name][0].toUpperCase());
  el.style.setProperty("--hue", String((person && person.hue) || hues[sum % hues.length]));
  return el;
}

// foldAt is how many characters or lines of a message are shown at first.
const foldAt = { characters: 3000, lines: 40 };

function foldLongText(body, text, open, toggle) {
  if (text.length < foldAt.characters && text.split("\n", foldAt.lines + 1).length <= foldAt.lines) return body;
  const inner = h("div", { class: "fold" + (open ? " open" : "") }, body);
  const button = h("button", { type: "button", class: "more", "aria-expanded": String(open), data: { focus: "fold" }, on: { click: toggle } }, open ? "Show less" : "Show all of it");
  return [inner, button];
}

// message makes one. m is as the workspace has it; ctx is the page; where is channel or thread.
export function message(m, ctx, where) {
  const who = ctx.names.person(m.user);
  const name = who ? who.realName || who.name : m.username || "somebody";
  const quiet = m.subtype === "channel_join" || m.subtype === "tombstone";
  const press = (block, action, value) => ctx.press({ channel: m.channel, ts: m.ts, thread: m.thread_ts }, block, action, value);
  const body = h("div", { class: "text" }, content(m, { names: ctx.names, press }));
  const head = h("div", { class: "who-line" }, h("bdi", { class: "name", text: name }), tags(who), h("time", { title: new Date(Number(m.ts) * 1000).toLocaleString(), datetime: new Date(Number(m.ts) * 1000).toISOString() }, clock(m.ts)),
    m.broadcast && where === "channel" && h("span", { class: "note" }, "replied in a thread"));
  const article = h("article", { class: "message" + (quiet ? " quiet" : "") + (ctx.isOpen(m) && where === "channel" ? " open" : ""), tabindex: "-1", "aria-label": name + ", " + clock(m.ts), data: { ts: m.ts } },
    h("div", { class: "gutter" }, avatar(who)),
    h("div", { class: "body" }, head,
      foldLongText(body, m.text || "", ctx.unfolded(m.ts), () => ctx.fold(m.ts)),
      m.edited && h("span", { class: "edited" }, "(edited)"),
      files(m), attachments(m), reactions(m, ctx), where === "channel" && replies(m, ctx)));
  if (m.subtype !== "tombstone") article.append(toolbar(m, ctx, where, article));
  return article;
}

function tags(who) {
  if (!who) return null;
  return [who.bot && h("span", { class: "tag" }, "app"), who.stranger && h("span", { class: "tag outside", title: "Of another company" }, "other company")];
}

function content(m, place) {
  const list = Array.isArray(m.blocks) ? m.blocks : [];
  if (!list.length || list.some((b) => !b || typeof b !== "object" || (b.type === "rich_text" && !Array.isArray(b.elements)))) return mrkdwn(m.text || "", place.names);
  return blocks(list, place);
}

function size(n) { return n < 1024 ? n + " bytes" : n < 1 << 20 ? (n / 1024).toFixed(1) + " kB" : (n / (1 << 20)).toFixed(1) + " MB"; }

function files(m) {
  if (!m.files || !m.files.length) return null;
  return h("div", { class: "files" }, m.files.map((f) => {
    const at = "/files/" + encodeURIComponent(f.id);
    if (/^image\/(png|jpeg|gif|webp)$/.test(f.mimetype)) {
      return h("figure", {}, h("figcaption", {}, h("bdi", { text: f.title || f.name })), h("a", { href: at, target: "_blank", rel: "noopener" }, h("img", { class: "picture large", src: at, alt: f.title || f.name, loading: "lazy" })));
    }
    return h("a", { class: "file", href: at + "?download=1", download: f.name }, icon("file"), h("span", {}, h("bdi", { text: f.title || f.name }), h("small", {}, size(f.size))));
  }));
}

function attachments(m) {
  if (!Array.isArray(m.attachments)) return null;
  return m.attachments.map((a) => h("div", { class: "attachment", dir: "auto" }, a.title && h("strong", {}, a.title), a.text && h("div", {}, a.text), !a.title && !a.text && a.fallback));
}

function reactions(m, ctx) {
  if (!m.reactions || !m.reactions.length) return null;
  return h("div", { class: "reactions" }, m.reactions.map((r) => {
    const mine = r.users.includes(ctx.me());
    const by = r.users.map((u) => (ctx.names.person(u) || { name: u }).name).join(", ");
    return h("button", { type: "button", class: "reaction" + (mine ? " mine" : "") + (ctx.isNewReaction(m, r) ? " new" : ""), "aria-pressed": String(mine), title: by + " reacted with :" + r.name + ":", "aria-label": r.name.replaceAll("_", " ") + ", " + by, data: { name: r.name, focus: "r" + r.name }, on: { click: () => ctx.react(m, r.name) } },
      h("span", { class: "emoji", "aria-hidden": "true" }, emoji(r.name) || ":" + r.name + ":"), h("span", {}, String(r.count)));
  }));
}

function replies(m, ctx) {
  if (!m.reply_count || (m.thread_ts && m.thread_ts !== m.ts)) return null;
  const people = (m.reply_users || []).slice(0, 4).map((u) => avatar(ctx.names.person(u), "tiny"));
  return h("button", { type: "button", class: "replies", data: { focus: "replies" }, on: { click: () => ctx.openThread(m) } }, people,
    h("strong", {}, m.reply_count === 1 ? "1 reply" : m.reply_count + " replies"), h("span", {}, "last at " + clock(m.latest_reply || m.ts)));
}

function toolbar(m, ctx, where, article) {
  const tool = (name, label, fn) => { const b = h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, data: { focus: "tool-" + name } }, icon(name)); b.addEventListener("click", () => fn(b)); return b; };
  return h("div", { class: "toolbar", role: "group", "aria-label": "Actions" },
    tool("smile", "React", (b) => picker(m, ctx, b)),
    where === "channel" && m.subtype !== "channel_join" && tool("reply", "Reply in thread", () => ctx.openThread(m)),
    tool("more", "More", (b) => menu(m, ctx, b)));
}

function picker(m, ctx, anchor) {
  popover(anchor, "React", h("div", { class: "picks" }, picks.map((name) => h("button", { type: "button", role: "menuitem", "aria-label": name.replaceAll("_", " "), on: { click: () => { closePopover(); ctx.react(m, name); } } }, emoji(name)))));
}

function menu(m, ctx, anchor) {
  const entry = (label, what, fn, style) => h("button", { type: "button", role: "menuitem", class: "entry" + (style || ""), on: { click: () => { closePopover(); fn(); } } }, h("span", {}, label), what && h("small", {}, what));
  const mine = m.user === ctx.me();
  popover(anchor, "More", h("div", { class: "entries" },
    ctx.shortcuts().map((s) => entry(s.name, "the-loop", () => ctx.shortcut(m, s.id))),
    mine && !m.files && entry("Edit message", "", () => ctx.edit(m)),
    mine && entry("Delete message", "", () => ctx.remove(m), " danger"),
    entry("Copy text", "", () => navigator.clipboard && navigator.clipboard.writeText(m.text || ""))));
}

// ephemeral is what only one member sees.
export function ephemeral(e, ctx) {
  const bot = ctx.names.person(ctx.bot());
  const press = (block, action, value) => ctx.press({ channel: e.channel, ts: e.ts, thread: e.thread }, block, action, value);
  const list = Array.isArray(e.blocks) && e.blocks.length ? blocks(e.blocks, { names: ctx.names, press }) : mrkdwn(e.text || "", ctx.names);
  return h("article", { class: "message ephemeral", tabindex: "-1", "aria-label": "Only visible to you, " + clock(e.ts) },
    h("div", { class: "gutter" }, avatar(bot)),
    h("div", { class: "body" }, h("p", { class: "only" }, icon("eye"), "Only visible to you"),
      h("div", { class: "who-line" }, h("bdi", { class: "name", text: e.source === "slackbot" ? "Slackbot" : bot ? bot.realName : "app" }), tags(bot), h("time", {}, clock(e.ts))),
      foldLongText(h("div", { class: "text" }, list), e.text || "", ctx.unfolded(e.ts), () => ctx.fold(e.ts)),
      h("button", { type: "button", class: "more", data: { focus: "dismiss" }, on: { click: () => ctx.dismiss(e) } }, "Dismiss message")));
}

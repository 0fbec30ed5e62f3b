// The page: its state, what it draws, and the event stream that changes it.
import { $, h, icon, keyed, day, announce, confirmed } from "./dom.js";
import { runAction, send, get } from "./api.js";
import { message, ephemeral, avatar } from "./message.js";
import { blocks } from "./blocks.js";
import { composer } from "./composer.js";
import { showViews } from "./modal.js";
import { showState, addTraffic, showTraffic } from "./demo.js";

const pageSize = 50; // messages that are asked for at once
const maxShown = 200; // messages that are shown at once

let state = null; // of the one who writes
let current = { place: "channel", channel: "", thread: "" };
let lists = { channel: newList(), thread: newList() };
let source = null;
let position = ""; // in the stream
let trafficOn = false;
const open = new Set(); // messages that are unfolded
const dismissed = new Set();
const newReactions = new Map(); // reactions that just came
let version = 0;

function newList() { return { messages: new Map(), more: false, loading: false, root: null }; }

const names = {
  me: () => state.me,
  person: (id) => state.people.find((p) => p.id === id),
  people: () => state.people.filter((p) => !p.bot),
  channel: (id) => state.channels.find((c) => c.id === id),
  channels: () => state.channels.filter((c) => c.in),
  fileOf: (url) => { const m = /\/files\/([A-Z0-9]+)(\/|$)/.exec(url || ""); return m && url.startsWith("http://127.0.0.1:") ? m[1] : null; },
};

// ctx is what the other scripts may use of the page.
const ctx = {
  names,
  me: () => state.me,
  bot: () => state.bot,
  where: () => ({ channel: current.channel, thread: current.thread }),
  shortcuts: () => state.shortcuts || [],
  isOpen: (m) => current.thread === m.ts && current.place === "channel",
  unfolded: (ts) => open.has(ts),
  fold: (ts) => { if (!open.delete(ts)) open.add(ts); redrawMessage(ts); },
  isNewReaction: (m, r) => newReactions.get(m.ts + r.name) > performance.now() - 1500,
  openThread: (m) => openThread(m.thread_ts || m.ts, true),
  react: (m, name) => showFailure(runAction("react", { as: state.me, channel: m.channel, ts: m.ts, name }), m),
  shortcut: (m, id) => showFailure(runAction("shortcut", { as: state.me, channel: m.channel, ts: m.ts, name: id }), m),
  edit: (m) => edit(m),
  remove: async (m) => { if (await confirmed({ title: "Delete message", text: "It does not come back.", confirm: "Delete", deny: "Keep it", style: "danger" })) showFailure(runAction("delete", { as: state.me, channel: m.channel, ts: m.ts }), m); },
  dismiss: (e) => { dismissed.add(e.ts); draw(); },
  press: async (at, block, action, value) => {
    try { await runAction("click", { as: state.me, channel: at.channel, ts: at.ts, view: at.view, block, action, value }); return ""; } catch (e) { return e.message; }
  },
};

function redrawMessage(ts) {
  for (const l of Object.values(lists)) { const m = l.messages.get(ts); if (m) m.version = ++version; if (l.root && l.root.ts === ts) l.root.version = ++version; }
  for (const e of state.ephemeral || []) if (e.ts === ts) e.version = ++version;
  draw();
}

// showFailure shows the error of a promise at the composer of the list that the message is in.
async function showFailure(promise, m) {
  try { await promise; } catch (e) { (m && m.thread_ts && current.thread ? composers.thread : composers.channel).say(e.message); }
}

// ---- state

async function load(as) {
  state = await get("state", { as: as || sessionStorage.getItem("as") || "" });
  state.ephemeral = state.ephemeral || [];
  position = state.place;
  sessionStorage.setItem("as", state.me);
  if (!names.channel(current.channel) || !names.channel(current.channel).in) current.channel = state.channel;
  drawFrame();
  await Promise.all([loadList("channel"), current.thread && loadList("thread")]);
  composers.channel.refresh();
  composers.thread.refresh();
  showViews(state.views, ctx);
  stream();
}

async function loadList(name, before) {
  const l = before ? lists[name] : (lists[name] = newList());
  if (l.loading) return;
  l.loading = true;
  $(name + "-list").setAttribute("aria-busy", "true"); // nobody wants to hear all of it
  try {
    const q = { as: state.me, channel: current.channel, limit: String(pageSize) };
    if (name === "thread") q.thread = current.thread;
    if (before) q.before = before;
    const got = await get("history", q);
    if (l !== lists[name]) return; // somebody went elsewhere meanwhile
    const old = [...l.messages.values()];
    l.messages = new Map();
    for (const m of got.messages) setMessage(l, m);
    for (const m of old) l.messages.set(m.ts, m);
    l.more = got.more;
    if (got.root) { l.root = got.root; l.root.version = ++version; }
  } catch (e) { banner(e.message); } finally { l.loading = false; requestAnimationFrame(() => requestAnimationFrame(() => $(name + "-list").removeAttribute("aria-busy"))); }
  draw();
}

function setMessage(l, m) { m.version = ++version; l.messages.set(m.ts, m); }

// stream opens the event stream at the known position.
function stream() {
  if (source) source.close();
  const q = { as: state.me, since: position, channel: current.channel, thread: current.thread };
  if (trafficOn) q.wire = "1";
  const s = new EventSource("/api/stream?" + new URLSearchParams(q));
  source = s;
  s.addEventListener("news", (e) => { position = e.lastEventId; applyChanges(JSON.parse(e.data)); });
  s.addEventListener("reset", () => load(state.me));
  s.addEventListener("scene", (e) => { if (state.backstage) showState(JSON.parse(e.data), ctx); });
  s.addEventListener("wire", (e) => addTraffic(JSON.parse(e.data)));
  s.onopen = () => { banner(""); document.body.dataset.stream = "open"; };
  s.onerror = () => {
    document.body.dataset.stream = "lost";
    banner("The demo does not answer. Is it still running?");
    if (s.readyState === EventSource.CLOSED && s === source) setTimeout(() => { if (s === source) stream(); }, 2000);
  };
}

function applyChanges(changes) {
  for (const c of changes) {
    if (c.kind === "message") applyMessage(c.message);
    else if (c.kind === "ephemeral") applyEphemeral(c.ephemeral);
    else if (c.kind === "views") { state.views = c.views || []; showViews(state.views, ctx); }
    else if (c.kind === "home") { state.home = c.home; drawHome(); }
    else if (c.kind === "status") { state.statuses[c.key] = c.status; drawStatus(); }
    else if (c.kind === "places") { state.people = c.people; state.channels = c.channels; drawFrame(); }
  }
  draw();
}

// applyMessage adds a message, replaces it, or removes it.
function applyMessage(m) {
  if (m.channel !== current.channel) return;
  const reply = m.thread_ts && m.thread_ts !== m.ts;
  if (current.thread && m.ts === current.thread) { lists.thread.root = m.gone ? null : m; m.version = ++version; }
  if (m.gone) { lists.channel.messages.delete(m.ts); lists.thread.messages.delete(m.ts); return; }
  if (!reply || m.broadcast) upsertMessage(lists.channel, m, "channel");
  if (reply && m.thread_ts === current.thread) upsertMessage(lists.thread, m, "thread");
}

function upsertMessage(l, m, name) {
  const was = l.messages.get(m.ts);
  const all = [...l.messages.keys()];
  if (!was && all.length && Number(m.ts) < Number(all[0]) && l.more) return; // older than what is shown
  if (!was) announceMessage(m, name);
  else noteReactions(was, m);
  setMessage(l, m);
  if (!was && all.length && Number(m.ts) < Number(all[all.length - 1])) l.messages = new Map([...l.messages].sort((a, b) => Number(a[0]) - Number(b[0])));
  trim(name);
}

// trim removes the oldest messages of a long list while it is scrolled to its end. "Older messages" loads them again.
function trim(name) {
  const l = lists[name];
  const drop = l.messages.size - maxShown;
  if (drop <= 0 || !stuck[name] || l.loading) return;
  for (const ts of [...l.messages.keys()].slice(0, drop)) l.messages.delete(ts);
  l.more = true;
  draw();
}

function noteReactions(was, m) {
  const had = new Set((was.reactions || []).map((r) => r.name));
  for (const r of m.reactions || []) if (!had.has(r.name)) { newReactions.set(m.ts + r.name, performance.now()); if (m.user === state.me) announce("Reaction: " + r.name.replaceAll("_", " ")); }
}

// announceMessage tells a screen reader of a message that is not on the screen.
function announceMessage(m, name) {
  const who = names.person(m.user);
  if (name === "channel" && current.place !== "channel") announce("New message in the channel from " + (who ? who.name : "somebody"));
}

function applyEphemeral(e) {
  state.ephemeral = state.ephemeral.filter((o) => o.ts !== e.ts);
  if (!e.deleted) state.ephemeral.push({ ...e, version: ++version });
}

// ---- drawing

let planned = false;
function draw() {
  if (planned) return;
  planned = true;
  requestAnimationFrame(() => { planned = false; drawList("channel"); drawList("thread"); drawThreadHead(); drawStatus(); });
}

function atBottom(name) { const s = $(name + "-scroll"); return s.scrollHeight - s.scrollTop - s.clientHeight < 80; }

// Lists stay at their end while somebody is there, also when a picture comes or the window changes.
const stuck = { channel: true, thread: true };
for (const name of ["channel", "thread"]) {
  const scroll = $(name + "-scroll");
  let was = 0; // only who scrolls up leaves the end: what grows below it does not take anybody away from it
  scroll.addEventListener("scroll", () => {
    if (atBottom(name)) { stuck[name] = true; trim(name); }
    else if (scroll.scrollTop < was - 2) stuck[name] = false;
    was = scroll.scrollTop;
  }, { passive: true });
  const end = new ResizeObserver(() => { if (stuck[name]) scroll.scrollTop = scroll.scrollHeight; });
  end.observe(scroll);
  end.observe($(name + "-list"));
}

function drawList(name) {
  const l = lists[name];
  const scroll = $(name + "-scroll");
  const stick = stuck[name] || !scroll.dataset.filled;
  const items = [];
  if (name === "thread" && l.root) items.push(item(l.root, "thread"), { key: "count", sig: l.root.reply_count || 0, make: () => h("div", { class: "rule" }, h("span", {}, counted(l.root.reply_count || 0))) });
  if (l.more) items.push({ key: "older", sig: "older", make: () => h("button", { type: "button", class: "older", on: { click: () => older(name) } }, "Older messages") });
  else if (name === "channel" && state) items.push({ key: "begin", sig: current.channel, make: () => beginning() });
  let last = "";
  for (const m of merged(l, name)) {
    const d = day(m.ts);
    if (name === "channel" && d !== last) items.push({ key: "day-" + d, sig: d, make: () => h("div", { class: "rule day" }, h("span", {}, d)) });
    last = d;
    items.push(m.whisper ? { key: "e" + m.ts, sig: m.whisper.version || 0, make: () => ephemeral(m.whisper, ctx) } : item(m, name));
  }
  keyed($(name + "-list"), items);
  roving($(name + "-list"));
  if (stick) { stuck[name] = true; scroll.scrollTop = scroll.scrollHeight; }
  if (l.messages.size) scroll.dataset.filled = "1";
}

function counted(n) { return n === 0 ? "No replies yet" : n === 1 ? "1 reply" : n + " replies"; }

function item(m, name) {
  return { key: (name === "thread" && lists.thread.root && m.ts === lists.thread.root.ts ? "root" : "m") + m.ts, sig: m.version + (ctx.isOpen(m) && name === "channel" ? "o" : "") + state.me, make: () => message(m, ctx, name) };
}

// merged is the messages with what only this member sees between them.
function merged(l, name) {
  const all = [...l.messages.values()];
  const oldest = all.length && l.more ? Number(all[0].ts) : 0;
  const mine = state.ephemeral.filter((e) => e.channel === current.channel && (name === "thread" ? e.thread === current.thread && current.thread : !e.thread) && !dismissed.has(e.ts) && Number(e.ts) >= oldest);
  return all.concat(mine.map((e) => ({ ts: e.ts, whisper: e }))).sort((a, b) => Number(a.ts) - Number(b.ts));
}

function beginning() {
  const c = names.channel(current.channel);
  return h("div", { class: "begin" }, h("h2", {}, "#" + (c ? c.name : "")), h("p", {}, "This is where the bot announces its sessions. The thread under an announcement is the session: reply there to talk to its agent."));
}

// roving leaves one stop for the Tab key in a list; the arrow keys go on from there.
function roving(list) {
  const all = [...list.querySelectorAll(":scope > article")];
  if (!all.some((a) => a.tabIndex === 0) && all.length) all[all.length - 1].tabIndex = 0;
}

for (const id of ["channel-list", "thread-list"]) {
  $(id).addEventListener("keydown", (e) => {
    const now = e.target;
    if (now.tagName !== "ARTICLE" || !["ArrowUp", "ArrowDown", "Home", "End"].includes(e.key)) return;
    const all = [...$(id).querySelectorAll(":scope > article")];
    const i = all.indexOf(now);
    const to = { ArrowUp: all[i - 1], ArrowDown: all[i + 1], Home: all[0], End: all[all.length - 1] }[e.key];
    if (!to) return;
    e.preventDefault();
    now.tabIndex = -1; to.tabIndex = 0; to.focus();
  });
}

async function older(name) {
  const l = lists[name];
  const first = l.messages.keys().next().value;
  const scroll = $(name + "-scroll");
  const from = scroll.scrollHeight - scroll.scrollTop;
  stuck[name] = false;
  await loadList(name, first);
  requestAnimationFrame(() => requestAnimationFrame(() => { scroll.scrollTop = scroll.scrollHeight - from; }));
}

function drawFrame() {
  const badge = { good: "on the list", bad: "not on the list" };
  keyed($("who"), state.visitors.map((v, i) => ({ key: v.user, sig: v.user + state.me, make: () => {
    const p = names.person(v.user);
    const chosen = v.user === state.me;
    return h("button", { type: "button", role: "radio", class: "person " + (v.in ? "in" : "out"), "aria-checked": String(chosen), tabindex: chosen ? "0" : "-1", title: v.about, data: { user: v.user, focus: "who" + i }, on: { click: () => switchPersona(v.user) } },
      avatar(p, "small"), h("span", { class: "person-words" }, h("strong", {}, p ? p.realName : v.user), h("small", {}, v.role || badge.good)));
  } })));
  const me = state.visitors.find((v) => v.user === state.me);
  $("about").replaceChildren(h("span", { class: me.in ? "dot in" : "dot out", "aria-hidden": "true" }), h("span", {}, me.about));
  keyed($("channels"), state.channels.map((c) => ({ key: c.id, sig: JSON.stringify([c, current.place, current.channel]), make: () => h("li", {}, h("button", { type: "button", class: "place", "aria-current": current.place === "channel" && current.channel === c.id ? "page" : null, disabled: !c.in, data: { focus: c.id }, on: { click: () => goChannel(c.id) } }, icon("hash"), h("span", {}, c.name), c.shared && h("small", { title: "Shared with another company" }, "shared"))) })));
  const bot = names.person(state.bot);
  keyed($("apps"), [{ key: "home", sig: current.place, make: () => h("li", {}, h("button", { type: "button", class: "place", "aria-current": current.place === "home" ? "page" : null, data: { focus: "home" }, on: { click: goHome } }, avatar(bot, "tiny"), h("span", {}, bot ? bot.name : "app"), h("small", {}, "home"))) }]);
  const c = names.channel(current.channel);
  $("channel-title").textContent = current.place === "home" ? (bot ? bot.name : "Home") : "#" + (c ? c.name : "");
  $("channel-sub").textContent = current.place === "home" ? "Home tab" : c ? c.members + " members" + (c.shared ? ", one of another company" : "") : "";
  $("tips").hidden = !(state.tips || []).length;
  keyed($("tips").querySelector("ol"), (state.tips || []).map((t) => ({ key: t, sig: t, make: () => h("li", {}, t) })));
  $("home").hidden = current.place !== "home";
  $("channel-scroll").hidden = $("channel-composer").hidden = current.place === "home";
  $("thread-pane").hidden = !current.thread || current.place === "home";
  $("stage-pane").hidden = !state.backstage;
  $("show-stage").hidden = !state.backstage;
  document.body.dataset.place = current.place;
  document.body.classList.toggle("with-thread", !$("thread-pane").hidden);
  document.body.classList.toggle("with-stage", state.backstage);
}

$("who").addEventListener("keydown", (e) => {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
  if (!step) return;
  e.preventDefault();
  const all = state.visitors.map((v) => v.user);
  switchPersona(all[(all.indexOf(state.me) + step + all.length) % all.length]);
});

function drawHome() {
  const bot = names.person(state.bot);
  $("home").replaceChildren(state.home
    ? h("div", { class: "home-body" }, blocks(state.home.blocks, { names, press: (block, action, value) => ctx.press({ view: state.home.id }, block, action, value) }))
    : h("p", { class: "empty" }, (bot ? bot.name : "The app") + " has shown nothing here yet."));
}

function drawThreadHead() {
  const root = lists.thread.root;
  $("thread-sub").textContent = root ? "#" + (names.channel(current.channel) || { name: "" }).name : "";
}

function drawStatus() {
  const text = current.thread ? state.statuses[current.channel + "/" + current.thread] : "";
  const bot = names.person(state.bot);
  const line = $("thread-status");
  if ((line.dataset.text || "") === (text || "")) return;
  line.dataset.text = text || "";
  line.replaceChildren(...(text ? [h("span", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i")), h("span", {}, (bot ? bot.name : "app") + " " + text)] : []));
}

function banner(text) { const b = $("banner"); b.hidden = !text; b.textContent = text; }

// ---- navigation

function saveLocation() { history.replaceState(null, "", "#" + [current.place, current.channel, current.thread, document.body.dataset.pane].join("/")); }

function restoreLocation() {
  const [p, c, t, pane] = location.hash.slice(1).split("/");
  if (p === "home" || p === "channel") current = { place: p, channel: c || "", thread: t || "" };
  if (pane) document.body.dataset.pane = pane;
}

function pane(name) { document.body.dataset.pane = name; saveLocation(); }

async function switchPersona(user) {
  if (user === state.me) return;
  for (const s of ["channel", "thread"]) delete $(s + "-scroll").dataset.filled;
  await load(user);
  if (current.place === "home") openHome();
  announce("You write as " + names.person(user).realName);
  document.querySelector(`#who [data-user="${CSS.escape(user)}"]`)?.focus({ preventScroll: true });
}

function goChannel(id) {
  const same = current.channel === id;
  current = { place: "channel", channel: id, thread: same ? current.thread : "" };
  menu(false);
  pane("channel");
  drawFrame();
  if (same) { draw(); return; }
  delete $("channel-scroll").dataset.filled;
  loadList("channel");
  composers.channel.refresh();
  stream();
}

async function openHome() { drawHome(); await showFailure(runAction("home", { as: state.me })); }

function goHome() {
  current.place = "home";
  menu(false);
  pane("channel");
  drawFrame();
  openHome();
}

function openThread(ts, focus) {
  if (current.thread !== ts) {
    current.thread = ts;
    delete $("thread-scroll").dataset.filled;
    lists.thread = newList();
    $("thread-list").replaceChildren();
    loadList("thread");
    composers.thread.refresh();
    stream();
  }
  pane("thread");
  drawFrame();
  draw();
  if (focus) (matchMedia("(pointer: fine)").matches ? composers.thread.focus() : $("thread-title").focus());
}

function closeThread() {
  const ts = current.thread;
  current.thread = "";
  pane("channel");
  drawFrame();
  draw();
  stream();
  const root = document.querySelector(`#channel-list [data-ts="${CSS.escape(ts)}"]`);
  if (root) root.focus();
}

function menu(on) { document.body.classList.toggle("places-open", on); $("menu").setAttribute("aria-expanded", String(on)); }

async function edit(m) {
  const dialog = $("ask");
  const box = h("textarea", { rows: "5", dir: "auto", "aria-label": "Message" });
  box.value = plainText(m);
  const form = h("form", { method: "dialog", class: "edit" }, h("h2", { id: "ask-title" }, "Edit message"), box,
    h("div", { class: "modal-foot" }, h("button", { type: "button", class: "button", on: { click: () => dialog.close() } }, "Cancel"), h("button", { type: "submit", class: "button primary" }, "Save")));
  form.addEventListener("submit", () => showFailure(runAction("edit", { as: state.me, channel: m.channel, ts: m.ts, text: box.value }), m));
  dialog.onclose = null;
  dialog.replaceChildren(form);
  dialog.showModal();
  box.focus();
}

// plainText is a message as it was typed, or nearly.
function plainText(m) {
  return (m.text || "").replace(/<@([A-Z0-9]+)(\|[^>]*)?>/g, (_, id) => "@" + (names.person(id) || { name: id }).name).replace(/<([^<>|]+)(\|([^<>]*))?>/g, (_, url, __, label) => label || url)
    .replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
}

// ---- writing

const commandWord = /^\/[a-zA-Z][\w-]*(\s|$)/;

async function write(thread, text, files, alsoSend) {
  const at = { as: state.me, channel: current.channel, thread: thread ? current.thread : "" };
  const command = !files.length && commandWord.exec(text);
  if (command) {
    const [name] = text.split(/\s/, 1);
    await runAction("slash", { ...at, name, text: text.slice(name.length).trim() });
  } else if (files.length) await send({ ...at, text }, files);
  else await runAction("post", { ...at, text, alsoSend });
  const name = thread ? "thread" : "channel";
  stuck[name] = true;
  $(name + "-scroll").scrollTop = $(name + "-scroll").scrollHeight;
}

function suggestions(text, thread) {
  if (text.startsWith("/") && !text.includes("\n")) {
    if (thread) return [{ title: text.split(/\s/)[0], what: "Slash commands do not work in threads: mention the bot instead, as in @" + botName() + " restart", refused: true }];
    return (state.commands || []).map((c) => ({ title: c.name + (c.text ? " " + c.text : ""), hint: c.hint, what: c.what, insert: c.name + (c.text ? " " + c.text : "") + (c.hint ? " " : "") }))
      .filter((s) => s.title.startsWith(text.trimEnd()) && s.title !== text.trimEnd()).slice(0, 12);
  }
  const at = /(^|\s)@([\w-]*)$/.exec(text);
  if (at) {
    return state.people.filter((p) => p.name.startsWith(at[2]) && p.name !== at[2]).slice(0, 6).map((p) => ({ title: "@" + p.name, what: p.bot ? "app" : "", insert: text.slice(0, text.length - at[2].length) + p.name + " " }));
  }
  return [];
}

function botName() { return (names.person(state.bot) || { name: "the-loop" }).name; }

const composers = {
  channel: composer({ thread: false, key: () => current.channel, label: () => "Message #" + (names.channel(current.channel) || { name: "" }).name, suggestions: (t) => suggestions(t, false), send: (text, files) => write(false, text, files, false) }),
  thread: composer({ thread: true, key: () => current.channel + current.thread, label: () => "Reply in the thread", suggestions: (t) => suggestions(t, true), send: (text, files, also) => write(true, text, files, also) }),
};

// ---- the frame

$("channel-composer").replaceWith(Object.assign(composers.channel.root, { id: "channel-composer" }));
$("thread-composer").replaceWith(Object.assign(composers.thread.root, { id: "thread-composer" }));
for (const [id, name] of [["menu", "menu"], ["thread-back", "back"], ["stage-back", "back"], ["thread-close", "close"]]) $(id).append(icon(name));
$("menu").addEventListener("click", () => menu(!document.body.classList.contains("places-open")));
$("thread-back").addEventListener("click", () => { pane("channel"); $("channel-title").focus(); });
$("thread-close").addEventListener("click", closeThread);
$("stage-back").addEventListener("click", () => pane("thread"));
$("show-stage").addEventListener("click", () => pane(document.body.dataset.pane === "stage" ? "thread" : "stage"));
$("wire-switch").addEventListener("click", () => {
  trafficOn = !trafficOn;
  $("wire-switch").setAttribute("aria-checked", String(trafficOn));
  showTraffic(trafficOn, ctx);
  if (trafficOn) pane("stage");
  stream();
});
document.addEventListener("keydown", (e) => {
  if (e.key !== "Escape" || e.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (document.body.classList.contains("places-open")) menu(false);
  else if (current.thread && $("thread-pane").contains(document.activeElement)) closeThread();
});

// start shows the newest announcement's thread at first, where there is room for it.
async function start() {
  restoreLocation();
  await load();
  if (current.place === "home") openHome();
  const announced = [...lists.channel.messages.values()].filter((m) => m.user === state.bot && !m.subtype).at(-1);
  if (!current.thread && !location.hash && announced && matchMedia("(min-width: 900px)").matches) openThread(announced.ts, false);
  drawFrame();
  document.body.dataset.ready = "1";
}

start().catch((e) => banner(e.message));

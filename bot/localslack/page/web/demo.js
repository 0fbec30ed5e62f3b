// The agent's terminal, what is known of its session, and the controls that simulate faults.
import { $, h, keyed, announce } from "./dom.js";
import { runAction } from "./api.js";

let elements = null;
let widest = 0;

function build(ctx) {
  const title = h("span", { class: "terminal-title" });
  const screen = h("pre", { class: "screen", tabindex: "0", "aria-label": "The agent's terminal", data: { role: "screen" } });
  const terminal = h("div", { class: "terminal" }, h("div", { class: "terminal-bar" }, h("i"), h("i"), h("i"), title), screen);
  const facts = h("div", { class: "facts" });
  const controls = h("div", { class: "controls" });
  const said = h("p", { class: "said", role: "status" });
  const traffic = h("div", { class: "wire", hidden: true }, h("h3", {}, "On the socket"), h("p", { class: "hint" }, "→ to the bot, ← from it; calls of the Web API between them."), h("ol", { class: "frames", tabindex: "0", "aria-label": "Frames and calls, newest first" }));
  $("stage").replaceChildren(terminal, h("div", { class: "broken" }, h("h3", {}, "Make something go wrong"), controls, said), traffic, facts);
  elements = { title, screen, terminal, facts, controls, said, traffic, frames: traffic.querySelector("ol"), ctx };
  new ResizeObserver(fit).observe(screen);
}

// showState shows how things are.
export function showState(s, ctx) {
  if (!elements) build(ctx);
  $("stage-sub").textContent = s.title || "";
  elements.title.textContent = s.title || "no session";
  drawScreen(s);
  keyed(elements.facts, (s.facts || []).map((f) => ({ key: f.title, sig: JSON.stringify(f), make: () => group(f) })));
  keyed(elements.controls, (s.controls || []).map((c) => ({ key: c.id, sig: JSON.stringify(c), make: () => control(c) })));
}

function drawScreen(s) {
  const lines = s.screen || [];
  elements.terminal.classList.toggle("empty", !s.screen);
  if (!s.screen) { elements.screen.replaceChildren(h("span", { class: "no-screen" }, s.note || "There is no terminal here.")); return; }
  widest = 0;
  keyed(elements.screen, lines.map((line, i) => {
    widest = Math.max(widest, line.reduce((n, r) => n + [...r.t].length, 0));
    return { key: "l" + i, sig: JSON.stringify(line), make: () => h("span", { class: "row" }, line.map(run), "\n") };
  }));
  fit();
}

function run(r) {
  const el = h("span", {}, r.t);
  if (r.f) el.style.color = r.f;
  if (r.b) el.style.backgroundColor = r.b;
  if (r.w) el.style.fontWeight = "700";
  if (r.d) el.style.opacity = ".65";
  const lines = [r.u && "underline", r.s && "line-through"].filter(Boolean).join(" ");
  if (lines) el.style.textDecoration = lines;
  return el;
}

// fit makes the letters as large as the width allows, within reason.
function fit() {
  if (!elements || !widest) return;
  const room = elements.screen.clientWidth - 24;
  const font = Math.max(7.5, Math.min(13, room / widest / 0.603));
  elements.screen.style.fontSize = font.toFixed(2) + "px";
}

function group(f) {
  return h("section", { class: f.wide ? "wide" : "" }, h("h3", {}, f.title), h("dl", {}, f.lines.map((l) => h("div", { class: l.mark || "" }, h("dt", {}, l.name), h("dd", {}, h("bdi", { text: l.value }))))));
}

function control(c) {
  const button = h("button", { type: "button", class: "button", title: c.what, data: { control: c.id, focus: "c" + c.id } }, c.label);
  button.addEventListener("click", async () => {
    if (button.getAttribute("aria-busy") === "true") return;
    button.setAttribute("aria-busy", "true");
    try {
      const out = await runAction("play", { as: elements.ctx.me(), name: c.id, ...elements.ctx.where() });
      elements.said.textContent = out.said || "Done.";
    } catch (e) { elements.said.textContent = e.message; }
    button.removeAttribute("aria-busy");
  });
  return button;
}

// showTraffic shows or hides the frames.
export function showTraffic(on, ctx) {
  if (!elements) build(ctx);
  elements.traffic.hidden = !on;
  elements.frames.replaceChildren();
  if (on) requestAnimationFrame(() => elements.traffic.scrollIntoView({ block: "nearest" }));
  announce(on ? "Frames are shown" : "Frames are hidden");
}

const maxFrames = 150;

// addTraffic adds frames and calls, the newest first. Pings are counted, and not listed.
export function addTraffic(list) {
  if (!elements) return;
  for (const f of list) {
    if (f.kind === "ping" || f.kind === "pong") continue;
    elements.frames.prepend(frame(f));
  }
  while (elements.frames.children.length > maxFrames) elements.frames.lastElementChild.remove();
}

function frame(f) {
  const time = new Date(f.time).toLocaleTimeString([], { hour12: false }) + "." + String(new Date(f.time).getMilliseconds()).padStart(3, "0");
  const call = f.kind === "call";
  const what = call ? f.method : summary(f);
  const bad = call ? !f.ok : /drop|late|ignored/.test(f.note || "");
  const detail = call ? JSON.stringify(f.args, null, 1) : pretty(f.data || "");
  const line = [h("time", {}, time), h("b", {}, call ? "·" : f.dir === "out" ? "→" : "←"), h("span", { class: "what" }, what), h("small", {}, [f.note, f.fault, f.error].filter(Boolean).join(" · "))];
  if (!detail || detail === "{}") return h("li", { class: bad ? "bad" : "" }, h("div", { class: "line" }, line));
  return h("li", { class: bad ? "bad" : "" }, h("details", {}, h("summary", { class: "line" }, line), h("pre", {}, detail)));
}

function summary(f) {
  if (f.kind !== "text") return f.kind + (f.conn ? " #" + f.conn : "");
  try {
    const d = JSON.parse(f.data);
    if (f.dir === "in") return "ack " + String(d.envelope_id || "").slice(0, 8);
    const inner = d.payload && d.payload.event ? d.payload.event.type : d.payload && (d.payload.command || d.payload.type);
    return d.type + (inner ? " · " + inner : "") + (d.reason ? " · " + d.reason : "");
  } catch { return f.dir === "in" ? "ack" : "frame"; }
}

function pretty(text) { try { return JSON.stringify(JSON.parse(text), null, 1); } catch { return text; } }

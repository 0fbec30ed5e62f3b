// The modal on top of those that the app has opened.
import { $, h } from "./dom.js";
import { blocks, read } from "./blocks.js";
import { runAction } from "./api.js";

let shown = null; // the view that is on the screen
let values = {};
let wrong = {};
let failure = "";
let opener = null;

export function showViews(views, ctx) {
  const dialog = $("modal");
  const top = views[views.length - 1];
  if (!top) {
    shown = null;
    if (dialog.open) dialog.close();
    if (opener && opener.isConnected) opener.focus({ preventScroll: true });
    opener = null;
    return;
  }
  if (shown && shown.id === top.id && shown.hash === top.hash) return;
  if (!dialog.open) opener = document.activeElement;
  if (!shown || shown.id !== top.id) values = {};
  else collect();
  wrong = {}; failure = "";
  shown = top;
  draw(ctx);
  if (!dialog.open) dialog.showModal();
  first();
}

function first() {
  const form = $("modal");
  const bad = form.querySelector("[aria-invalid=true]");
  const field = bad || form.querySelector(".modal-body input, .modal-body textarea, .modal-body select, .modal-body button") || form.querySelector(".modal-foot button.primary, .modal-foot button");
  const target = field && field.tagName === "FIELDSET" ? field.querySelector("input") : field;
  (target || form).focus();
}

// collect keeps what was entered, and returns what is to be sent: not what was empty and still is.
function collect() {
  const sent = {};
  for (const el of $("modal").querySelectorAll("[data-block]")) {
    const value = read(el);
    values[el.dataset.block] = value;
    if (value !== "" || el.dataset.initial !== "") sent[el.dataset.block] = value;
  }
  return sent;
}

function draw(ctx) {
  const v = shown;
  const dialog = $("modal");
  const place = { names: ctx.names, values, wrong, press: (block, action, value) => ctx.press({ view: v.id }, block, action, value) };
  const close = () => cancel(ctx);
  const form = h("form", { class: "modal-form", novalidate: true },
    h("div", { class: "modal-head" }, h("h2", { id: "modal-title", tabindex: "-1", text: v.title }), h("button", { type: "button", class: "icon-button plain-x", "aria-label": "Close", on: { click: close } }, "×")),
    h("div", { class: "modal-body" }, blocks(v.blocks, place)),
    h("p", { class: "wrong modal-failure", role: "alert", text: failure }),
    h("div", { class: "modal-foot" }, h("button", { type: "button", class: "button", text: v.close || "Close", on: { click: close } }), v.submit && h("button", { type: "submit", class: "button primary", text: v.submit })));
  form.addEventListener("submit", (e) => { e.preventDefault(); submit(ctx, form); });
  dialog.replaceChildren(form);
  dialog.oncancel = (e) => { e.preventDefault(); close(); };
}

async function cancel(ctx) {
  const id = shown.id;
  try { await runAction("close", { as: ctx.me(), view: id }); } catch { /* it closes all the same */ }
}

async function submit(ctx, form) {
  const v = shown;
  const sent = collect();
  const button = form.querySelector("[type=submit]");
  if (button.getAttribute("aria-busy") === "true") return;
  button.setAttribute("aria-busy", "true");
  wrong = {}; failure = "";
  try {
    const out = await runAction("submit", { as: ctx.me(), view: v.id, values: sent });
    wrong = out.errors || {};
  } catch (e) { failure = e.message; }
  button.removeAttribute("aria-busy");
  if (shown && shown.id === v.id && shown.hash === v.hash && (failure || Object.keys(wrong).length)) { draw(ctx); first(); }
}

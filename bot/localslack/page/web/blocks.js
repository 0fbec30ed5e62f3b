// Block Kit as elements. What is not known here is named, and not hidden.
import { h, confirmed } from "./dom.js";
import { textObject, richText, markdown, mrkdwn } from "./text.js";

// place says where blocks stand: names (people and channels), press(block, action, value), and values, when they are a
// form's: entered values by block id, and what is wrong, by block id.
export function blocks(list, place) {
  if (!Array.isArray(list)) return [];
  return list.map((b) => h("div", { class: "block block-" + String(b.type).replace(/[^a-z_]/g, "") }, renderBlock(b, place)));
}

function renderBlock(b, place) {
  switch (b.type) {
    case "section": return section(b, place);
    case "header": return h("div", { class: "heading level-2", role: "heading", "aria-level": "3" }, textObject(b.text, place.names));
    case "divider": return h("hr");
    case "context": return h("div", { class: "context" }, (b.elements || []).map((e) => (e.type === "image" ? picture(e, place, "small") : h("span", {}, textObject(e, place.names)))));
    case "actions": case "context_actions": return h("div", { class: "actions" }, (b.elements || []).map((e) => element(e, b, place)));
    case "input": return input(b, place);
    case "image": return figure(b, place);
    case "rich_text": return richText(b, place.names);
    case "markdown": return h("div", { class: "markdown" }, markdown(b.text || "", place.names));
    case "table": return table(b, place);
    default: return unknown(b.type, b);
  }
}

function section(b, place) {
  const body = h("div", { class: "section-text" }, textObject(b.text, place.names));
  const fields = (b.fields || []).map((f) => h("div", { class: "field" }, textObject(f, place.names)));
  return [h("div", { class: "section" }, body, b.accessory && h("div", { class: "accessory" }, element(b.accessory, b, place))), fields.length > 0 && h("div", { class: "fields" }, fields)];
}

function table(b, place) {
  const cell = (c) => (c && c.type === "rich_text" ? richText(c, place.names) : String((c && c.text) || ""));
  const rows = (b.rows || []).map((r, i) => h("tr", {}, r.map((c) => h(i === 0 ? "th" : "td", { dir: "auto" }, cell(c)))));
  return h("div", { class: "table" }, h("table", {}, h("tbody", {}, rows)));
}

function unknown(kind, what) {
  return h("details", { class: "unknown" }, h("summary", {}, "Something of the type “" + kind + "”, which this page does not draw"), h("pre", {}, JSON.stringify(what, null, 1).slice(0, 4000)));
}

function figure(b, place) {
  const title = b.title ? h("figcaption", {}, textObject(b.title, place.names)) : null;
  return h("figure", {}, title, picture(b, place, "large"));
}

// picture is a picture of this workspace. One from elsewhere is not fetched: it is named.
function picture(e, place, size) {
  const id = e.slack_file && (e.slack_file.id || place.names.fileOf(e.slack_file.url));
  if (id) return h("img", { class: "picture " + size, src: "/files/" + encodeURIComponent(id), alt: e.alt_text || "", loading: "lazy" });
  const local = place.names.fileOf(e.image_url || "");
  if (local) return h("img", { class: "picture " + size, src: "/files/" + encodeURIComponent(local), alt: e.alt_text || "", loading: "lazy" });
  return h("span", { class: "elsewhere", title: e.image_url || "" }, "Picture, not fetched: " + (e.alt_text || e.image_url || ""));
}

// element is something to press or to choose. In a message and in the Home tab it acts at once.
function element(e, b, place) {
  if (e.type === "button") return button(e, b, place);
  if (e.type === "image") return picture(e, place, "thumb");
  const made = control(e, place.values ? enteredValue(b, e, place) : initial(e), place, (value) => runElementAction(e, b, place, value, made));
  if (made && !made.getAttribute("aria-label") && made.tagName !== "FIELDSET") made.setAttribute("aria-label", (e.placeholder && e.placeholder.text) || e.type.replaceAll("_", " "));
  if (made && place.values) Object.assign(made.dataset, { block: b.block_id, initial: initial(e) });
  return made || unknown(e.type, e);
}

function button(e, b, place) {
  const style = e.style === "primary" || e.style === "danger" ? " " + e.style : "";
  if (e.url) {
    return h("a", { class: "button" + style, href: /^https?:/.test(e.url) ? e.url : "#", target: "_blank", rel: "noopener noreferrer nofollow" }, textObject(e.text, place.names));
  }
  const el = h("button", { type: "button", class: "button" + style, data: { action: e.action_id, focus: "b" + b.block_id + e.action_id }, "aria-label": e.accessibility_label }, textObject(e.text, place.names));
  el.addEventListener("click", () => runElementAction(e, b, place, undefined, el));
  return el;
}

// runElementAction tells the app, and shows at the element that its answer is awaited, or did not come.
async function runElementAction(e, b, place, value, el) {
  if (el.getAttribute("aria-busy") === "true") return;
  if (e.confirm && !(await confirmed({ title: plain(e.confirm.title), text: plain(e.confirm.text), confirm: plain(e.confirm.confirm), deny: plain(e.confirm.deny), style: e.confirm.style }))) return;
  el.setAttribute("aria-busy", "true");
  const host = el.closest(".block") || el;
  host.querySelector(":scope > .failed")?.remove();
  const failure = await place.press(b.block_id, e.action_id, value);
  el.removeAttribute("aria-busy");
  if (failure) host.append(h("p", { class: "failed", role: "alert" }, failure));
}

const plain = (t) => (t && t.text) || "";

// initial is what an element holds that nobody has touched.
function initial(e) {
  const one = e.initial_value ?? e.initial_date ?? e.initial_time ?? e.initial_user ?? e.initial_channel ?? e.initial_conversation ?? e.initial_option?.value;
  if (one !== undefined) return String(one);
  return (e.initial_options || []).map((o) => o.value).join(",");
}

function enteredValue(b, e, place) {
  const known = place.values[b.block_id];
  return known === undefined ? initial(e) : known;
}

// control makes what something is entered with; null when that is not known. changed gets the value as it is now.
function control(e, value, place, changed) {
  const on = { change: (ev) => changed(read(ev.currentTarget)) };
  const hint = plain(e.placeholder);
  switch (e.type) {
    case "plain_text_input": case "rich_text_input":
      if (e.multiline || e.type === "rich_text_input") return h("textarea", { rows: "4", placeholder: hint, maxlength: e.max_length, value, dir: "auto", on });
      return h("input", { type: "text", placeholder: hint, maxlength: e.max_length, value, dir: "auto", autocomplete: "off", on });
    case "email_text_input": return h("input", { type: "email", placeholder: hint, value, on });
    case "url_text_input": return h("input", { type: "url", placeholder: hint, value, on });
    case "number_input": return h("input", { type: "number", placeholder: hint, value, min: e.min_value, max: e.max_value, step: e.is_decimal_allowed ? "any" : "1", on });
    case "datepicker": return h("input", { type: "date", value, on });
    case "timepicker": return h("input", { type: "time", value, on });
    case "static_select": case "overflow": return select(e, options(e), value, hint, on);
    case "users_select": return select(e, place.names.people().map((p) => [p.id, "@" + p.name]), value, hint, on);
    case "conversations_select": case "channels_select": return select(e, place.names.channels().map((c) => [c.id, "#" + c.name]), value, hint, on);
    case "multi_static_select": return choices(e, "checkbox", value, place, changed);
    case "checkboxes": return choices(e, "checkbox", value, place, changed);
    case "radio_buttons": return choices(e, "radio", value, place, changed);
    default: return null;
  }
}

// read is the value of an element as it is now.
export function read(el) {
  if (el.tagName === "FIELDSET") return [...el.querySelectorAll("input:checked")].map((i) => i.value).join(",");
  return el.value;
}

function options(e) {
  const groups = (e.option_groups || []).flatMap((g) => g.options || []);
  return (e.options || []).concat(groups).map((o) => [o.value, plain(o.text)]);
}

function select(e, list, value, hint, on) {
  const none = h("option", { value: "" }, e.type === "overflow" ? "More…" : hint || "Choose");
  return h("select", { on }, none, list.map(([v, text]) => h("option", { value: v, selected: v === value }, text)));
}

let groups = 0;

function choices(e, kind, value, place, changed) {
  const chosen = value.split(",");
  const name = "choice-" + ++groups;
  const list = (e.options || []).concat((e.option_groups || []).flatMap((g) => g.options || []));
  const set = h("fieldset", { class: "choices", on: { change: () => changed(read(set)) } }, list.map((o) => h("label", {},
    h("input", { type: kind, name, value: o.value, checked: chosen.includes(o.value) }),
    h("span", {}, textObject(o.text, place.names), o.description && h("small", {}, textObject(o.description, place.names))))));
  return set;
}

let fields = 0;

// input is a field of a form with its label, its hint and what is wrong with it.
function input(b, place) {
  const e = b.element || {};
  const id = "field-" + ++fields;
  const made = control(e, place.values ? enteredValue(b, e, place) : initial(e), place, (value) => { if (!place.values || b.dispatch_action) runElementAction(e, b, place, value, made); });
  const wrong = place.wrong && place.wrong[b.block_id];
  if (!made) return unknown(e.type, b);
  made.dataset.block = b.block_id;
  made.dataset.initial = initial(e);
  made.dataset.focus = "f" + b.block_id;
  const notes = [];
  const hint = b.hint && h("p", { class: "hint", id: id + "-hint" }, textObject(b.hint, place.names));
  if (hint) notes.push(id + "-hint");
  if (wrong) { notes.push(id + "-wrong"); made.setAttribute("aria-invalid", "true"); }
  if (notes.length) made.setAttribute("aria-describedby", notes.join(" "));
  const label = [h("span", {}, textObject(b.label, place.names)), b.optional && h("em", {}, "optional")];
  const said = wrong && h("p", { class: "wrong", id: id + "-wrong", role: "alert" }, mrkdwn(wrong, place.names));
  if (made.tagName === "FIELDSET") {
    made.prepend(h("legend", { class: "label" }, label));
    return [made, said, hint];
  }
  made.id = id;
  return [h("label", { class: "label", for: id }, label), made, said, hint];
}

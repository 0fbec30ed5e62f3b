// What everything here is built with. Nothing is ever made from a string of HTML: text is text.

// h makes an element. Properties: class, text, on (listeners), data, style (through the CSSOM), else attributes.
export function h(tag, props, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") el.className = value;
    else if (name === "text") el.textContent = value;
    else if (name === "on") for (const [event, fn] of Object.entries(value)) el.addEventListener(event, fn);
    else if (name === "data") Object.assign(el.dataset, value);
    else if (name === "style") Object.assign(el.style, value);
    else if (name === "value") el.value = value;
    else el.setAttribute(name, value === true ? "" : value);
  }
  add(el, children);
  return el;
}

export function add(el, children) {
  for (const c of [children].flat(Infinity)) {
    if (c === undefined || c === null || c === false || c === "") continue;
    el.append(c);
  }
  return el;
}

export const $ = (id) => document.getElementById(id);

const paths = {
  reply: "M4 5h12a1 1 0 0 1 1 1v7a1 1 0 0 1-1 1H9l-4 3v-3H4a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1z",
  smile: "M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM7.5 8.5h.01M12.5 8.5h.01M7 12c1.6 1.9 4.4 1.9 6 0",
  more: "M5 10h.01M10 10h.01M15 10h.01",
  close: "M5 5l10 10M15 5L5 15",
  back: "M12 4l-6 6 6 6",
  menu: "M3 5.5h14M3 10h14M3 14.5h14",
  clip: "M15.5 9.5l-5.8 5.8a3.5 3.5 0 0 1-5-5l6-6a2.3 2.3 0 0 1 3.3 3.3l-6 6a1.1 1.1 0 0 1-1.6-1.6l5.4-5.4",
  send: "M3.5 10L17 3.5 12.5 17l-2.6-5.4L3.5 10zM9.9 11.6l3-3.4",
  hash: "M8 3L6 17M14 3l-2 14M3.5 7.5h14M2.5 12.5h14",
  app: "M4 4h5v5H4zM11 4h5v5h-5zM4 11h5v5H4zM11 11h5v5h-5z",
  file: "M6 2.5h5.5L16 7v10.5H6zM11.5 2.5V7H16",
  eye: "M2 10s3-5 8-5 8 5 8 5-3 5-8 5-8-5-8-5zM10 12.2a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4z",
};

// icon draws one of the few pictures that there are.
export function icon(name) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  for (const [k, v] of Object.entries({ viewBox: "0 0 20 20", width: "18", height: "18", "aria-hidden": "true", class: "icon icon-" + name })) svg.setAttribute(k, v);
  const path = document.createElementNS(ns, "path");
  path.setAttribute("d", paths[name]);
  svg.append(path);
  return svg;
}

// keyed makes the children of an element those of items ({key, sig, make}), and keeps the nodes of those that are as they
// were. What has the focus keeps it when it is made anew: it is found again by its data-focus.
export function keyed(el, items) {
  const have = new Map();
  for (const c of el.children) have.set(c.dataset.key, c);
  const active = document.activeElement;
  let lost = null;
  let at = el.firstElementChild;
  for (const item of items) {
    let node = have.get(item.key);
    have.delete(item.key);
    if (!node || node.dataset.sig !== String(item.sig)) {
      const made = item.make();
      made.dataset.key = item.key;
      made.dataset.sig = item.sig;
      if (node) {
        if (node.contains(active)) lost = { made, name: active.dataset.focus };
        if (at === node) at = node.nextElementSibling;
        node.remove();
      }
      node = made;
    }
    if (node === at) at = at.nextElementSibling;
    else el.insertBefore(node, at);
  }
  for (const gone of have.values()) gone.remove();
  if (lost) (lost.made.querySelector(`[data-focus="${CSS.escape(lost.name || "")}"]`) || lost.made).focus({ preventScroll: true });
}

// announce tells a screen reader something.
export function announce(text) {
  const live = $("live");
  live.textContent = "";
  requestAnimationFrame(() => { live.textContent = text; });
}

export function clock(ts) {
  return new Date(Number(ts) * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

export function day(ts) {
  const d = new Date(Number(ts) * 1000);
  const today = new Date();
  if (d.toDateString() === today.toDateString()) return "Today";
  today.setDate(today.getDate() - 1);
  if (d.toDateString() === today.toDateString()) return "Yesterday";
  return d.toLocaleDateString([], { weekday: "long", day: "numeric", month: "long" });
}

// confirmed asks before something is done.
export function confirmed({ title, text, confirm, deny, style }) {
  const dialog = $("ask");
  return new Promise((resolve) => {
    const done = (answer) => { dialog.onclose = null; dialog.close(); resolve(answer); };
    dialog.replaceChildren(
      h("h2", { id: "ask-title", text: title }), h("p", { text, dir: "auto" }),
      h("div", { class: "modal-foot" },
        h("button", { type: "button", class: "button", text: deny, on: { click: () => done(false) } }),
        h("button", { type: "button", class: "button " + (style === "danger" ? "danger" : "primary"), text: confirm, on: { click: () => done(true) } })));
    dialog.onclose = () => resolve(false);
    dialog.showModal();
  });
}

// popover shows a small menu at an element. fill gets what closes it.
export function popover(anchor, label, ...children) {
  const pop = $("pop");
  pop.replaceChildren(...children);
  pop.setAttribute("aria-label", label);
  pop.setAttribute("role", "menu");
  pop.showPopover();
  const box = anchor.getBoundingClientRect();
  const w = pop.offsetWidth, ht = pop.offsetHeight;
  pop.style.left = Math.max(8, Math.min(box.right - w, innerWidth - w - 8)) + "px";
  pop.style.top = (box.bottom + ht + 12 > innerHeight ? Math.max(8, box.top - ht - 6) : box.bottom + 6) + "px";
  const entries = [...pop.querySelectorAll("button")];
  if (entries[0]) entries[0].focus();
  pop.onkeydown = (e) => {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[e.key];
    if (!step) return;
    e.preventDefault();
    const i = entries.indexOf(document.activeElement);
    entries[(i + step + entries.length) % entries.length].focus();
  };
  pop.ontoggle = (e) => { if (e.newState === "closed" && pop.contains(document.activeElement)) anchor.focus(); };
}

export function closePopover() { if ($("pop").matches(":popover-open")) $("pop").hidePopover(); }

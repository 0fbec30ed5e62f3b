// The composer: text, files and suggestions.
import { h, icon } from "./dom.js";

let count = 0;

// composer makes one. o: key (drafts are kept under it), label(), hint(), thread (it is a thread's), suggestions(text),
// send(text, files, broadcast), which throws what is wrong.
export function composer(o) {
  const id = "composer-" + ++count;
  const box = h("textarea", { id: o.thread ? "thread-text" : "channel-text", rows: "1", dir: "auto", enterkeyhint: "send", "aria-describedby": id + "-said", "aria-autocomplete": "list", "aria-controls": id + "-list", "aria-expanded": "false", autocomplete: "off" });
  const said = h("p", { class: "composer-said", id: id + "-said", role: "alert" });
  const list = h("ul", { class: "suggestions", id: id + "-list", role: "listbox", "aria-label": "Suggestions", hidden: true });
  const chips = h("ul", { class: "chips", "aria-label": "Files to send" });
  const pick = h("input", { type: "file", multiple: true, class: "hidden", tabindex: "-1", "aria-hidden": "true" });
  const clip = h("button", { type: "button", class: "icon-button", "aria-label": "Attach files", title: "Attach files" }, icon("clip"));
  const go = h("button", { type: "submit", class: "send", "aria-label": "Send", title: "Send (Enter)" }, icon("send"));
  const also = h("input", { type: "checkbox", id: id + "-also" });
  const form = h("form", { class: "composer" }, list, chips, box,
    h("div", { class: "composer-foot" }, clip, pick, o.thread && h("label", { class: "also", for: id + "-also" }, also, "Also send to the channel"), h("span", { class: "spacer" }), go));
  const root = h("div", { class: "composer-wrap" }, said, form);
  let files = [];
  let shown = [];
  let at = -1;

  const grow = () => { box.style.height = "auto"; if (box.scrollHeight) box.style.height = Math.min(box.scrollHeight, 180) + "px"; };
  const draft = () => "draft " + o.key();
  const keep = () => { try { sessionStorage.setItem(draft(), box.value); } catch { /* no room */ } };
  const say = (text) => { said.textContent = text || ""; };

  function refresh() {
    box.setAttribute("aria-label", o.label());
    box.placeholder = o.label();
    box.value = sessionStorage.getItem(draft()) || "";
    files = []; say(""); drawFiles(); suggest(); grow();
  }

  function drawFiles() {
    chips.replaceChildren(...files.map((f, i) => h("li", {}, icon("file"), h("bdi", { text: f.name }), h("button", { type: "button", "aria-label": "Remove " + f.name, on: { click: () => { files.splice(i, 1); drawFiles(); box.focus(); } } }, "×"))));
    go.disabled = false;
  }

  function suggest() {
    shown = document.activeElement === box && box.selectionStart === box.value.length ? o.suggestions(box.value) : [];
    at = shown.length ? 0 : -1;
    draw();
  }

  function draw() {
    if (!shown.length) at = -1;
    list.hidden = shown.length === 0;
    box.setAttribute("aria-expanded", String(shown.length > 0));
    list.replaceChildren(...shown.map((s, i) => h("li", { role: "option", id: id + "-o" + i, "aria-selected": String(i === at), class: s.refused ? "refused" : "", on: { mousedown: (e) => { e.preventDefault(); choose(i); } } },
      h("strong", {}, s.title), " ", h("span", { class: "args" }, s.hint || ""), h("small", {}, s.what || ""))));
    if (at >= 0) { box.setAttribute("aria-activedescendant", id + "-o" + at); list.children[at].scrollIntoView({ block: "nearest" }); } else box.removeAttribute("aria-activedescendant");
  }

  function choose(i) {
    const s = shown[i];
    if (!s.insert) return;
    box.value = s.insert;
    keep(); shown = []; at = -1; draw(); grow();
  }

  async function submit() {
    const text = box.value.trim() === "" ? "" : box.value;
    if (!text && !files.length) return;
    const sent = files;
    say(""); shown = []; draw();
    box.value = ""; files = []; drawFiles(); grow(); keep();
    root.setAttribute("aria-busy", "true");
    try {
      await o.send(text, sent, also.checked);
      also.checked = false;
    } catch (e) {
      say(e.message);
      if (!box.value) { box.value = text; files = sent; drawFiles(); grow(); keep(); }
    }
    root.removeAttribute("aria-busy");
  }

  box.addEventListener("input", () => { keep(); say(o.hint ? o.hint(box.value) : ""); suggest(); grow(); });
  box.addEventListener("blur", () => { shown = []; draw(); });
  box.addEventListener("keydown", (e) => {
    if (shown.length && ["ArrowDown", "ArrowUp"].includes(e.key)) {
      e.preventDefault();
      at = (at + (e.key === "ArrowDown" ? 1 : -1) + shown.length) % shown.length;
      draw();
    } else if (shown.length && e.key === "Tab" && !e.shiftKey && shown[at] && shown[at].insert) { e.preventDefault(); choose(at); }
    else if (shown.length && e.key === "Escape") { e.stopPropagation(); shown = []; draw(); }
    else if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
      e.preventDefault();
      const s = shown[at];
      if (s && s.insert && box.value.trim().length < s.insert.trim().length) choose(at);
      else submit();
    }
  });
  form.addEventListener("submit", (e) => { e.preventDefault(); submit(); box.focus(); });
  clip.addEventListener("click", () => pick.click());
  const take = (more) => { files = files.concat([...more]).slice(0, 10); drawFiles(); box.focus(); };
  pick.addEventListener("change", () => { take(pick.files); pick.value = ""; });
  box.addEventListener("paste", (e) => { if (e.clipboardData.files.length) { e.preventDefault(); take(e.clipboardData.files); } });
  root.addEventListener("dragover", (e) => { e.preventDefault(); root.classList.add("drop"); });
  root.addEventListener("dragleave", () => root.classList.remove("drop"));
  root.addEventListener("drop", (e) => { e.preventDefault(); root.classList.remove("drop"); take(e.dataTransfer.files); });
  return { root, refresh, focus: () => box.focus(), say, insert: (text) => { box.value = text; keep(); grow(); box.focus(); suggest(); } };
}

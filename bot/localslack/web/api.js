// What the page asks of the program that serves it.

// act does something as somebody. It returns what came of it, or throws with what went wrong, in words.
export async function act(name, body) {
  return answered(await fetch("/api/act/" + name, { method: "POST", headers: { "Content-Type": "application/json", "X-Page": "1" }, body: JSON.stringify(body) }));
}

export async function send(fields, files) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  for (const f of files) form.append("files", f, f.name);
  return answered(await fetch("/api/files", { method: "POST", headers: { "X-Page": "1" }, body: form }));
}

async function answered(res) {
  const text = await res.text();
  let body;
  try { body = JSON.parse(text); } catch { throw new Error(text.trim() || res.statusText); }
  if (!body.ok) throw new Error(body.error);
  return body.result || {};
}

export async function get(path, query) {
  const res = await fetch("/api/" + path + "?" + new URLSearchParams(query));
  const body = await res.json();
  if (!res.ok) throw new Error(body.error || res.statusText);
  return body;
}

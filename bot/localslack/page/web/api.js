// Calls of the HTTP API that serves the page.

// runAction runs an action as one persona. It returns its result, or throws an error whose message is shown to people.
export async function runAction(name, body) {
  return readResult(await fetch("/api/act/" + name, { method: "POST", headers: { "Content-Type": "application/json", "X-Page": "1" }, body: JSON.stringify(body) }));
}

export async function send(fields, files) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  for (const f of files) form.append("files", f, f.name);
  return readResult(await fetch("/api/files", { method: "POST", headers: { "X-Page": "1" }, body: form }));
}

async function readResult(res) {
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

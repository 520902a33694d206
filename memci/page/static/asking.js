// Asking the server, with a token where it wants one: that is asked for once, and kept while the tab is open.

const KEPT = "memci-token";

/** Return the answer to a request for something at a path; one with a `body` writes. */
export async function request(path, query = {}, accept = "application/json", body = null) {
  const token = sessionStorage.getItem(KEPT);
  const headers = { accept, ...(token ? { authorization: `Bearer ${token}` } : {}), ...(body ? { "content-type": "application/json" } : {}) };
  const answer = await fetch(`${path}?${new URLSearchParams(query)}`, { headers, ...(body ? { method: "POST", body: JSON.stringify(body) } : {}) });
  if (answer.status !== 401) return answer;
  const given = prompt(token ? "This server does not know that token. It wants another one:" : "This server wants a token:")?.trim();
  if (!given) return answer;
  sessionStorage.setItem(KEPT, given.replace(/[^!-~]/g, "?")); // no other letter can be sent
  return request(path, query, accept, body);
}

/** Return the JSON that is at a path; of a refusal, its detail is thrown. */
export async function ask(path, query, body) {
  const answer = await request(path, query, "application/json", body);
  const found = await answer.json().catch(() => null);
  if (!answer.ok) throw new Error(found?.detail ?? `${path.split("/").at(-1)}: ${answer.status}`);
  return found;
}

// Asking the server, with a token where it wants one: that is asked for once, and kept while the tab is open.

const KEPT = "memci-token";

/** Return the answer to a request for something at a path. */
export async function request(path, query = {}, accept = "application/json") {
  const token = sessionStorage.getItem(KEPT);
  const answer = await fetch(`${path}?${new URLSearchParams(query)}`, { headers: { accept, ...(token ? { authorization: `Bearer ${token}` } : {}) } });
  if (answer.status !== 401) return answer;
  const given = prompt("This server wants a token:")?.trim();
  if (!given) return answer;
  sessionStorage.setItem(KEPT, given);
  return request(path, query, accept);
}

/** Return the JSON that is at a path. */
export async function ask(path, query) {
  const answer = await request(path, query);
  if (!answer.ok) throw new Error(`${path.split("/").at(-1)}: ${answer.status}`);
  return answer.json();
}

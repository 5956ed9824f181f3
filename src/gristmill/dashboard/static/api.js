// Questions to the server. The token comes with the address of the page and stays in this tab.
const KEY = "gristmill-token";
const given = /(?:^#|&)token=([^&]+)/.exec(location.hash);
if (given) {
  sessionStorage.setItem(KEY, decodeURIComponent(given[1]));
  history.replaceState(null, "", location.pathname);
}
const headers = () => ({"X-Gristmill-Token": sessionStorage.getItem(KEY) ?? ""});
const address = (path, query) => `/api/${path}?${new URLSearchParams(query)}`;

export async function ask(path, query = {}, signal) {
  const answer = await fetch(address(path, query), {headers: headers(), signal});
  if (!answer.ok) throw Object.assign(new Error(await answer.text()), {status: answer.status});
  return answer.json();
}

// Server-sent events by fetch, since EventSource cannot send the token. Calls `heard(kind, data)` until the stream ends.
export async function listen(query, heard, signal) {
  const answer = await fetch(address("stream", query), {headers: headers(), signal});
  if (!answer.ok) throw Object.assign(new Error(await answer.text()), {status: answer.status});
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "";;) {
    const {done, value} = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const field = (name) => part.split("\n").find((line) => line.startsWith(name + ": "))?.slice(name.length + 2);
      if (field("data")) heard(field("event"), JSON.parse(field("data")));
    }
  }
}

// Requests to the API, and its streams.

export class Failed extends Error {
  constructor(status, body) {
    super(body?.error ?? `the server answered ${status}`);
    this.status = status;
    this.hint = body?.hint;
  }
}

// The session is kept for this origin, which has the port, and in no cookie, which every port of this machine receives.
const KEY = "session";
const bearer = () => ({ Authorization: `Bearer ${localStorage.getItem(KEY) ?? ""}` });

/** Exchanges the token of a one-time link, `#token=TOKEN`, for a session. The rest of the address stays. */
export async function redeem() {
  const found = /^#token=([a-z0-9]+)&?(.*)$/.exec(location.hash);
  if (!found) return;
  history.replaceState(null, "", found[2] ? `#${found[2]}` : location.pathname);
  const response = await fetch("/api/v1/session", { method: "POST", headers: { Authorization: `Link ${found[1]}` } });
  // A link that was used already leaves the session of this browser as it is.
  if (response.ok) localStorage.setItem(KEY, (await response.json()).token);
}

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(`/api/v1${path}`, { ...options, headers: { ...options.headers, ...bearer() } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failed(0, { error: "the server does not answer", hint: "is `cuegate serve` still running?" });
  }
  if (response.status === 401) {
    throw new Failed(401, {
      error: "This browser has no session",
      hint: "Open the link that `cuegate serve` printed in the terminal, or run `cuegate open` in the project. A link opens one session; the server prints a new one when it was used.",
    });
  }
  if (!response.ok) throw new Failed(response.status, await response.json().catch(() => null));
  return response;
}

export const json = async (path) => (await request(path)).json();
export const text = async (path) => (await request(path)).text();

export async function post(path, body) {
  const response = await request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body ?? {}),
  });
  return response.json();
}

/** Saves a text of the server as a file. */
export async function download(path, name) {
  const url = URL.createObjectURL(new Blob([await text(path)], { type: "text/plain" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** Reads server-sent events of a response until it ends. */
async function readEvents(response, handle) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let event = { name: "message", data: [] };
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split(/\r\n|\n|\r/);
    rest = lines.pop();
    for (const line of lines) {
      const [field, ...parts] = line.split(":");
      const content = parts.join(":").replace(/^ /, "");
      if (line === "") {
        if (event.data.length > 0) handle(event.name, event.data.join("\n"), event.id);
        event = { name: "message", data: [] };
      } else if (field === "event") event.name = content;
      else if (field === "data") event.data.push(content);
      else if (field === "id") event.id = content;
    }
  }
}

const RETRY = 1000;

/** Listens to a stream; it resumes by itself after the last event. Returns the function that ends it. */
export function stream(path, handlers) {
  const connection = document.getElementById("connection");
  let open = null;
  let last = null;
  const listen = async (signal) => {
    while (!signal.aborted) {
      try {
        const response = await request(path, { signal, headers: last ? { "Last-Event-ID": last } : {} });
        connection.textContent = "";
        await readEvents(response, (name, data, id) => {
          if (signal.aborted) return;
          last = id ?? last;
          handlers[name]?.(JSON.parse(data));
        });
      } catch (error) {
        if (signal.aborted) return;
        if (error.status === 401) {
          connection.textContent = error.message;
          return;
        }
      }
      if (signal.aborted) return;
      connection.textContent = "not connected, trying again …";
      await new Promise((resolve) => setTimeout(resolve, RETRY));
    }
  };
  const close = () => {
    open?.abort();
    open = null;
  };
  // A browser has six connections to a host, for all of its tabs: hidden ones use none.
  const seen = () => {
    close();
    if (document.hidden) return;
    open = new AbortController();
    listen(open.signal);
  };
  document.addEventListener("visibilitychange", seen);
  seen();
  return () => {
    document.removeEventListener("visibilitychange", seen);
    close();
    connection.textContent = "";
  };
}

/** Calls `work` soon, once for all calls until then, and never twice at the same time. */
export function soon(work, milliseconds = 30) {
  let timer = null;
  let busy = false;
  let again = false;
  const run = async () => {
    timer = null;
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      await work();
    } finally {
      busy = false;
      if (again) {
        again = false;
        call();
      }
    }
  };
  const call = () => {
    timer ??= setTimeout(run, milliseconds);
  };
  return call;
}

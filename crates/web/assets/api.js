// Requests to the API, and its streams.

export class Failed extends Error {
  constructor(status, body) {
    super(body?.error ?? `the server answered ${status}`);
    this.status = status;
    this.hint = body?.hint;
  }
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(`/api/v1${path}`, options);
  } catch {
    throw new Failed(0, { error: "the server does not answer", hint: "is `cuegate serve` still running?" });
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

/** Listens to a stream; it resumes by itself after the last event. Returns the function that ends it. */
export function stream(path, handlers) {
  const connection = document.getElementById("connection");
  let source = null;
  const open = () => {
    source = new EventSource(`/api/v1${path}`);
    source.onopen = () => (connection.textContent = "");
    source.onerror = () => (connection.textContent = "not connected, trying again …");
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
    }
  };
  // A browser has six connections to a host, for all of its tabs: hidden ones use none.
  const seen = () => {
    source?.close();
    source = null;
    if (!document.hidden) open();
  };
  document.addEventListener("visibilitychange", seen);
  seen();
  return () => {
    document.removeEventListener("visibilitychange", seen);
    source?.close();
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

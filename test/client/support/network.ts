/** The network between a client and its server. It records requests, and fails when the test says so. */

export interface Network {
  readonly fetch: typeof fetch;
  /** `POST /v1/auth/refresh 200`, in the order of the answers; `lost` in place of a status. */
  readonly seen: readonly string[];
  count(line: string): number;
  /** For each request: true = its answer is lost, though the server has given it. */
  losing: (method: string, path: string) => boolean;
  /** For each request: true = it does not get to the server. */
  cut: (method: string, path: string) => boolean;
  /** How long an answer is on its way. */
  hold: (path: string) => Promise<void>;
}

export function network(inner: typeof fetch = fetch): Network {
  const seen: string[] = [];
  const made: Network = {
    seen,
    count: (line) => seen.filter((each) => each === line).length,
    losing: () => false,
    cut: () => false,
    hold: () => Promise.resolve(),
    fetch: async (input, init) => {
      const method = init?.method ?? 'GET';
      const path = String(input).replace(/^https?:\/\/[^/]+/, '');
      if (made.cut(method, path)) throw new TypeError('fetch failed');
      const answer = await inner(input, init);
      await made.hold(path);
      const lost = made.losing(method, path);
      seen.push(`${method} ${path} ${lost ? 'lost' : answer.status}`);
      if (lost) throw new TypeError('fetch failed');
      return answer;
    },
  };
  return made;
}

export interface Browser {
  readonly fetch: typeof fetch;
  /** The one cookie; undefined: none. */
  cookie: string | undefined;
}

/** Keeps the cookie of /v1/auth as a browser does, and names the page that asks. */
export function browser(origin: string): Browser {
  const made: Browser = {
    cookie: undefined,
    fetch: async (input, init) => {
      const ours = new URL(String(input)).pathname.startsWith('/v1/auth/') && init?.credentials === 'include';
      const headers = new Headers(init?.headers);
      headers.set('origin', origin);
      if (ours && made.cookie !== undefined) headers.set('cookie', made.cookie);
      const answer = await fetch(input, { ...init, headers });
      const [pair = '', ...attributes] = (answer.headers.get('set-cookie') ?? '').split(/;\s*/);
      if (pair !== '') made.cookie = attributes.includes('Max-Age=0') ? undefined : pair;
      return answer;
    },
  };
  return made;
}

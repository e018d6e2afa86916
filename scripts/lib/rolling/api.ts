/** What an administrator does at a server's HTTP API. */

export interface ApiOptions {
  readonly token?: string;
  readonly body?: object;
}

/**
 * Returns the JSON of the answer; throws unless its status is one of success.
 * @param http `host:port`
 */
export async function api(
  http: string,
  method: string,
  path: string,
  { token, body }: ApiOptions = {},
): Promise<unknown> {
  const answer = await fetch(`http://${http}${path}`, {
    method,
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const said: unknown = await answer.json();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(said)}`);
  return said;
}

/** Returns a member of an answer; throws unless it is a text. */
export function textOf(answer: unknown, member: string): string {
  const members =
    typeof answer === 'object' && answer !== null ? new Map<string, unknown>(Object.entries(answer)) : new Map();
  const value: unknown = members.get(member);
  if (typeof value !== 'string') throw new Error(`the answer has no ${member}`);
  return value;
}

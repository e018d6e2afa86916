/** The paths of Anthropic's Messages API, whose clients find errors and the request's id in other places than those of OpenAI. */

const BASE = '/v1/messages';

/** @param path the request target: path and query */
export function isMessagesPath(path: string): boolean {
  if (!path.startsWith(BASE)) return false;
  const after = path.charAt(BASE.length);
  return after === '' || after === '/' || after === '?';
}

import { type Given, oneOf, text } from '../../shell/search.ts';
import { CLIENTS, type ClientKind } from './snippets.ts';

export interface ConnectSearch {
  /** The key's id. */
  readonly key?: string;
  readonly client?: ClientKind;
}

export function connectSearch(given: Given): ConnectSearch {
  return { ...text(given, 'key'), ...oneOf(given, 'client', CLIENTS) };
}

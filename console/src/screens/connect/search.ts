import { type Given, text } from '../../shell/search.ts';

export interface ConnectSearch {
  readonly key?: string;
}

export function connectSearch(given: Given): ConnectSearch {
  return { ...text(given, 'key') };
}

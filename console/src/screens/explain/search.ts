import { type Given, text } from '../../shell/search.ts';

export interface ExplainSearch {
  readonly request_id?: string;
  readonly user?: string;
  readonly key?: string;
  readonly method?: string;
  readonly path?: string;
  readonly model?: string;
  /** A body in place of one that names the model, of a link only. */
  readonly body?: string;
  readonly address?: string;
  readonly time?: string;
}

export function explainSearch(given: Given): ExplainSearch {
  return {
    ...text(given, 'request_id'),
    ...text(given, 'user'),
    ...text(given, 'key'),
    ...text(given, 'method'),
    ...text(given, 'path'),
    ...text(given, 'model'),
    ...text(given, 'body'),
    ...text(given, 'address'),
    ...text(given, 'time'),
  };
}

import { type Given, oneOf } from '../../shell/search.ts';
import { TEMPLATE_IDS, type TemplateId } from './templates.ts';

export interface NewIssuerSearch {
  /** Absent: none is chosen yet. */
  readonly template?: TemplateId;
}

export function newIssuerSearch(given: Given): NewIssuerSearch {
  return oneOf(given, 'template', TEMPLATE_IDS);
}

export interface IssuerSearch {
  /** The open drawer: the test of a token. */
  readonly open?: 'test';
}

export function issuerSearch(given: Given): IssuerSearch {
  return oneOf(given, 'open', ['test'] as const);
}

/** A policy as one sentence: "Denies embeddings outside Mon-Fri 08:00-18:00 to developers." */

import { summary as text } from '../../text/en/policies.ts';
import { type Clause, clausesOf, needsClock, type PolicyFields } from './draft.ts';
import { hoursOf } from './hours.ts';

/** A piece of the sentence. strong: what differs from policy to policy. effect: what it does. */
export interface Piece {
  readonly text: string;
  readonly kind: 'plain' | 'strong' | 'effect';
}

const MAX_NAMED = 4;

/** @param zone the clock of the times, or undefined if it is not known */
export function summaryOf(policy: PolicyFields, zone: string | undefined): readonly Piece[] {
  const { effect, actions, resources, conditions, applies_to, attached_roles, enabled } = policy;
  const clauses = clausesOf(conditions);
  const clock = needsClock(clauses) ? (conditions.timezone ?? zone) : undefined;
  const pieces: Piece[] = [
    ...(enabled ? [] : [plain(text.whenOn)]),
    { kind: 'effect', text: enabled ? text.effects[effect] : text.effects[effect].toLowerCase() },
    plain(' '),
    ...(actions.length === 0 ? [strong(text.nothing)] : list(actions.map(actionWords))),
    ...resourcePieces(resources),
    ...clauses.filter(({ kind }) => kind !== 'ip_address').flatMap(clausePieces),
    ...(clock === undefined ? [] : [plain(` (${clock})`)]),
    ...clauses.filter(({ kind }) => kind === 'ip_address').flatMap(clausePieces),
    ...audiencePieces(applies_to, attached_roles),
    plain('.'),
  ];
  return pieces;
}

/** The same as plain text. */
export function summaryText(policy: PolicyFields, zone: string | undefined): string {
  return summaryOf(policy, zone)
    .map((piece) => piece.text)
    .join('');
}

function plain(value: string): Piece {
  return { kind: 'plain', text: value };
}

function strong(value: string): Piece {
  return { kind: 'strong', text: value };
}

/** Names the first few and counts the others; each name is a piece of its own. */
function list(values: readonly string[]): readonly Piece[] {
  const unique = [...new Set(values)];
  const named = unique.length <= MAX_NAMED ? unique : unique.slice(0, MAX_NAMED - 1);
  const shown = named.length === unique.length ? named : [...named, text.more(unique.length - named.length)];
  return text.listed(shown).map(({ type, value }) => (type === 'element' ? strong(value) : plain(value)));
}

function actionWords(pattern: string): string {
  const [resource = '', action] = pattern.split(':');
  if (pattern === '*' || pattern === '*:*') return text.everything;
  const noun = text.nouns[action === '*' ? resource : pattern];
  if (noun !== undefined) return noun;
  return resource === '*' ? text.anyResource(action ?? '') : pattern;
}

function resourcePieces(resources: readonly string[]): readonly Piece[] {
  if (resources.length === 0 || resources.includes('*')) return [];
  return [plain(` ${text.on} `), ...list(resources)];
}

function clausePieces({ kind, is, operand }: Clause): readonly Piece[] {
  switch (kind) {
    case 'weekly_hours':
      return hoursPieces(is, operand);
    case 'day_of_week':
      return [plain(` ${is ? text.onDays : text.notOnDays} `), ...list(operand)];
    case 'time':
      return [plain(` ${is ? text.during : text.outside} `), strong(`${operand[0] ?? '?'}-${operand[1] ?? '?'}`)];
    case 'ip_address':
      return [
        plain(` ${is ? text.from : text.fromOutside} `),
        ...(operand.length > 2 ? [strong(text.networks(operand.length))] : list(operand)),
      ];
    default:
      return kind satisfies never;
  }
}

/** The whole week and no time at all have texts of their own. */
export function hoursPieces(is: boolean, windows: readonly string[]): readonly Piece[] {
  const hours = hoursOf(windows);
  if (hours?.every(Boolean)) return [plain(' '), strong(is ? text.always : text.never)];
  if (windows.length === 0) return [plain(` ${is ? text.during : text.outside} `), strong(text.noHours)];
  return [plain(` ${is ? text.during : text.outside} `), ...list(windows)];
}

function audiencePieces(appliesTo: PolicyFields['applies_to'], roles: readonly string[]): readonly Piece[] {
  if (appliesTo === 'everyone') return [plain(` ${text.to} `), strong(text.everyone)];
  if (roles.length === 0) return [plain(` ${text.to} `), strong(text.nobody), plain(text.nobodyWhy)];
  return [plain(` ${text.to} `), ...list(roles.map((role) => text.holders[role] ?? text.holdersOf(role)))];
}

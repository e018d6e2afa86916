/** A policy as one sentence: "Denies embeddings outside Mon-Fri 08:00-18:00 to developers." */

import { summary as text } from '../../text/en/policies.ts';
import { CONDITIONS } from './condition-kinds.ts';
import { type Clause, clausesOf, needsClock, type PolicyFields } from './draft.ts';
import { list, type Piece, plain, strong } from './pieces.ts';

/** @param zone the clock of the times, or undefined if it is not known */
export function summaryOf(policy: PolicyFields, zone: string | undefined): readonly Piece[] {
  const { effect, actions, resources, conditions, applies_to, attached_roles, mode, enabled } = policy;
  const clauses = clausesOf(conditions);
  const clock = needsClock(clauses) ? (conditions.timezone ?? zone) : undefined;
  const verb = text.effects[mode][effect];
  const pieces: Piece[] = [
    ...(enabled ? [] : [plain(text.whenOn)]),
    { kind: 'effect', text: enabled ? verb : verb.toLowerCase() },
    plain(' '),
    ...(actions.length === 0 ? [strong(text.nothing)] : list(actions.map(actionWords))),
    ...resourcePieces(resources),
    ...clauses.filter(({ kind }) => CONDITIONS[kind].usesClock).flatMap(clausePieces),
    ...(clock === undefined ? [] : [plain(` (${clock})`)]),
    ...clauses.filter(({ kind }) => !CONDITIONS[kind].usesClock).flatMap(clausePieces),
    ...audiencePieces(applies_to, attached_roles),
    plain('.'),
  ];
  return pieces;
}

function clausePieces({ kind, is, operand }: Clause): readonly Piece[] {
  return CONDITIONS[kind].pieces(is, operand);
}

/** The same as plain text. */
export function summaryText(policy: PolicyFields, zone: string | undefined): string {
  return summaryOf(policy, zone)
    .map((piece) => piece.text)
    .join('');
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

function audiencePieces(appliesTo: PolicyFields['applies_to'], roles: readonly string[]): readonly Piece[] {
  if (appliesTo === 'everyone') return [plain(` ${text.to} `), strong(text.everyone)];
  if (roles.length === 0) return [plain(` ${text.to} `), strong(text.noRole), plain(text.noRoleWhy)];
  return [plain(` ${text.to} `), ...list(roles.map((role) => text.holders[role] ?? text.holdersOf(role)))];
}

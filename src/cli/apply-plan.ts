/** The text of a plan: the resources to create, change and delete, and the members that change. */

import type { PlanAction } from '../iam/setup/action.ts';
import { counts } from '../iam/setup/apply.ts';
import type { MemberChange } from '../iam/setup/members.ts';

const MARKS: Readonly<Record<PlanAction['verb'], string>> = { create: '+', change: '~', delete: '-' };

/** One paragraph for each action, and a summary line. */
export function planText(actions: readonly PlanAction[]): string {
  if (actions.length === 0) return 'Nothing to do: the database already matches the file.\n';
  const { create, change, delete: gone } = counts(actions);
  return `${actions.map(actionText).join('')}\nPlan: ${create} to create, ${change} to change, ${gone} to delete.\n`;
}

function actionText(action: PlanAction): string {
  const lines = action.changes.map((each) => `    ${memberText(action, each)}\n`).join('');
  return `${MARKS[action.verb]} ${action.verb} ${nameText(action)}\n${lines}`;
}

/** For example `role acme/editors` or `global policy office-hours`. */
function nameText({ type, tenant, name }: PlanAction): string {
  if (tenant !== undefined) return `${type} ${tenant}/${printable(name)}`;
  return `${type === 'policy' ? 'global policy' : type} ${printable(name)}`;
}

function memberText({ verb }: PlanAction, { member, before, after }: MemberChange): string {
  return verb === 'create' ? `${member}: ${value(after)}` : `${member}: ${value(before)} -> ${value(after)}`;
}

function value(of: unknown): string {
  return of === undefined ? '(none)' : printable(JSON.stringify(of));
}

/** Control characters and direction marks, which JSON does not escape. A terminal would execute them. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** Returns the text with an escape in place of each such character. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

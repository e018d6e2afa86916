/** A plan for people to read: what is made, what changes from what to what, what goes. */

import { counts } from '../iam/setup/apply.ts';
import type { MemberChange } from '../iam/setup/difference.ts';
import type { Step } from '../iam/setup/step.ts';

const MARKS: Readonly<Record<Step['verb'], string>> = { create: '+', change: '~', delete: '-' };

/** One step a paragraph, and a line that sums up. */
export function planText(steps: readonly Step[]): string {
  if (steps.length === 0) return 'Nothing to do: the database already matches the file.\n';
  const { create, change, delete: gone } = counts(steps);
  return `${steps.map(stepText).join('')}\nPlan: ${create} to create, ${change} to change, ${gone} to delete.\n`;
}

function stepText(step: Step): string {
  const lines = step.changes.map((each) => `    ${memberText(step, each)}\n`).join('');
  return `${MARKS[step.verb]} ${step.verb} ${nameText(step)}\n${lines}`;
}

/** As `role acme/editors`, `global policy office-hours`. */
function nameText({ thing, tenant, name }: Step): string {
  if (tenant !== undefined) return `${thing} ${tenant}/${printable(name)}`;
  return `${thing === 'policy' ? 'global policy' : thing} ${printable(name)}`;
}

function memberText({ verb }: Step, { member, before, after }: MemberChange): string {
  return verb === 'create' ? `${member}: ${value(after)}` : `${member}: ${value(before)} -> ${value(after)}`;
}

function value(of: unknown): string {
  return of === undefined ? '(none)' : printable(JSON.stringify(of));
}

/** Controls that JSON leaves as they are, and marks that turn the direction of writing: a terminal would obey them. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** Writes a set-up as YAML, part by part, so that no more than one part is held as a whole. */

import { Document, Scalar, visit } from 'yaml';
import { SETUP_VERSION } from '../admin/setup/document.ts';
import type { ExportPart } from '../admin/setup/export.ts';

const HEAD = `# A setup of Postern. \`postern export\` writes this file and \`postern apply\` reads it.
# It contains tenants, roles, policies and local users. It contains no secrets: passwords, API keys, sessions and one-time tokens stay in the database.
version: ${SETUP_VERSION}
`;

/** Gives the text of each part as it comes; the head first, whatever comes. */
export function setupWriter(): (part: ExportPart) => string {
  let begun = false;
  let inTenants = false;
  let inUsers = false;
  return (part) => {
    const head = begun ? '' : HEAD;
    begun = true;
    switch (part.kind) {
      case 'global policies':
        return head + yaml({ global_policies: part.policies }, 0);
      case 'tenant': {
        const opening = inTenants ? '' : 'tenants:\n';
        inTenants = true;
        inUsers = false;
        return head + opening + yaml([part.tenant], 2);
      }
      case 'users': {
        const opening = inUsers ? '' : '    users:\n';
        inUsers = true;
        return opening + yaml(part.users, 6);
      }
      case 'end of users':
        return (inUsers ? '' : '    users: []\n') + othersText(part.others);
      default:
        return part satisfies never;
    }
  };
}

function othersText(others: number): string {
  return others === 0 ? '' : `    # Not included: ${others} from a directory or without an email address.\n`;
}

/**
 * No line is folded, so that a changed word is one changed line. What YAML 1.1 reads as something else than text (`no`, `22:00`) is
 * quoted, for whoever reads the file with another parser.
 */
const STYLE = {
  lineWidth: 0,
  blockQuote: false,
  singleQuote: false,
  doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER,
  compat: 'yaml-1.1',
} as const;

/** Controls, and marks that nobody sees or that turn the direction of writing: a file that people compare does not hold them as they are. */
const UNSEEN = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const EACH_UNSEEN = new RegExp(UNSEEN, 'gu');

function yaml(value: unknown, indent: number): string {
  const document = new Document(value);
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'string' && UNSEEN.test(node.value)) node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return document
    .toString(STYLE)
    .replace(EACH_UNSEEN, escaped)
    .replace(/(?<=^|\n)(?=.)/g, ' '.repeat(indent));
}

/** As YAML writes it between double quotes (YAML 1.2, section 5.7). */
function escaped(character: string): string {
  return `\\U${(character.codePointAt(0) ?? 0).toString(16).padStart(8, '0')}`;
}

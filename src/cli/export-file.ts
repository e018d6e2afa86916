/** Writes a setup as YAML, part by part, so that only one part is in memory. */

import { Document, Scalar, visit } from 'yaml';
import { SETUP_VERSION } from '../iam/setup/document.ts';
import type { ExportPart } from '../iam/setup/export.ts';

const HEAD = `# A setup of Postern. \`postern export\` writes this file and \`postern apply\` reads it.
# It contains tenants, roles, policies, issuers, webhooks, budgets and local users. It contains no secrets: passwords, API keys, client secrets, secrets of webhooks, sessions and one-time tokens stay in the database.
version: ${SETUP_VERSION}
`;

const NEXT = `---
version: ${SETUP_VERSION}
tenants:
`;

/** `apply` accepts documents of at most 8 MiB. */
const DOCUMENT_BYTES = 2_097_152;
/** Users written at once: at most 4 MiB, even if each character is written as an escape. */
const USERS_AT_ONCE = 25;

/**
 * Returns the text of each part; that of the first part begins with the head of the file. A long export has several
 * documents.
 * @param documentBytes the size after which the next document begins
 */
export function setupWriter(documentBytes = DOCUMENT_BYTES): (part: ExportPart) => string {
  let begun = false;
  let inTenants = false;
  let inUsers = false;
  let tenant: unknown;
  /** Bytes of the document so far. */
  let size = 0;
  const counted = (text: string): string => {
    size += Buffer.byteLength(text);
    return text;
  };
  const isFull = (): boolean => {
    const full = size >= documentBytes;
    if (full) size = 0;
    return full;
  };
  return (part) => {
    const head = begun ? '' : HEAD;
    begun = true;
    switch (part.kind) {
      case 'global policies':
        return counted(head + yaml({ global_policies: part.policies }, 0));
      case 'tenant': {
        const opening = isFull() ? NEXT : inTenants ? '' : 'tenants:\n';
        inTenants = true;
        inUsers = false;
        tenant = part.tenant['id'];
        return counted(head + opening + yaml([part.tenant], 2));
      }
      case 'users': {
        let text = '';
        for (let from = 0; from < part.users.length; from += USERS_AT_ONCE) {
          const next = isFull() ? NEXT + yaml([{ id: tenant }], 2) : '';
          const opening = next !== '' || !inUsers ? '    users:\n' : '';
          inUsers = true;
          text += counted(next + opening + yaml(part.users.slice(from, from + USERS_AT_ONCE), 6));
        }
        return text;
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

/** Quotes texts that YAML 1.1 does not read as text (`no`, `22:00`), for readers with another parser. */
const COMPATIBLE = { compat: 'yaml-1.1' } as const;

/** Does not fold lines, so that a changed word is one changed line. */
const STYLE = {
  lineWidth: 0,
  blockQuote: false,
  singleQuote: false,
  doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER,
} as const;

/** Control characters, invisible marks and direction marks. The file has them as escapes, so that a diff shows them. */
const UNSEEN = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const EACH_UNSEEN = new RegExp(UNSEEN, 'gu');

function yaml(value: unknown, indent: number): string {
  const document = new Document(value, COMPATIBLE);
  visit(document, {
    Scalar(_, node) {
      // The library does not know the type `=` of YAML 1.1.
      if (typeof node.value === 'string' && (node.value === '=' || UNSEEN.test(node.value)))
        node.type = Scalar.QUOTE_DOUBLE;
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

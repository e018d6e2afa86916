/**
 * Encodes one decision as a line of JSON. With `log.decisions.allow-one-in: 1` the gate writes a line for each check,
 * so this file concatenates the line itself. Ids and codes of this program need neither quoting nor masking. The texts
 * that many requests have in common are quoted and masked once. A test compares every line with JSON.stringify.
 */

import type { DecisionLine } from './decision-line.ts';
import { maskText } from './masking.ts';

/** A cache of quoted texts of requests, such as methods, paths and models, of at most 256 characters each. */
const MAX_QUOTED = 1000;
/**
 * Matches text without a character that JSON quotes and without the beginning of a secret: UUIDs and other hexadecimal
 * ids.
 */
const HEXADECIMAL = /^[0-9a-f-]+$/;
/** Texts of `took_ms` are cached up to this number of microseconds. */
const MAX_KEPT_US = 10_000;

const quotedTexts = new Map<string, string>();
const tookTexts: string[] = [];

/**
 * Returns a line without secrets, with its line end. @param atMs the start of the check, in milliseconds since the
 * epoch
 */
export function jsonLine(line: DecisionLine, atMs: number): string {
  return (
    beginning(atMs) +
    `"outcome":"${line.outcome}","code":"${line.code}"` +
    plain(',"request_id":"', line.request_id) +
    id(',"client_request_id":', line.client_request_id) +
    plain(',"trace_id":"', line.trace_id) +
    text(',"method":', line.method) +
    text(',"path":', line.path) +
    text(',"route":', line.route) +
    text(',"client_ip":', line.client_ip) +
    plain(',"subject":"', line.subject) +
    plain(',"subject_type":"', line.subject_type) +
    plain(',"tenant":"', line.tenant) +
    text(',"asked_tenant":', line.asked_tenant) +
    text(',"permission":', line.permission) +
    texts(',"resources":[', line.resources) +
    text(',"model":', line.model) +
    plain(',"policy":"', line.policy) +
    plain(',"budget":"', line.budget) +
    plain(',"would_deny":"', line.would_deny) +
    plain(',"would_allow":"', line.would_allow) +
    plain(',"reason":"', line.reason) +
    text(',"detail":', line.detail) +
    text(',"setting":', line.setting) +
    took(line.took_ms) +
    (line.shadow === undefined ? '' : ',"shadow":true') +
    (line.not_logged === undefined ? '' : `,"not_logged":${line.not_logged}`) +
    (line.err === undefined ? '' : `,"err":${maskText(JSON.stringify(line.err))}`) +
    ',"msg":"decision"}\n'
  );
}

let shownMs = Number.NaN;
let shown = '';

/** The members before those of the decision. Many checks start in the same millisecond. */
function beginning(atMs: number): string {
  if (atMs !== shownMs) {
    shownMs = atMs;
    shown = `{"level":"info","time":"${new Date(atMs).toISOString()}","part":"decisions",`;
  }
  return shown;
}

/**
 * For ids, names and codes. Their grammars have no character that JSON quotes, and no text that looks like a secret.
 */
function plain(start: string, value: string | undefined): string {
  return value === undefined ? '' : `${start}${value}"`;
}

/** Returns a text quoted and masked. The cache must not hold a secret, so a text with a secret is not cached. */
function quoted(value: string): string {
  const known = quotedTexts.get(value);
  if (known !== undefined) return known;
  const masked = maskText(value);
  const made = JSON.stringify(masked);
  if (masked !== value) return made;
  if (quotedTexts.size >= MAX_QUOTED) quotedTexts.clear();
  quotedTexts.set(value, made);
  return made;
}

function text(start: string, value: string | undefined): string {
  return value === undefined ? '' : start + quoted(value);
}

/** For a text that differs in every request and is mostly a UUID. */
function id(start: string, value: string | undefined): string {
  if (value === undefined) return '';
  return HEXADECIMAL.test(value) ? `${start}"${value}"` : start + JSON.stringify(maskText(value));
}

function texts(start: string, values: readonly string[] | undefined): string {
  if (values === undefined) return '';
  const [first = ''] = values;
  return `${start}${values.length === 1 ? quoted(first) : values.map(quoted).join()}]`;
}

function took(ms: number | undefined): string {
  if (ms === undefined) return '';
  const us = Math.round(ms * 1000);
  if (!(us >= 0 && us < MAX_KEPT_US) || us / 1000 !== ms) return `,"took_ms":${ms}`;
  tookTexts[us] ??= `,"took_ms":${ms}`;
  return tookTexts[us];
}

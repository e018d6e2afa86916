/**
 * One decision as a line of JSON. At full rate there is a line for each check, so it is put together by hand: texts that this program made
 * need neither quoting nor masking, and only the others go through both. A test compares every line with JSON.stringify.
 */

import type { DecisionLine } from './decision-line.ts';
import { maskText } from './masking.ts';

/** Returns a line without secrets, its line end included. @param atMs when the check began, in milliseconds since the epoch */
export function jsonLine(line: DecisionLine, atMs: number): string {
  const { took_ms: tookMs, not_logged: notLogged } = line;
  return `${beginning(atMs)}"outcome":"${line.outcome}","code":"${line.code}"${plain('request_id', line.request_id)}${text(
    'client_request_id',
    line.client_request_id,
  )}${plain('trace_id', line.trace_id)}${text('method', line.method)}${text('path', line.path)}${text('route', line.route)}${text(
    'client_ip',
    line.client_ip,
  )}${plain('subject', line.subject)}${plain('subject_type', line.subject_type)}${plain('tenant', line.tenant)}${text(
    'asked_tenant',
    line.asked_tenant,
  )}${text('permission', line.permission)}${any('resources', line.resources)}${text('model', line.model)}${plain('policy', line.policy)}${plain(
    'reason',
    line.reason,
  )}${text('detail', line.detail)}${text('setting', line.setting)}${tookMs === undefined ? '' : `,"took_ms":${tookMs}`}${
    notLogged === undefined ? '' : `,"not_logged":${notLogged}`
  }${any('err', line.err)},"msg":"decision"}\n`;
}

let shownMs = Number.NaN;
let shown = '';

/** The members before those of the decision. Many checks begin in the same millisecond. */
function beginning(atMs: number): string {
  if (atMs !== shownMs) {
    shownMs = atMs;
    shown = `{"level":"info","time":"${new Date(atMs).toISOString()}","part":"decisions",`;
  }
  return shown;
}

/** For ids, names and codes: their grammars hold nothing that JSON quotes, and nothing that looks like a secret. */
function plain(name: string, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":"${value}"`;
}

function text(name: string, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":${JSON.stringify(maskText(value))}`;
}

function any(name: string, value: object | string | undefined): string {
  return value === undefined ? '' : `,"${name}":${maskText(JSON.stringify(value))}`;
}

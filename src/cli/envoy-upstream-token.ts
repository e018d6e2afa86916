/** The filter that verifies the token for the upstream, in the Envoy of the demonstration. */

import type { Config } from '../config/config.ts';
import { replaced } from './envoy-config.ts';

/** In envoy/demo.yaml, the first line after the check. */
const AFTER_CHECK = `${' '.repeat(10)}# 4. Reads the usage`;
/** The values in envoy/upstream-token.yaml. */
const FILE_AUDIENCE = 'audiences: [demo-platform]';
const FILE_HEADER = 'from_headers: [{ name: x-postern-token }]';

/**
 * Puts the filter behind the check. Returns the text as it is if no request gets a token.
 * @param text envoy/demo.yaml
 * @param filter envoy/upstream-token.yaml
 */
export function verifyingUpstreamToken(
  text: string,
  filter: string,
  { audience, header }: Pick<Config['upstreamToken'], 'audience' | 'header'>,
): string {
  if (audience === undefined) return text;
  const prefix = header === 'authorization' ? ', value_prefix: "Bearer "' : '';
  const agreeing = replaced(
    replaced(filter, FILE_AUDIENCE, `audiences: [${JSON.stringify(audience)}]`),
    FILE_HEADER,
    `from_headers: [{ name: ${header}${prefix} }]`,
  );
  const lines = agreeing.split('\n').filter((line) => line !== '' && !line.trimStart().startsWith('#'));
  const item = lines.map((line, index) => `${' '.repeat(10)}${index === 0 ? '- ' : '  '}${line}\n`).join('');
  return replaced(text, AFTER_CHECK, item + AFTER_CHECK);
}

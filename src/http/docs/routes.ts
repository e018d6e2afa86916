/**
 * /docs: the API's description, to read and to try. The viewer's files are those of its package, and come from this
 * server only.
 */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Endpoint } from '../endpoint.ts';
import { staticEndpoint } from '../static-endpoint.ts';

const packages = createRequire(import.meta.url);
const viewer = (name: string): string => packages.resolve(`@fastify/swagger-ui/static/${name}`);
const own = (name: string): URL => new URL(name, import.meta.url);

const SCRIPT = 'text/javascript; charset=utf-8';

const ASSETS = [
  { path: '/docs', operationId: 'getDocs', type: 'text/html; charset=utf-8', file: own('page.html') },
  { path: '/docs/start.js', operationId: 'getDocsStart', type: SCRIPT, file: own('start.js') },
  {
    path: '/docs/swagger-ui-bundle.js',
    operationId: 'getDocsViewer',
    type: SCRIPT,
    file: viewer('swagger-ui-bundle.js'),
  },
  {
    path: '/docs/swagger-ui.css',
    operationId: 'getDocsStyle',
    type: 'text/css; charset=utf-8',
    file: viewer('swagger-ui.css'),
  },
  { path: '/docs/favicon.png', operationId: 'getDocsIcon', type: 'image/png', file: viewer('favicon-32x32.png') },
];

/** No content from other origins, and no inline content. The viewer draws its icons from data: addresses. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
};

/** Not part of the API's description. */
export function docsEndpoints(): readonly Endpoint[] {
  return ASSETS.map(({ file, ...asset }) =>
    staticEndpoint({
      ...asset,
      summary: 'A part of the documentation for browsers.',
      bytes: () => readFileSync(file),
      headers: HEADERS,
    }),
  );
}

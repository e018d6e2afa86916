/** An endpoint for content that does not change while the server runs, with an entity tag. */

import { createHash } from 'node:crypto';
import { Type } from 'typebox';
import { REPEATED } from '../decision/model.ts';
import { type Endpoint, publicEndpoint } from './endpoint.ts';

interface StaticContent {
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  /** Its media type. */
  readonly type: string;
  /** Called once, at the first request. */
  readonly bytes: () => Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Made {
  readonly bytes: Uint8Array;
  readonly etag: string;
}

export function staticEndpoint(content: StaticContent): Endpoint {
  let made: Made | undefined;
  return publicEndpoint({
    method: 'GET',
    path: content.path,
    operationId: content.operationId,
    summary: content.summary,
    answers: {
      200: {
        description: 'The content.',
        content: { [content.type]: Type.Unknown() },
        headers: ['etag', 'cache-control'],
      },
    },
    handler: async (input) => {
      made ??= withTag(content.bytes());
      const headers = { ...content.headers, etag: made.etag, 'cache-control': 'no-cache' };
      const known = input.header('if-none-match');
      if (known !== undefined && known !== REPEATED && known.includes(made.etag)) return { status: 304, headers };
      return { status: 200, headers, file: { type: content.type, bytes: made.bytes } };
    },
  });
}

function withTag(bytes: Uint8Array): Made {
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` };
}

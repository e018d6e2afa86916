/**
 * Spellings of paths that some program between a client and a route might read as another path, made of building
 * blocks.
 */

const SLASHES = [
  '/',
  '//',
  '/./',
  '\\',
  '%2f',
  '%2F',
  '%5c',
  '%252f',
  '%255C',
  '%25252f',
  '%25%32%66',
  '%c0%af',
  '%25c0%25af',
  '%c1%9c',
  '%e0%80%af',
  '%ef%bc%8f',
  ';/',
  '%3b/',
  '/;a=b/',
];

const PARENTS = [
  '..',
  '%2e%2e',
  '.%2E',
  '%252e%252e',
  '.%252e',
  '%25252e%25252e',
  '%c0%ae%c0%ae',
  '%25c0%25ae%25c0%25ae',
  '%e0%80%ae.',
  '%ef%bc%8e%ef%bc%8e',
  '..;',
  '..;a=b',
  '..%3b',
  '..%253b',
  '..%00',
  '..%2500',
  '..%23',
  '..%3f',
  '..%20',
  '...',
];

/** Each way to leave `inside`, and then to go to `target`. */
export function climbs(inside: string, target: string): string[] {
  return SLASHES.flatMap((slash) => PARENTS.map((parent) => `${inside}${slash}${parent}${slash}${target}`));
}

/** Further spellings of `/v1/rag/collections`, and of `/v1/models` beside it. */
export const PROTECTED_SPELLINGS = [
  ...SLASHES.flatMap((slash) => [
    `/v1${slash}rag/collections`,
    `/v1/rag${slash}collections`,
    `/v1/rag/collections${slash}`,
  ]),
  ...[
    '/V1/rag/collections',
    '/v1/RAG/collections',
    '/v1/rag/Collections',
    '/v1/%52ag/collections',
    '/v1/%5241g/collections',
  ],
  ...['/v1/%72ag/collections', '/v1/%2572ag/collections', '/v1/r%61g/collections', '/%76%31/rag/collections'],
  ...[
    '/v1./rag/collections',
    '/v1/rag./collections',
    '/v1/rag/collections.',
    '/v1/rag/collections...',
    '/v1/rag/collections%2e',
  ],
  ...[
    '/v1/rag/collections%00',
    '/v1/rag%00/collections',
    '/v1/models%00/../rag/collections',
    '/v1/rag/collections%2500',
  ],
  ...[
    '/v1/rag/collections%20',
    '/v1/rag/collections%09',
    '/v1/rag/collections%0d%0ax',
    '/v1/rag/collections%250a',
    '/v1/rag%ff',
  ],
  ...[
    '/v1/rag/collections#/../../models',
    '/v1/models#/../rag/collections',
    '/v1/models%23/../rag/collections',
    '/#/v1/rag',
  ],
  ...[
    '/v1/rag/collections?/../../models',
    '/v1/models?/../rag/collections',
    '/v1/models%3f/../rag/collections',
    '/?/v1/rag',
  ],
  ...[
    'http://x/v1/rag/collections',
    'http://x/v1/models/../rag/collections',
    'http://x/v1/models/%2e%2e/rag/collections',
  ],
  ...[
    'HTTP://x//v1/rag/collections',
    'http:/v1/rag/collections',
    'http:///v1/rag/collections',
    'https://x/v1/rag/collections',
  ],
  ...['http://x/v1/models%2f..%2frag/collections', 'http://x?/v1/rag/collections', 'http://x#/v1/rag/collections'],
  ...[
    '//x/v1/rag/collections',
    '///v1/rag/collections',
    '/\\x/v1/rag/collections',
    '\\\\x/v1/rag/collections',
    '/%2fv1/rag',
  ],
  ...[
    '//v1/models/../rag/collections',
    '//models/v1/rag/collections',
    '/.//v1/rag/collections',
    '/../v1/rag/collections',
  ],
  ...[
    'v1/rag/collections',
    '*',
    'x',
    './v1/rag/collections',
    '../v1/rag/collections',
    '.',
    '..',
    '/',
    '',
    '%2fv1/rag/collections',
  ],
  ...[
    '/v1;a=b/rag/collections',
    '/v1/rag;a=b/collections',
    '/v1/rag/collections;a=b',
    '/;/v1/rag/collections',
    ';/v1/rag/collections',
  ],
  ...[
    '/v1/models;/../rag/collections',
    '/v1/models/;/rag/collections',
    '/v1/models/.;/../rag/collections',
    '/v1/models/x;%2f..%2f..%2frag',
  ],
  ...[
    '/v1/models/%u002e%u002e/rag/collections',
    '/v1/models/%%32%65%%32%65/rag',
    '/v1/models/%2%65%2%65/rag',
    '/v1/models/%/../../rag',
  ],
  ...[
    '/v1/models/x/../../rag/collections',
    '/v1/models/./../rag/collections',
    '/v1/models/..',
    '/v1/models/../..',
    '/v1/models/.../rag',
  ],
  ...[
    '/v1/auth/../rag/collections',
    '/v1/auth/..%252frag/collections',
    '/v1/auth/%252e%252e/rag/collections',
    '/v1/auth;/../rag',
  ],
  ...[
    '/docs/..%255c..%255cv1/rag',
    '/console/..;/v1/rag/collections',
    '/v1/iam/..%3b/rag/collections',
    '/openapi.json/../v1/rag',
  ],
  ...[
    '/openapi.json%2f..%2fv1%2frag',
    '/openapi.json;/../v1/rag',
    '/.well-known/jwks.json%252f..%252f..%252fv1/rag',
    '/v1/authx/../rag',
  ],
];

/** The model that `{model+}` takes: a slash is one however it is written. */
export const MODELS = [
  ['/v1/models/org%2Fname', '/v1/models/org/name'],
  ['/v1/models/org%2fname', '/v1/models/org/name'],
  ['/v1/models/org/name', '/v1/models/org/name'],
  ['/v1/models/meta-llama%2FLlama-3.1%3A8b', '/v1/models/meta-llama/Llama-3.1%3A8b'],
  ['/v1/models/a%20b', '/v1/models/a%20b'],
  ['/v1/models/50%25', '/v1/models/50%25'],
] as const;

type Step = (path: string) => string;

const decode: Step = (path) =>
  Buffer.from(
    Buffer.from(path)
      .toString('latin1')
      .replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString();

const OTHER_STEPS: readonly Step[] = [
  (path) => path.replaceAll('\\', '/'),
  (path) => path.replace(/;[^/]*/g, ''),
  (path) => path.replace(/\/{2,}/g, '/'),
  (path) => path.toLowerCase(),
  // biome-ignore lint/suspicious/noControlCharactersInRegex: C programs end a text there
  (path) => path.replace(/\u0000.*$/s, ''),
  (path) => {
    const kept: string[] = [];
    for (const segment of path.split('/').slice(1)) {
      if (segment === '..') kept.pop();
      else if (segment !== '.') kept.push(segment);
    }
    return `/${kept.join('/')}`;
  },
];

/**
 * Every path that an upstream may read from a target, with these steps in any order and number, decoding at most twice.
 */
export function readings(target: string): Set<string> {
  const seen = new Map<string, number>([[target.replace(/[?#].*$/s, ''), 0]]);
  for (const [path, decoded] of seen) {
    const next = OTHER_STEPS.map((step) => [step(path), decoded] as const);
    if (decoded < 2) next.push([decode(path), decoded + 1]);
    for (const [text, times] of next) {
      if (times >= (seen.get(text) ?? 3)) continue;
      // Deleted and added again, so that the loop comes to it again.
      seen.delete(text);
      seen.set(text, times);
    }
  }
  return new Set(seen.keys());
}

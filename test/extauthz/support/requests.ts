/** CheckRequests as Envoy sends them, from what a test cares about. */

import { encodeRequest } from './definition.ts';

export interface RequestSpec {
  readonly method?: string;
  readonly path?: string;
  /** In order; a name may come twice in the form of a header map. */
  readonly headers?: readonly (readonly [string, string | Uint8Array])[];
  readonly body?: string | Uint8Array;
  readonly ip?: string;
  readonly size?: number;
  /** `map` is Envoy's default, `raw` its `encode_raw_headers`. */
  readonly form?: 'map' | 'raw';
  /** Entries of `context_extensions`, beside one that means nothing. */
  readonly context?: Readonly<Record<string, string>>;
}

export function checkRequest(spec: RequestSpec): Buffer {
  const {
    method = 'POST',
    path = '/v1/chat/completions',
    headers = [],
    body = '',
    ip = '192.0.2.10',
    form = 'map',
    size,
    context = {},
  } = spec;
  const raw = Buffer.from(body);
  return encodeRequest({
    attributes: {
      source: { address: { socket_address: { address: ip, port_value: 40_000 } } },
      destination: { address: { socket_address: { address: '192.0.2.1', port_value: 443 } } },
      request: {
        time: { seconds: 1_763_720_000, nanos: 7 },
        http: {
          id: '17',
          method,
          path,
          host: 'api.example.com',
          scheme: 'https',
          protocol: 'HTTP/2',
          size: size ?? raw.length,
          ...(typeof body === 'string' ? { body } : { raw_body: raw }),
          ...(form === 'map'
            ? { headers: Object.fromEntries(headers.map(([name, value]) => [name, Buffer.from(value).toString()])) }
            : { header_map: { headers: headers.map(([key, value]) => ({ key, raw_value: Buffer.from(value) })) } }),
        },
      },
      context_extensions: { vhost: 'all', ...context },
      tls_session: { sni: 'api.example.com' },
    },
  });
}

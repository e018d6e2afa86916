/** Recent decisions as this screen reads them. Goes away once the client's types have these paths: the compiler then refuses the second declaration. */

declare module '../../../../client/types.ts' {
  interface Paths {
    readonly '/v1/iam/decisions/recent': {
      readonly GET: {
        readonly query?: {
          readonly limit?: number | undefined;
          readonly outcome?: 'allow' | 'deny' | undefined;
        };
        readonly answers: {
          readonly '200': {
            readonly data: readonly { readonly request_id: string }[];
          };
        };
      };
    };
    readonly '/v1/iam/decisions/recent/{request_id}': {
      readonly GET: {
        readonly path: { readonly request_id: string };
        readonly answers: {
          readonly '200': {
            readonly outcome: 'allow' | 'deny';
            readonly principal: { readonly type: 'user' | 'api_key'; readonly id: string } | null;
            readonly request: {
              readonly subject?: string;
              readonly tenant_id?: string;
              readonly method: string;
              readonly path: string;
              readonly client_ip: string | null;
              readonly time: string;
              readonly body?: string;
              readonly content_type?: string;
            } | null;
          };
        };
      };
    };
  }
}

export {};

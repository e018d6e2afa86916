/** What the rooms are configured with: parsed, complete and frozen. Secrets are apart, so that a Config can be shown and logged. */

import type { Route } from '../decision/model.ts';
import type { DirectorySettings } from '../directory/settings.ts';

export interface TcpAddress {
  readonly kind: 'tcp';
  /** A name or an address, IPv6 without brackets. */
  readonly host: string;
  /** 0 = any free one. */
  readonly port: number;
}

export interface UnixAddress {
  readonly kind: 'unix';
  readonly path: string;
}

export type ListenAddress = TcpAddress | UnixAddress;

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

/** One directory, without the password of its service account. */
export interface DirectoryConfig extends Omit<DirectorySettings, 'serviceAccount'> {
  /** What the service account binds as. */
  readonly bindDn: string | undefined;
}

export interface Config {
  readonly http: {
    readonly listen: TcpAddress;
    /** Addresses and CIDR blocks whose X-Forwarded-For is believed. */
    readonly trustedProxies: readonly string[];
    /** Origins that may use the cookie; empty = that of the Host header. */
    readonly origins: readonly string[];
    /** Of the API process, in MiB. */
    readonly maxHeapMb: number;
  };
  readonly grpc: {
    readonly listen: ListenAddress;
    /** HTTP/2 of this project, or Node's. */
    readonly transport: 'built-in' | 'http2';
    /** Undefined = without TLS. With a client CA, clients without a certificate of it are turned away. */
    readonly tls:
      | { readonly certFile: string; readonly keyFile: string; readonly clientCaFile: string | undefined }
      | undefined;
  };
  readonly admin: { readonly listen: TcpAddress };
  readonly database: {
    /** Embedded = a PostgreSQL of our own under `dataDir`. */
    readonly kind: 'embedded' | 'remote';
    /** Whether a server migrates; otherwise it waits until `postern migrate` has. */
    readonly migrate: boolean;
    /** Whether LISTEN works; without it changes are seen by polling alone. */
    readonly notifications: boolean;
    readonly poolSize: number;
  };
  readonly dataDir: string;
  /** Undefined = made at the first start and kept in the database. */
  readonly issuer: string | undefined;
  readonly audience: string;
  readonly token: { readonly accessTtlMs: number; readonly refreshIdleTtlMs: number; readonly refreshTtlMs: number };
  readonly bootstrap: { readonly email: string };
  readonly clientIp: { readonly trustedHops: number };
  readonly forwardCredential: boolean;
  /** In addition to the built-in ones; one of the same method and path replaces. */
  readonly routes: readonly Route[];
  readonly inspect: {
    /** The largest body that a decision reads, in bytes. */
    readonly maxBodyBytes: number;
    /** Bytes per second that one worker reads for one key or user. */
    readonly callerRate: number;
    /** The same for all of a tenant together. */
    readonly tenantRate: number;
  };
  readonly workers: number;
  readonly cache: { readonly credentials: number; readonly maxStalenessMs: number };
  readonly drain: { readonly noticeMs: number };
  /** How long keys are kept that were revoked or have expired; undefined = for ever. */
  readonly apiKeys: { readonly retentionMs: number | undefined };
  /** How long audit rows are kept at least; undefined = for ever. */
  readonly audit: { readonly retentionMs: number | undefined };
  /** Failures in 15 minutes. */
  readonly login: {
    readonly failuresPerAccount: number;
    readonly totalAccountFailures: number;
    readonly failuresPerAddress: number;
  };
  readonly limits: {
    /** Of rate limits. */
    readonly windowMs: number;
    /** Tokens reserved for a request that names no maximum. */
    readonly tokenEstimate: number;
    /** Tokens that an inline file counts in the estimate of a prompt. */
    readonly fileEstimate: number;
    readonly reservationTtlMs: number;
  };
  readonly usage: {
    /** Who tells what requests used. */
    readonly source: 'envoy' | 'events';
    /** Tenants whose usage comes by events all the same. */
    readonly eventsTenants: readonly string[];
  };
  /** Those that are enabled, in the order in which they are asked; names are unique. */
  readonly directories: readonly DirectoryConfig[];
  readonly metrics: { readonly tenantLabel: boolean };
  readonly log: {
    readonly level: LogLevel;
    readonly decisions: {
      readonly to: 'stdout' | 'file' | 'otlp' | 'off';
      /** Set when `to` is `file`. */
      readonly file: string | undefined;
      /** One allow in this many is logged; 0 = none. */
      readonly allowOneIn: number;
    };
  };
  /** Base URL of an OpenTelemetry collector; set when `to` is `otlp` and when traces are on. */
  readonly otlp: { readonly endpoint: string | undefined };
  readonly traces: { readonly sample: 'off' | 'parent' | 'always' };
}

export interface Secrets {
  /** Undefined = embedded. */
  readonly databaseUrl: string | undefined;
  /** Undefined = made and kept in `dataDir`; always there with a remote database. */
  readonly secretKey: string | undefined;
  /** Accepted beside `secretKey` while the installation changes from one to the other. */
  readonly secretKeyPrevious: string | undefined;
  /** Headers of requests to the OpenTelemetry collector, as `name=value,name=value` with percent-encoded values. */
  readonly otlpHeaders: string | undefined;
  /** Undefined = made at the first start and shown once. */
  readonly bootstrapPassword: string | undefined;
  /** Of the directories' service accounts, by the name of the directory. */
  readonly directoryPasswords: Readonly<Record<string, string>>;
  /** PEM, there when `grpc.tls` is. */
  readonly grpcTls: { readonly cert: string; readonly key: string; readonly clientCa: string | undefined } | undefined;
}

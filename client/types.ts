/** The types of the API. Made by `npm run client:types` from its description; not edited by hand. */

export type ApiKey = {
  readonly id: string;
  readonly tenant_id: string;
  /** null for a key of its tenant. */
  readonly user_id: string | null;
  readonly name: string | null;
  readonly description: string;
  readonly metadata: Metadata;
  readonly scopes: readonly string[];
  readonly resource_constraints: ResourceConstraints;
  readonly rate_limit_rpm: number | null;
  readonly prefix: string;
  readonly last_four: string;
  /** The secret is another system's, imported as a digest. A rotation gives the key a secret of Postern's own. */
  readonly imported: boolean;
  readonly status: 'active' | 'expired' | 'revoked';
  readonly expires_at: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly last_used_at: string | null;
  /** What the resource says without any effect; absent without notices. Read-only. */
  readonly notices?: readonly Notice[];
  /** The messages of `notices` as one text; absent without notices. */
  readonly notice?: string;
};

export type ApiKeyChanges = {
  readonly name?: string | null;
  readonly description?: string;
  /** Pairs of text, which no decision reads. Replaced whole; null or an empty object removes all. */
  readonly metadata?: Readonly<Record<string, string>> | null;
  readonly scopes?: readonly string[];
  readonly expires_at?: string | null;
  readonly expires_in_days?: number;
  readonly resource_constraints?: {
    readonly models?: readonly string[] | null;
    readonly collections?: readonly string[] | null;
    readonly agents?: readonly string[] | null;
  } | null;
  readonly rate_limit_rpm?: number | null;
};

export type ApiKeyImport = {
  /** Keys that are new. */
  readonly imported: number;
  readonly data: readonly {
    /** Of the row in the request. */
    readonly index: number;
    /** `exists`: the tenant has a key with this digest, which stays as it is. */
    readonly outcome: 'imported' | 'exists' | 'rejected';
    /** null for `rejected`. */
    readonly id: string | null;
    readonly code?: 'malformed_request' | 'malformed_path' | 'malformed_body' | 'invalid_tenant' | 'max_tokens_exceeded' | 'invalid_json' | 'invalid_parameter' | 'missing_credential' | 'invalid_credential' | 'token_expired' | 'no_route' | 'tenant_mismatch' | 'tenant_suspended' | 'denied_by_policy' | 'insufficient_permission' | 'resource_not_permitted' | 'escalation' | 'builtin_role' | 'password_expired' | 'not_found' | 'method_not_allowed' | 'already_exists' | 'in_use' | 'revoked' | 'last_admin' | 'would_lock_out' | 'quota_exceeded' | 'idempotency_in_progress' | 'precondition_failed' | 'body_too_large' | 'unsupported_media_type' | 'invalid_field' | 'idempotency_mismatch' | 'rate_limit_exceeded' | 'insufficient_quota' | 'too_many_attempts' | 'unavailable';
    readonly detail?: string;
    readonly errors?: readonly {
      readonly path: string;
      readonly message: string;
    }[];
  }[];
};

export type ApiKeyList = {
  readonly object: 'list';
  readonly data: readonly ApiKey[];
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** Rows of the whole list. With `count=true`, up to 10,000 rows. */
  readonly total?: number;
  /** In place of `total` if the list has more rows than that. */
  readonly total_exceeds?: 10000;
};

export type ApiKeyRevocations = {
  readonly dry_run: boolean;
  /** Keys that were revoked; in a dry run, that would be. */
  readonly revoked: number;
  /** The filter matched more keys than one request takes. Send it again for the rest. */
  readonly has_more: boolean;
  readonly data: readonly {
    readonly id: string;
    readonly outcome: 'revoked' | 'would_revoke' | 'already_revoked' | 'not_found' | 'rejected';
    readonly code?: 'malformed_request' | 'malformed_path' | 'malformed_body' | 'invalid_tenant' | 'max_tokens_exceeded' | 'invalid_json' | 'invalid_parameter' | 'missing_credential' | 'invalid_credential' | 'token_expired' | 'no_route' | 'tenant_mismatch' | 'tenant_suspended' | 'denied_by_policy' | 'insufficient_permission' | 'resource_not_permitted' | 'escalation' | 'builtin_role' | 'password_expired' | 'not_found' | 'method_not_allowed' | 'already_exists' | 'in_use' | 'revoked' | 'last_admin' | 'would_lock_out' | 'quota_exceeded' | 'idempotency_in_progress' | 'precondition_failed' | 'body_too_large' | 'unsupported_media_type' | 'invalid_field' | 'idempotency_mismatch' | 'rate_limit_exceeded' | 'insufficient_quota' | 'too_many_attempts' | 'unavailable';
    readonly detail?: string;
    readonly key?: {
      readonly name: string | null;
      readonly description: string;
      readonly user_id: string | null;
      readonly prefix: string;
      readonly last_four: string;
      readonly expires_at: string | null;
      readonly last_used_at: string | null;
    };
  }[];
};

export type ApiKeysToRevoke = {
  readonly ids?: readonly string[];
  /** Keys that match all members; `status` defaults to `active`. */
  readonly filter?: {
    readonly status?: 'active' | 'expired';
    readonly user_id?: string;
    readonly expires_before?: string;
    /** The beginning of the shown `prefix`. Never send more of a key: addresses are logged on their way. */
    readonly prefix?: string;
    /** Any part of name, description or metadata, in any case. */
    readonly q?: string;
  };
};

export type AuditChain = {
  /** Rows of the audit log that seals name. */
  readonly rows: number;
  readonly seals: number;
  /** Rows that wait for a seal, at most 100000. */
  readonly unsealed: number;
  /** null while there is none. */
  readonly newest_seal: {
    readonly number: number;
    readonly hash: string;
    readonly time: string;
  } | null;
};

export type AuditRow = {
  readonly id: string;
  readonly time: string;
  readonly actor: {
    readonly type: 'user' | 'api_key' | 'system' | 'anonymous';
    /** null for the system, and for whoever proved nothing. */
    readonly id: string | null;
  };
  /** null for what belongs to no tenant. */
  readonly tenant_id: string | null;
  readonly address: string | null;
  readonly action: string;
  readonly target: {
    readonly type: string | null;
    readonly id: string | null;
  };
  readonly result: 'success' | 'failure' | 'refused';
  /** What there was, without secrets; null where nothing is recorded. */
  readonly before: unknown;
  /** What there is now, or what else is worth knowing; without secrets. */
  readonly after: unknown;
  readonly request_id: string | null;
};

export type AuditRowList = {
  readonly object: 'list';
  readonly data: readonly AuditRow[];
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** Rows of the whole list. With `count=true`, up to 10,000 rows. */
  readonly total?: number;
  /** In place of `total` if the list has more rows than that. */
  readonly total_exceeds?: 10000;
};

export type CreatedUser = {
  readonly id: string;
  /** null for users of a directory that have none. */
  readonly email: string | null;
  readonly name: string;
  readonly department: string | null;
  readonly metadata: Metadata;
  /** Given by hand. */
  readonly roles: readonly string[];
  /** Given by the directory; read-only. */
  readonly directory_roles: readonly string[];
  readonly tenant_id: string;
  readonly status: 'active' | 'deactivated';
  /** `ldap`: a user of a directory, which keeps its e-mail, name and password. */
  readonly source: 'local' | 'ldap';
  /** Only of users of a directory: what it said last of the user, whose keys and sessions are rejected unless it is `active`. Read-only. */
  readonly directory_status?: 'active' | 'removed' | 'disabled' | 'expired' | 'tenant_changed' | 'several_names' | 'several_ids';
  /** Only of users of a directory: the address that it shows, if another user has it. `email` is null then. Read-only. */
  readonly email_conflict?: string | null;
  /** When a login last began a session; null if none did. Read-only. */
  readonly last_login_at: string | null;
  /** Until then, failed logins lock the account; null if they do not. Read-only. */
  readonly locked_until: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  /** Sets a first password, once, within the hour. Shown here and never again. */
  readonly password_setup_token?: string;
  /** In place of the secret where an answer is given again. */
  readonly secret_available?: false;
};

export type DecisionTotals = {
  readonly allow: number;
  readonly deny: number;
  /** Answered 503, because it could not be decided. */
  readonly fault: number;
};

export type Decisions = {
  readonly from: string;
  readonly to: string;
  /** `*` for all tenants together, and for requests of whom nobody was known. */
  readonly tenant_id: string;
  readonly interval: 'minute' | 'hour' | 'day';
  readonly total: DecisionTotals;
  /** One row for each minute, hour or day with its code and route, its code, or its outcome, the oldest first. */
  readonly data: readonly DecisionsOfMinute[];
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
};

export type DecisionsOfMinute = {
  /** The start of the minute, hour or day. */
  readonly minute: string;
  readonly outcome: 'allow' | 'deny' | 'fault';
  /** `allow`, `public`, or the code of the error; null in groups by outcome. */
  readonly code: string | null;
  /** A line of the route table; null if no route was matched or needed, and in groups by code or outcome. */
  readonly route: string | null;
  readonly count: number;
};

export type DirectoryTest = {
  /** In order, up to the first that failed. */
  readonly steps: readonly {
    readonly step: 'connect' | 'tls' | 'service_bind' | 'find_user' | 'user_bind' | 'attributes' | 'groups' | 'roles' | 'tenant';
    readonly ok: boolean;
    /** What happened. */
    readonly detail: string;
    /** What to change. */
    readonly advice?: string;
    /** What was found, without secrets. */
    readonly data?: Readonly<Record<string, unknown>>;
  }[];
};

export type DirectoryTestRequest = {
  /** As a login would send it. */
  readonly username: string;
  /** Absent: everything but the person's own bind is tried. */
  readonly password?: string;
  /** `ldap.name`. Absent: the directory that a login with this name would ask first. */
  readonly directory?: string;
};

export type ExplainRequest = {
  /** The id of a user or a key. */
  readonly subject?: string;
  /** An API key or an access token. */
  readonly credential?: string;
  /** Stands for X-Tenant-ID. */
  readonly tenant_id?: string;
  readonly method: string;
  readonly path: string;
  /** Absent: yours; null: missing. */
  readonly client_ip?: string | null;
  /** Absent: now. */
  readonly time?: string;
  /** Of the request, as text. */
  readonly body?: string;
  /** Absent: application/json. */
  readonly content_type?: string;
};

export type ExplainedDecision = {
  /** The request_id of the denial, and its header x-request-id. */
  readonly request_id: string;
  readonly time: string;
  /** null if no tenant was known. */
  readonly tenant_id: string | null;
  readonly outcome: 'allow' | 'deny';
  /** `allow`, or the code of the denial. */
  readonly code: string;
  /** The detail of the denial; empty for an allow. */
  readonly detail: string;
  readonly principal: {
    readonly type: 'user' | 'api_key';
    readonly id: string;
  } | null;
  /** null if the check could not be read. */
  readonly method: string | null;
  /** Without the query, at most 1,024 characters; secrets are masked. */
  readonly path: string | null;
  /** A line of the route table. */
  readonly route: string | null;
  readonly permission: string | null;
  /** `<kind>/<name>`, at most 16. */
  readonly resources: readonly string[];
  readonly client_ip: string | null;
  /** The policy that denied. */
  readonly policy: string | null;
  /** true: other decisions of the tenant and outcome were not recorded at that time. */
  readonly sampled: boolean;
  /** The request as explain and simulate take it; null if the record is not exact. */
  readonly request: {
    readonly subject?: string;
    readonly tenant_id?: string;
    readonly method: string;
    readonly path: string;
    readonly client_ip: string | null;
    readonly time: string;
    /** Not the body, but one that names the same resources. */
    readonly body?: string;
    readonly content_type?: string;
  } | null;
  readonly explanation: {
    readonly decision: 'allow' | 'deny';
    readonly status: number;
    readonly code: 'allow' | 'malformed_request' | 'malformed_path' | 'malformed_body' | 'invalid_tenant' | 'max_tokens_exceeded' | 'invalid_json' | 'invalid_parameter' | 'missing_credential' | 'invalid_credential' | 'token_expired' | 'no_route' | 'tenant_mismatch' | 'tenant_suspended' | 'denied_by_policy' | 'insufficient_permission' | 'resource_not_permitted' | 'escalation' | 'builtin_role' | 'password_expired' | 'not_found' | 'method_not_allowed' | 'already_exists' | 'in_use' | 'revoked' | 'last_admin' | 'would_lock_out' | 'quota_exceeded' | 'idempotency_in_progress' | 'precondition_failed' | 'body_too_large' | 'unsupported_media_type' | 'invalid_field' | 'idempotency_mismatch' | 'rate_limit_exceeded' | 'insufficient_quota' | 'too_many_attempts' | 'unavailable';
    readonly detail: string;
    readonly policy: string | null;
    readonly steps: readonly {
      readonly line: number;
      readonly name: string;
      /** `not_evaluated`: an earlier step ended the decision. */
      readonly outcome: 'passed' | 'denied' | 'allowed' | 'not_evaluated';
      readonly detail: string;
      /** Of step 8, if it denies: why the credential proves no principal. `unknown` also if you may not manage its key or user. */
      readonly reason?: 'revoked' | 'expired' | 'rotated' | 'checksum' | 'unknown' | 'owner_deactivated' | 'session_ended';
      /** Of step 8, if it denies: the key of the credential. */
      readonly key_id?: string | null;
      /** Of step 8, if it denies: the key's owner, or the user that the token names. */
      readonly user_id?: string | null;
      /** Of step 8, if it denies: since when. */
      readonly time?: string | null;
    }[];
    readonly route: string | null;
    readonly permission: string | null;
    readonly resources: readonly string[];
    readonly grants: readonly {
      readonly kind: 'role' | 'owner_role' | 'scopes';
      readonly name: string | null;
      readonly permissions: readonly string[];
      readonly resource_constraints: ResourceConstraints;
      readonly outcome: 'covers' | 'no_permission' | 'no_resources';
    }[];
    readonly policies: readonly {
      readonly name: string;
      readonly effect: 'allow' | 'deny';
      readonly global: boolean;
      readonly matched: boolean;
      readonly applies: boolean;
      readonly actions: boolean;
      readonly resources: boolean;
      readonly conditions: readonly {
        readonly kind: string;
        readonly operator: string | null;
        readonly operand: readonly string[];
        /** What it was compared with; null when that is missing. */
        readonly value: string | null;
        /** Whose clock shows the value. */
        readonly timezone: string | null;
        readonly matched: boolean;
        readonly missing: boolean;
      }[];
    }[];
    /** The limits of steps 15 to 17; empty if an earlier step ended the decision. Nothing is counted. */
    readonly limits: readonly {
      readonly name: 'max_tokens_per_request' | 'rate_limit_rpm' | 'monthly_tokens' | 'max_collections';
      readonly of: 'tenant' | 'api_key';
      /** The step that checks it: 15, 16 or 17. */
      readonly line: number;
      /** false: this request does not count toward it. */
      readonly applies: boolean;
      /** null = none. */
      readonly limit: number | null;
      /** As the database knows it now; of a rate, what was handed out to all gates. */
      readonly used: number | null;
      /** Of tokens and collections: the part of `remaining` that is set aside. */
      readonly reserved: number | null;
      /** limit less used. */
      readonly remaining: number | null;
      readonly resets_at: string | null;
      /** What this request takes: one request, the tokens that it may spend, one collection; of step 15 the largest limit that it names. */
      readonly needed: number | null;
      readonly exceeded: boolean;
    }[];
    /** The current rules decide the request as it was decided. */
    readonly same: boolean;
    /** How the explanation relates to the recorded decision. */
    readonly note: string;
  } | null;
  /** Why there is no explanation: the check could not be read, a text was cut or masked, or the principal is gone or not visible. */
  readonly not_explained: 'unreadable' | 'altered' | 'unknown_principal' | null;
};

export type Explanation = {
  readonly decision: 'allow' | 'deny';
  readonly status: number;
  readonly code: 'allow' | 'malformed_request' | 'malformed_path' | 'malformed_body' | 'invalid_tenant' | 'max_tokens_exceeded' | 'invalid_json' | 'invalid_parameter' | 'missing_credential' | 'invalid_credential' | 'token_expired' | 'no_route' | 'tenant_mismatch' | 'tenant_suspended' | 'denied_by_policy' | 'insufficient_permission' | 'resource_not_permitted' | 'escalation' | 'builtin_role' | 'password_expired' | 'not_found' | 'method_not_allowed' | 'already_exists' | 'in_use' | 'revoked' | 'last_admin' | 'would_lock_out' | 'quota_exceeded' | 'idempotency_in_progress' | 'precondition_failed' | 'body_too_large' | 'unsupported_media_type' | 'invalid_field' | 'idempotency_mismatch' | 'rate_limit_exceeded' | 'insufficient_quota' | 'too_many_attempts' | 'unavailable';
  readonly detail: string;
  readonly policy: string | null;
  readonly steps: readonly {
    readonly line: number;
    readonly name: string;
    /** `not_evaluated`: an earlier step ended the decision. */
    readonly outcome: 'passed' | 'denied' | 'allowed' | 'not_evaluated';
    readonly detail: string;
    /** Of step 8, if it denies: why the credential proves no principal. `unknown` also if you may not manage its key or user. */
    readonly reason?: 'revoked' | 'expired' | 'rotated' | 'checksum' | 'unknown' | 'owner_deactivated' | 'session_ended';
    /** Of step 8, if it denies: the key of the credential. */
    readonly key_id?: string | null;
    /** Of step 8, if it denies: the key's owner, or the user that the token names. */
    readonly user_id?: string | null;
    /** Of step 8, if it denies: since when. */
    readonly time?: string | null;
  }[];
  readonly route: string | null;
  readonly permission: string | null;
  readonly resources: readonly string[];
  readonly grants: readonly {
    readonly kind: 'role' | 'owner_role' | 'scopes';
    readonly name: string | null;
    readonly permissions: readonly string[];
    readonly resource_constraints: ResourceConstraints;
    readonly outcome: 'covers' | 'no_permission' | 'no_resources';
  }[];
  readonly policies: readonly {
    readonly name: string;
    readonly effect: 'allow' | 'deny';
    readonly global: boolean;
    readonly matched: boolean;
    readonly applies: boolean;
    readonly actions: boolean;
    readonly resources: boolean;
    readonly conditions: readonly {
      readonly kind: string;
      readonly operator: string | null;
      readonly operand: readonly string[];
      /** What it was compared with; null when that is missing. */
      readonly value: string | null;
      /** Whose clock shows the value. */
      readonly timezone: string | null;
      readonly matched: boolean;
      readonly missing: boolean;
    }[];
  }[];
  /** The limits of steps 15 to 17; empty if an earlier step ended the decision. Nothing is counted. */
  readonly limits: readonly {
    readonly name: 'max_tokens_per_request' | 'rate_limit_rpm' | 'monthly_tokens' | 'max_collections';
    readonly of: 'tenant' | 'api_key';
    /** The step that checks it: 15, 16 or 17. */
    readonly line: number;
    /** false: this request does not count toward it. */
    readonly applies: boolean;
    /** null = none. */
    readonly limit: number | null;
    /** As the database knows it now; of a rate, what was handed out to all gates. */
    readonly used: number | null;
    /** Of tokens and collections: the part of `remaining` that is set aside. */
    readonly reserved: number | null;
    /** limit less used. */
    readonly remaining: number | null;
    readonly resets_at: string | null;
    /** What this request takes: one request, the tokens that it may spend, one collection; of step 15 the largest limit that it names. */
    readonly needed: number | null;
    readonly exceeded: boolean;
  }[];
};

export type ImportedApiKeys = {
  readonly keys: readonly {
    /** SHA-256 of the key in hexadecimal. The key itself is never sent. */
    readonly digest: string;
    /** What lists show. */
    readonly prefix: string;
    readonly last_four: string;
    readonly name?: string | null;
    readonly description: string;
    /** Pairs of text, which no decision reads. Replaced whole; null or an empty object removes all. */
    readonly metadata?: Readonly<Record<string, string>> | null;
    readonly scopes: readonly string[];
    readonly expires_at?: string | null;
    readonly expires_in_days?: number;
    /** The owner; default: the tenant itself. */
    readonly user_id?: string | null;
    readonly resource_constraints?: {
      readonly models?: readonly string[] | null;
      readonly collections?: readonly string[] | null;
      readonly agents?: readonly string[] | null;
    } | null;
    readonly rate_limit_rpm?: number | null;
  }[];
};

export type IssuedApiKey = {
  readonly id: string;
  readonly tenant_id: string;
  /** null for a key of its tenant. */
  readonly user_id: string | null;
  readonly name: string | null;
  readonly description: string;
  readonly metadata: Metadata;
  readonly scopes: readonly string[];
  readonly resource_constraints: ResourceConstraints;
  readonly rate_limit_rpm: number | null;
  readonly prefix: string;
  readonly last_four: string;
  /** The secret is another system's, imported as a digest. A rotation gives the key a secret of Postern's own. */
  readonly imported: boolean;
  readonly status: 'active' | 'expired' | 'revoked';
  readonly expires_at: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly last_used_at: string | null;
  /** What the resource says without any effect; absent without notices. Read-only. */
  readonly notices?: readonly Notice[];
  /** The messages of `notices` as one text; absent without notices. */
  readonly notice?: string;
  /** The key itself, shown here and never again. */
  readonly key?: string;
  /** In place of the secret where an answer is given again. */
  readonly secret_available?: false;
};

export type KeySet = {
  readonly keys: readonly {
    readonly kty: string;
    readonly kid: string;
    readonly use: string;
    readonly alg: string;
  }[];
};

export type Limit = {
  /** null: there is none. */
  readonly limit: number | null;
  /** null: nobody counts. */
  readonly used: number | null;
  readonly remaining: number | null;
  /** null: not by itself. */
  readonly resets_at: string | null;
};

export type Limits = {
  readonly rate_limit_rpm: Limit;
  readonly max_tokens_per_request: Limit;
  readonly monthly_tokens: ReservableLimit;
  readonly max_users: Limit;
  readonly max_collections: ReservableLimit;
};

export type Login = {
  readonly email?: string;
  readonly username?: string;
  readonly auth_type?: 'ldap';
  readonly password: string;
  /** The refresh token comes as an HttpOnly cookie. */
  readonly session?: 'cookie';
};

/** Empty where the access token, or the cookie, tells the session. */
export type Logout = {
  /** Absent where it travels in a cookie. */
  readonly refresh_token?: string;
};

export type Me = {
  readonly id: string;
  readonly type: 'user' | 'api_key';
  readonly email: string | null;
  readonly name: string;
  readonly tenant_id: string;
  /** Who keeps the password: `local` is Postern, `ldap` a directory; null for API keys. */
  readonly source: 'local' | 'ldap' | null;
  readonly roles: readonly string[];
  /** The patterns that roles or scopes give. Policies and constraints may still narrow or widen them. */
  readonly permissions: readonly string[];
  readonly platform_admin: boolean;
};

/** Pairs of text. No decision reads them. */
export type Metadata = Readonly<Record<string, string>>;

export type NewApiKey = {
  readonly name?: string | null;
  readonly description: string;
  /** Pairs of text, which no decision reads. Replaced whole; null or an empty object removes all. */
  readonly metadata?: Readonly<Record<string, string>> | null;
  readonly scopes: readonly string[];
  readonly expires_at?: string | null;
  readonly expires_in_days?: number;
  readonly user_id?: string | null;
  readonly resource_constraints?: {
    readonly models?: readonly string[] | null;
    readonly collections?: readonly string[] | null;
    readonly agents?: readonly string[] | null;
  } | null;
  readonly rate_limit_rpm?: number | null;
};

export type NewPassword = {
  /** A `password_setup_token`. */
  readonly token: string;
  readonly new_password: string;
};

export type NewPolicy = {
  readonly name: string;
  readonly effect: 'allow' | 'deny';
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  readonly description?: string;
  /** ip_address, time, day_of_week, weekly_hours and timezone; all must hold. Absent or empty = always. */
  readonly conditions?: {
    readonly ip_address?: {
      readonly in?: readonly string[];
      readonly not_in?: readonly string[];
    };
    readonly time?: {
      readonly between?: readonly string[];
      readonly not_between?: readonly string[];
    };
    readonly day_of_week?: {
      readonly in?: readonly ('Mon' | 'Tue' | 'Wed' | 'Thu' | 'Fri' | 'Sat' | 'Sun')[];
      readonly not_in?: readonly ('Mon' | 'Tue' | 'Wed' | 'Thu' | 'Fri' | 'Sat' | 'Sun')[];
    };
    readonly weekly_hours?: {
      readonly in?: readonly string[];
      readonly not_in?: readonly string[];
    };
    /** A name of the IANA time zone database. */
    readonly timezone?: string;
  } | null;
  readonly applies_to?: 'everyone' | 'roles';
  readonly attached_roles?: readonly string[];
  readonly global?: boolean;
  readonly enabled?: boolean;
};

export type NewRole = {
  readonly name: string;
  readonly description?: string;
  readonly permissions: readonly string[];
  readonly resource_constraints?: {
    readonly models?: readonly string[] | null;
    readonly collections?: readonly string[] | null;
    readonly agents?: readonly string[] | null;
  } | null;
};

export type NewTenant = {
  readonly id: string;
  readonly name: string;
  readonly settings?: {
    readonly default_model?: string | null;
    readonly max_tokens_per_request?: number | null;
    readonly rate_limit_rpm?: number | null;
    /** A name of the IANA time zone database. */
    readonly timezone?: string | null;
    readonly allow_keys_without_expiry?: boolean | null;
  };
  readonly quotas?: {
    readonly monthly_tokens?: number | null;
    readonly max_users?: number | null;
    readonly max_collections?: number | null;
  };
  /** Pairs of text, which no decision reads. Replaced whole; null or an empty object removes all. */
  readonly metadata?: Readonly<Record<string, string>> | null;
};

export type NewUser = {
  readonly email: string;
  readonly name: string;
  readonly department?: string | null;
  /** Pairs of text, which no decision reads. Replaced whole; null or an empty object removes all. */
  readonly metadata?: Readonly<Record<string, string>> | null;
  readonly roles?: readonly string[];
  /** Means the same as X-Tenant-ID. */
  readonly tenant_id?: string;
  readonly password?: string;
};

export type Notice = {
  readonly kind: 'unneeded_pattern' | 'binds_no_one';
  /** JSON pointer to the member. */
  readonly path: string;
  /** The pattern that no route and no endpoint needs. */
  readonly pattern: string | null;
  /** The nearest pattern that covers a permission. */
  readonly nearest: string | null;
  readonly message: string;
};

export type PasswordChange = {
  readonly old_password: string;
  readonly new_password: string;
};

export type PasswordReset = {
  /** Shown here and never again. */
  readonly password_setup_token?: string;
  /** In place of the secret where an answer is given again. */
  readonly secret_available?: false;
  readonly expires_at: string;
};

export type Permission = {
  readonly permission: string;
  /** `platform`: routes of the platform need it; `management`: endpoints of /v1/iam only. */
  readonly kind: 'platform' | 'management';
  /** The routes and endpoints that need it, or of which it is one of the permissions that suffice. */
  readonly routes: readonly {
    readonly method: string;
    /** A template. */
    readonly path: string;
  }[];
  /** All of them; `routes` shows 100 at most. */
  readonly route_count: number;
};

export type PermissionList = {
  readonly object: 'list';
  readonly data: readonly Permission[];
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** Rows of the whole list. With `count=true`, up to 10,000 rows. */
  readonly total?: number;
  /** In place of `total` if the list has more rows than that. */
  readonly total_exceeds?: 10000;
};

export type Policy = {
  readonly name: string;
  readonly description: string;
  readonly effect: 'allow' | 'deny';
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  readonly conditions: PolicyConditions;
  readonly applies_to: 'everyone' | 'roles';
  readonly attached_roles: readonly string[];
  readonly global: boolean;
  readonly enabled: boolean;
  /** null for global policies. */
  readonly tenant_id: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  /** What the resource says without any effect; absent without notices. Read-only. */
  readonly notices?: readonly Notice[];
  /** The messages of `notices` as one text; absent without notices. */
  readonly notice?: string;
};

export type PolicyChanges = {
  readonly effect?: 'allow' | 'deny';
  readonly actions?: readonly string[];
  readonly resources?: readonly string[];
  readonly description?: string;
  /** ip_address, time, day_of_week, weekly_hours and timezone; all must hold. Absent or empty = always. */
  readonly conditions?: {
    readonly ip_address?: {
      readonly in?: readonly string[];
      readonly not_in?: readonly string[];
    };
    readonly time?: {
      readonly between?: readonly string[];
      readonly not_between?: readonly string[];
    };
    readonly day_of_week?: {
      readonly in?: readonly ('Mon' | 'Tue' | 'Wed' | 'Thu' | 'Fri' | 'Sat' | 'Sun')[];
      readonly not_in?: readonly ('Mon' | 'Tue' | 'Wed' | 'Thu' | 'Fri' | 'Sat' | 'Sun')[];
    };
    readonly weekly_hours?: {
      readonly in?: readonly string[];
      readonly not_in?: readonly string[];
    };
    /** A name of the IANA time zone database. */
    readonly timezone?: string;
  } | null;
  readonly applies_to?: 'everyone' | 'roles';
  readonly attached_roles?: readonly string[];
  readonly global?: boolean;
  readonly enabled?: boolean;
};

/** All must hold; empty = always. */
export type PolicyConditions = {
  readonly ip_address?: {
    readonly in?: readonly string[];
    readonly not_in?: readonly string[];
  };
  readonly time?: {
    readonly between?: readonly string[];
    readonly not_between?: readonly string[];
  };
  readonly day_of_week?: {
    readonly in?: readonly ('Mon' | 'Tue' | 'Wed' | 'Thu' | 'Fri' | 'Sat' | 'Sun')[];
    readonly not_in?: readonly ('Mon' | 'Tue' | 'Wed' | 'Thu' | 'Fri' | 'Sat' | 'Sun')[];
  };
  readonly weekly_hours?: {
    readonly in?: readonly string[];
    readonly not_in?: readonly string[];
  };
  readonly timezone?: string;
};

export type PolicyList = {
  readonly object: 'list';
  readonly data: readonly Policy[];
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** Rows of the whole list. With `count=true`, up to 10,000 rows. */
  readonly total?: number;
  /** In place of `total` if the list has more rows than that. */
  readonly total_exceeds?: 10000;
};

/** Every refusal: problem details of RFC 9457 that also carry the `error` member of the OpenAI API. */
export type Problem = {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  /** For people; may change at any time. */
  readonly detail: string;
  /** For programs; stays. */
  readonly code: 'malformed_request' | 'malformed_path' | 'malformed_body' | 'invalid_tenant' | 'max_tokens_exceeded' | 'invalid_json' | 'invalid_parameter' | 'missing_credential' | 'invalid_credential' | 'token_expired' | 'no_route' | 'tenant_mismatch' | 'tenant_suspended' | 'denied_by_policy' | 'insufficient_permission' | 'resource_not_permitted' | 'escalation' | 'builtin_role' | 'password_expired' | 'not_found' | 'method_not_allowed' | 'already_exists' | 'in_use' | 'revoked' | 'last_admin' | 'would_lock_out' | 'quota_exceeded' | 'idempotency_in_progress' | 'precondition_failed' | 'body_too_large' | 'unsupported_media_type' | 'invalid_field' | 'idempotency_mismatch' | 'rate_limit_exceeded' | 'insufficient_quota' | 'too_many_attempts' | 'unavailable';
  readonly request_id: string;
  /** The policy that denies. */
  readonly policy?: string;
  readonly resets_at?: string;
  /** What is wrong with the body, by member. */
  readonly errors?: readonly {
    /** A JSON pointer (RFC 6901). */
    readonly path: string;
    readonly message: string;
  }[];
  readonly error: {
    readonly message: string;
    readonly type: 'invalid_request_error' | 'authentication_error' | 'permission_error' | 'rate_limit_error' | 'insufficient_quota' | 'server_error';
    readonly param: string | null;
    readonly code: string;
  };
};

export type RecentDecision = {
  /** The request_id of the denial, and its header x-request-id. */
  readonly request_id: string;
  readonly time: string;
  /** null if no tenant was known. */
  readonly tenant_id: string | null;
  readonly outcome: 'allow' | 'deny';
  /** `allow`, or the code of the denial. */
  readonly code: string;
  /** The detail of the denial; empty for an allow. */
  readonly detail: string;
  readonly principal: {
    readonly type: 'user' | 'api_key';
    readonly id: string;
  } | null;
  /** null if the check could not be read. */
  readonly method: string | null;
  /** Without the query, at most 1,024 characters; secrets are masked. */
  readonly path: string | null;
  /** A line of the route table. */
  readonly route: string | null;
  readonly permission: string | null;
  /** `<kind>/<name>`, at most 16. */
  readonly resources: readonly string[];
  readonly client_ip: string | null;
  /** The policy that denied. */
  readonly policy: string | null;
  /** true: other decisions of the tenant and outcome were not recorded at that time. */
  readonly sampled: boolean;
};

export type RecentDecisions = {
  readonly object: 'list';
  readonly data: readonly RecentDecision[];
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** Rows of the whole list. With `count=true`, up to 10,000 rows. */
  readonly total?: number;
  /** In place of `total` if the list has more rows than that. */
  readonly total_exceeds?: 10000;
  /** true: a decision of this page is sampled. */
  readonly sampled: boolean;
};

/** A browser whose refresh token travels in a cookie sends an empty object, or no body. */
export type RefreshToken = {
  /** Absent where it travels in a cookie. */
  readonly refresh_token?: string;
};

export type ReservableLimit = {
  /** null: there is none. */
  readonly limit: number | null;
  /** null: nobody counts. */
  readonly used: number | null;
  readonly remaining: number | null;
  /** null: not by itself. */
  readonly resets_at: string | null;
  /** Of what remains: set aside for requests under way, and a little ahead of need. */
  readonly reserved: number;
};

/** Names or globs by kind. An absent kind is unconstrained, an empty list permits none. */
export type ResourceConstraints = {
  readonly models?: readonly string[];
  readonly collections?: readonly string[];
  readonly agents?: readonly string[];
};

export type Role = {
  readonly name: string;
  readonly description: string;
  readonly permissions: readonly string[];
  readonly resource_constraints: ResourceConstraints;
  readonly builtin: boolean;
  /** null for built-in roles, which are the same in every tenant. */
  readonly tenant_id: string | null;
  readonly created_at: string | null;
  readonly updated_at: string | null;
  /** What the resource says without any effect; absent without notices. Read-only. */
  readonly notices?: readonly Notice[];
  /** The messages of `notices` as one text; absent without notices. */
  readonly notice?: string;
};

export type RoleChanges = {
  readonly description?: string;
  readonly permissions?: readonly string[];
  readonly resource_constraints?: {
    readonly models?: readonly string[] | null;
    readonly collections?: readonly string[] | null;
    readonly agents?: readonly string[] | null;
  } | null;
};

export type RoleList = {
  readonly object: 'list';
  readonly data: readonly Role[];
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** Rows of the whole list. With `count=true`, up to 10,000 rows. */
  readonly total?: number;
  /** In place of `total` if the list has more rows than that. */
  readonly total_exceeds?: 10000;
};

export type Rotation = {
  /** Seconds for which the old secret works beside the new one, except to change anything. 0: not at all. */
  readonly grace_seconds?: number;
};

export type Session = {
  readonly id: string;
  readonly created_at: string;
  /** When it was begun or last refreshed. */
  readonly last_used_at: string;
  /** When it ends however much it is used. */
  readonly expires_at: string;
  /** From where it was begun. */
  readonly address: string | null;
  readonly user_agent: string | null;
  /** Its refresh token lives in a browser's cookie. */
  readonly cookie: boolean;
  /** The session of the access token that asks. */
  readonly current: boolean;
};

export type SessionList = {
  readonly object: 'list';
  readonly data: readonly Session[];
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** Rows of the whole list. With `count=true`, up to 10,000 rows. */
  readonly total?: number;
  /** In place of `total` if the list has more rows than that. */
  readonly total_exceeds?: 10000;
};

export type SimulateRequest = {
  /** The id of a user or a key. */
  readonly subject?: string;
  /** An API key or an access token. */
  readonly credential?: string;
  /** Stands for X-Tenant-ID. */
  readonly tenant_id?: string;
  readonly method: string;
  readonly path: string;
  /** Absent: yours; null: missing. */
  readonly client_ip?: string | null;
  /** Absent: now. */
  readonly time?: string;
  /** Of the request, as text. */
  readonly body?: string;
  /** Absent: application/json. */
  readonly content_type?: string;
  /** Each whole, as to make it. Policies and roles take at most 64 KiB together, as JSON without spaces. */
  readonly policies?: readonly NewPolicy[];
  /** Each whole, as to make it. Policies and roles take at most 64 KiB together, as JSON without spaces. */
  readonly roles?: readonly NewRole[];
};

export type Simulation = {
  readonly decision: 'allow' | 'deny';
  readonly status: number;
  readonly code: 'allow' | 'malformed_request' | 'malformed_path' | 'malformed_body' | 'invalid_tenant' | 'max_tokens_exceeded' | 'invalid_json' | 'invalid_parameter' | 'missing_credential' | 'invalid_credential' | 'token_expired' | 'no_route' | 'tenant_mismatch' | 'tenant_suspended' | 'denied_by_policy' | 'insufficient_permission' | 'resource_not_permitted' | 'escalation' | 'builtin_role' | 'password_expired' | 'not_found' | 'method_not_allowed' | 'already_exists' | 'in_use' | 'revoked' | 'last_admin' | 'would_lock_out' | 'quota_exceeded' | 'idempotency_in_progress' | 'precondition_failed' | 'body_too_large' | 'unsupported_media_type' | 'invalid_field' | 'idempotency_mismatch' | 'rate_limit_exceeded' | 'insufficient_quota' | 'too_many_attempts' | 'unavailable';
  readonly detail: string;
  readonly policy: string | null;
  readonly steps: readonly {
    readonly line: number;
    readonly name: string;
    /** `not_evaluated`: an earlier step ended the decision. */
    readonly outcome: 'passed' | 'denied' | 'allowed' | 'not_evaluated';
    readonly detail: string;
    /** Of step 8, if it denies: why the credential proves no principal. `unknown` also if you may not manage its key or user. */
    readonly reason?: 'revoked' | 'expired' | 'rotated' | 'checksum' | 'unknown' | 'owner_deactivated' | 'session_ended';
    /** Of step 8, if it denies: the key of the credential. */
    readonly key_id?: string | null;
    /** Of step 8, if it denies: the key's owner, or the user that the token names. */
    readonly user_id?: string | null;
    /** Of step 8, if it denies: since when. */
    readonly time?: string | null;
  }[];
  readonly route: string | null;
  readonly permission: string | null;
  readonly resources: readonly string[];
  readonly grants: readonly {
    readonly kind: 'role' | 'owner_role' | 'scopes';
    readonly name: string | null;
    readonly permissions: readonly string[];
    readonly resource_constraints: ResourceConstraints;
    readonly outcome: 'covers' | 'no_permission' | 'no_resources';
  }[];
  readonly policies: readonly {
    readonly name: string;
    readonly effect: 'allow' | 'deny';
    readonly global: boolean;
    readonly matched: boolean;
    readonly applies: boolean;
    readonly actions: boolean;
    readonly resources: boolean;
    readonly conditions: readonly {
      readonly kind: string;
      readonly operator: string | null;
      readonly operand: readonly string[];
      /** What it was compared with; null when that is missing. */
      readonly value: string | null;
      /** Whose clock shows the value. */
      readonly timezone: string | null;
      readonly matched: boolean;
      readonly missing: boolean;
    }[];
  }[];
  /** The limits of steps 15 to 17; empty if an earlier step ended the decision. Nothing is counted. */
  readonly limits: readonly {
    readonly name: 'max_tokens_per_request' | 'rate_limit_rpm' | 'monthly_tokens' | 'max_collections';
    readonly of: 'tenant' | 'api_key';
    /** The step that checks it: 15, 16 or 17. */
    readonly line: number;
    /** false: this request does not count toward it. */
    readonly applies: boolean;
    /** null = none. */
    readonly limit: number | null;
    /** As the database knows it now; of a rate, what was handed out to all gates. */
    readonly used: number | null;
    /** Of tokens and collections: the part of `remaining` that is set aside. */
    readonly reserved: number | null;
    /** limit less used. */
    readonly remaining: number | null;
    readonly resets_at: string | null;
    /** What this request takes: one request, the tokens that it may spend, one collection; of step 15 the largest limit that it names. */
    readonly needed: number | null;
    readonly exceeded: boolean;
  }[];
  /** What is decided as things are, without the proposal. */
  readonly current: {
    readonly decision: 'allow' | 'deny';
    readonly status: number;
    readonly code: 'allow' | 'malformed_request' | 'malformed_path' | 'malformed_body' | 'invalid_tenant' | 'max_tokens_exceeded' | 'invalid_json' | 'invalid_parameter' | 'missing_credential' | 'invalid_credential' | 'token_expired' | 'no_route' | 'tenant_mismatch' | 'tenant_suspended' | 'denied_by_policy' | 'insufficient_permission' | 'resource_not_permitted' | 'escalation' | 'builtin_role' | 'password_expired' | 'not_found' | 'method_not_allowed' | 'already_exists' | 'in_use' | 'revoked' | 'last_admin' | 'would_lock_out' | 'quota_exceeded' | 'idempotency_in_progress' | 'precondition_failed' | 'body_too_large' | 'unsupported_media_type' | 'invalid_field' | 'idempotency_mismatch' | 'rate_limit_exceeded' | 'insufficient_quota' | 'too_many_attempts' | 'unavailable';
    readonly detail: string;
    readonly policy: string | null;
  };
};

export type Tenant = {
  readonly id: string;
  readonly name: string;
  readonly status: 'active' | 'suspended';
  readonly settings: TenantSettings;
  readonly quotas: TenantQuotas;
  readonly metadata: Metadata;
  readonly created_at: string;
  readonly updated_at: string;
};

export type TenantChanges = {
  readonly name?: string;
  readonly settings?: {
    readonly default_model?: string | null;
    readonly max_tokens_per_request?: number | null;
    readonly rate_limit_rpm?: number | null;
    /** A name of the IANA time zone database. */
    readonly timezone?: string | null;
    readonly allow_keys_without_expiry?: boolean | null;
  };
  readonly quotas?: {
    readonly monthly_tokens?: number | null;
    readonly max_users?: number | null;
    readonly max_collections?: number | null;
  };
  /** Pairs of text, which no decision reads. Replaced whole; null or an empty object removes all. */
  readonly metadata?: Readonly<Record<string, string>> | null;
};

export type TenantList = {
  readonly object: 'list';
  readonly data: readonly Tenant[];
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** Rows of the whole list. With `count=true`, up to 10,000 rows. */
  readonly total?: number;
  /** In place of `total` if the list has more rows than that. */
  readonly total_exceeds?: 10000;
};

/** An absent limit is none, 0 lets nothing through. */
export type TenantQuotas = {
  readonly monthly_tokens?: number;
  readonly max_users?: number;
  readonly max_collections?: number;
};

/** An absent limit is none, 0 lets nothing through. */
export type TenantSettings = {
  readonly default_model?: string;
  readonly max_tokens_per_request?: number;
  readonly rate_limit_rpm?: number;
  readonly timezone?: string;
  readonly allow_keys_without_expiry?: boolean;
};

export type TokenPair = {
  /** A JWT. */
  readonly access_token: string;
  readonly token_type: 'Bearer';
  /** Seconds. */
  readonly expires_in: number;
  /** Absent where it travels in a cookie. */
  readonly refresh_token?: string;
};

export type Usage = {
  readonly period: string;
  /** `*` for all tenants together. */
  readonly tenant_id: string;
  readonly total: UsageSums;
  /** One row for each model, key, user or day with usage, in their order; empty without group_by. */
  readonly data: readonly UsageRow[];
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
};

export type UsageCorrection = {
  /** How many there are. */
  readonly collections?: number;
  /** Tokens spent in the current period. */
  readonly monthly_tokens_used?: number;
};

export type UsageEvent = {
  /** Yours. An event of an id that was sent before counts no second time. */
  readonly id: string;
  readonly model: string;
  readonly key_id?: string | null;
  readonly user_id?: string | null;
  /** When it happened, within the last 35 days. */
  readonly time: string;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  /** Of the prompt's. */
  readonly cached_tokens?: number;
  /** Prompt and completion together unless told. */
  readonly total_tokens?: number;
  /** It stands for so many; 1 unless told. */
  readonly requests?: number;
};

export type UsageEvents = {
  readonly tenant_id?: string;
  readonly events: readonly UsageEvent[];
};

export type UsageEventsResult = {
  readonly accepted: number;
  /** Events that were heard of before, in this batch or another. */
  readonly duplicates: number;
};

export type UsageRow = {
  /** Grouped by model. null: the request named none, or failed. */
  readonly model?: string | null;
  /** Grouped by key: its id. null: without a key. */
  readonly key?: string | null;
  /** Grouped by user: its id, of a key its owner. null: a key of its tenant. */
  readonly user?: string | null;
  /** Grouped by day, in the tenant's time zone. */
  readonly day?: string;
  readonly requests: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  /** Of the prompt's. */
  readonly cached_tokens: number;
  readonly total_tokens: number;
  /** Of the total: not measured but reckoned by rule. */
  readonly estimated_tokens: number;
};

export type UsageSums = {
  readonly requests: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  /** Of the prompt's. */
  readonly cached_tokens: number;
  readonly total_tokens: number;
  /** Of the total: not measured but reckoned by rule. */
  readonly estimated_tokens: number;
};

export type User = {
  readonly id: string;
  /** null for users of a directory that have none. */
  readonly email: string | null;
  readonly name: string;
  readonly department: string | null;
  readonly metadata: Metadata;
  /** Given by hand. */
  readonly roles: readonly string[];
  /** Given by the directory; read-only. */
  readonly directory_roles: readonly string[];
  readonly tenant_id: string;
  readonly status: 'active' | 'deactivated';
  /** `ldap`: a user of a directory, which keeps its e-mail, name and password. */
  readonly source: 'local' | 'ldap';
  /** Only of users of a directory: what it said last of the user, whose keys and sessions are rejected unless it is `active`. Read-only. */
  readonly directory_status?: 'active' | 'removed' | 'disabled' | 'expired' | 'tenant_changed' | 'several_names' | 'several_ids';
  /** Only of users of a directory: the address that it shows, if another user has it. `email` is null then. Read-only. */
  readonly email_conflict?: string | null;
  /** When a login last began a session; null if none did. Read-only. */
  readonly last_login_at: string | null;
  /** Until then, failed logins lock the account; null if they do not. Read-only. */
  readonly locked_until: string | null;
  readonly created_at: string;
  readonly updated_at: string;
};

export type UserChanges = {
  readonly email?: string;
  readonly name?: string;
  readonly department?: string | null;
  /** Pairs of text, which no decision reads. Replaced whole; null or an empty object removes all. */
  readonly metadata?: Readonly<Record<string, string>> | null;
  readonly roles?: readonly string[];
};

export type UserList = {
  readonly object: 'list';
  readonly data: readonly User[];
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** Rows of the whole list. With `count=true`, up to 10,000 rows. */
  readonly total?: number;
  /** In place of `total` if the list has more rows than that. */
  readonly total_exceeds?: 10000;
};

export type WhoCan = {
  readonly permission: string;
  readonly resource: string | null;
  readonly tenant_id: string;
  readonly users: readonly {
    readonly type: 'user';
    readonly id: string;
    readonly email: string | null;
    readonly name: string;
    readonly tenant_id: string;
    readonly platform_admin: boolean;
    readonly roles: readonly string[];
    /** conditional: it hangs on the conditions of the policies named in `conditions`. */
    readonly verdict: 'allow' | 'conditional';
    readonly why: readonly {
      readonly kind: 'role' | 'owner_role' | 'scopes' | 'policy';
      readonly name: string | null;
      /** It reaches some resources only. */
      readonly constrained: boolean;
      /** A policy that allows under conditions. */
      readonly conditional: boolean;
    }[];
    /** Names of policies; they are in `policies`. */
    readonly conditions: readonly string[];
  }[];
  readonly keys: readonly {
    readonly type: 'api_key';
    readonly id: string;
    readonly description: string;
    /** null for a key of its tenant. */
    readonly user_id: string | null;
    readonly expires_at: string | null;
    /** conditional: it hangs on the conditions of the policies named in `conditions`. */
    readonly verdict: 'allow' | 'conditional';
    readonly why: readonly {
      readonly kind: 'role' | 'owner_role' | 'scopes' | 'policy';
      readonly name: string | null;
      /** It reaches some resources only. */
      readonly constrained: boolean;
      /** A policy that allows under conditions. */
      readonly conditional: boolean;
    }[];
    /** Names of policies; they are in `policies`. */
    readonly conditions: readonly string[];
  }[];
  /** The policies that users and keys of this page name. */
  readonly policies: readonly {
    readonly name: string;
    readonly effect: 'allow' | 'deny';
    readonly global: boolean;
    readonly conditions: PolicyConditions;
  }[];
  readonly platform_administrators: 'allow' | 'conditional' | 'deny';
  readonly has_more: boolean;
  /** The `cursor` of the next page, which may be empty; null on the last. */
  readonly next_cursor: string | null;
};

export type WhoCanRequest = {
  /** One permission, <resource>:<action>, without wildcards. */
  readonly permission: string;
  /** <kind>/<name>; <kind>/ alone for one that the request does not name. Absent: a request without resources. */
  readonly resource?: string;
  readonly tenant_id?: string;
};

export interface Paths {
  readonly '/v1/auth/login': {
    /** Log in with e-mail and password, or with a directory user name, for an access token and a refresh token. */
    readonly POST: {
      readonly body: Login;
      readonly answers: {
        /** The tokens. */
        readonly '200': TokenPair;
      };
    };
  };
  readonly '/v1/auth/refresh': {
    /** Exchange a refresh token, from the body or the cookie, for the next pair of tokens. */
    readonly POST: {
      readonly body?: RefreshToken | undefined;
      readonly answers: {
        /** The next tokens. */
        readonly '200': TokenPair;
      };
    };
  };
  readonly '/v1/auth/logout': {
    /** End the session of a refresh token, or of the access token that the request carries. */
    readonly POST: {
      readonly body?: Logout | undefined;
      readonly answers: {
        /** The session has ended. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/auth/me': {
    /** Who the credential of this request proves. */
    readonly GET: {
      readonly answers: {
        /** The principal. */
        readonly '200': Me;
      };
    };
  };
  readonly '/v1/auth/password': {
    /** Change one's own password by the old one; all other sessions end. */
    readonly POST: {
      readonly body: PasswordChange;
      readonly answers: {
        /** Done. There is nothing to show. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/auth/password/reset': {
    /** Set a password with a one-time token; all sessions end. */
    readonly POST: {
      readonly body: NewPassword;
      readonly answers: {
        /** Done. There is nothing to show. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/auth/sessions': {
    /** List one's own active sessions, the newest first. */
    readonly GET: {
      readonly query?: {
        /** Rows of one page; 50 unless told. */
        readonly limit?: number | undefined;
        /** next_cursor of the page before, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
      } | undefined;
      readonly answers: {
        /** One page of sessions. */
        readonly '200': SessionList;
      };
    };
    /** End all one's own sessions but the one that asks; with `current=true` that one too. */
    readonly DELETE: {
      readonly query?: {
        /** true: the session of this request ends as well. */
        readonly current?: boolean | undefined;
      } | undefined;
      readonly answers: {
        /** Done. There is nothing to show. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/auth/sessions/{id}': {
    /** Get one of one's own active sessions. */
    readonly GET: {
      readonly path: {
        readonly id: string;
      };
      readonly answers: {
        /** The session. */
        readonly '200': Session;
      };
    };
    /** End one of one's own sessions: its tokens prove nothing from now on. */
    readonly DELETE: {
      readonly path: {
        readonly id: string;
      };
      readonly answers: {
        /** Done. There is nothing to show. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/iam/users': {
    /** List users. */
    readonly GET: {
      readonly query?: {
        /** Rows of one page; 50 unless told. */
        readonly limit?: number | undefined;
        /** next_cursor of the page before, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
        /** Means the same as X-Tenant-ID. Platform administrators may say * for every tenant. */
        readonly tenant_id?: string | undefined;
        readonly role?: string | undefined;
        readonly status?: 'active' | 'deactivated' | undefined;
        readonly email?: string | undefined;
        /** Any part of name, e-mail or department. */
        readonly q?: string | undefined;
        /** `true`: users whose account is locked by failed logins now. */
        readonly locked?: true | undefined;
        readonly directory_status?: 'active' | 'removed' | 'disabled' | 'expired' | 'tenant_changed' | 'several_names' | 'several_ids' | undefined;
        /** `true`: users of a directory whose address another user has. */
        readonly email_conflict?: true | undefined;
      } | undefined;
      readonly answers: {
        /** One page of users. */
        readonly '200': UserList;
      };
    };
    /** Make a user. */
    readonly POST: {
      readonly body: NewUser;
      readonly answers: {
        /** The user. */
        readonly '201': CreatedUser;
      };
    };
  };
  readonly '/v1/iam/users/{id}': {
    /** Get a user. */
    readonly GET: {
      readonly path: {
        readonly id: string;
      };
      readonly answers: {
        /** The user. */
        readonly '200': User;
      };
    };
    /** Change a user: the members that are present. */
    readonly PUT: {
      readonly path: {
        readonly id: string;
      };
      readonly body?: UserChanges | undefined;
      readonly answers: {
        /** The user as it is now. */
        readonly '200': User;
      };
    };
    /** Change a user: the members that are present. */
    readonly PATCH: {
      readonly path: {
        readonly id: string;
      };
      readonly body?: UserChanges | undefined;
      readonly answers: {
        /** The user as it is now. */
        readonly '200': User;
      };
    };
    /** Delete a user: its keys are revoked, its e-mail address is free again. */
    readonly DELETE: {
      readonly path: {
        readonly id: string;
      };
      readonly answers: {
        /** Done. There is nothing to show. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/iam/users/{id}/deactivate': {
    /** Deactivate a user: its sessions end, its keys sleep. */
    readonly POST: {
      readonly path: {
        readonly id: string;
      };
      readonly answers: {
        /** The user as it is now. */
        readonly '200': User;
      };
    };
  };
  readonly '/v1/iam/users/{id}/activate': {
    /** Activate a user again: its keys wake. */
    readonly POST: {
      readonly path: {
        readonly id: string;
      };
      readonly answers: {
        /** The user as it is now. */
        readonly '200': User;
      };
    };
  };
  readonly '/v1/iam/users/{id}/unlock': {
    /** Unlock a user: the failed logins of the account no longer count. */
    readonly POST: {
      readonly path: {
        readonly id: string;
      };
      readonly answers: {
        /** The user as it is now. */
        readonly '200': User;
      };
    };
  };
  readonly '/v1/iam/users/{id}/password-reset': {
    /** Make a one-time token with which the user sets a new password. */
    readonly POST: {
      readonly path: {
        readonly id: string;
      };
      readonly answers: {
        /** The one-time token. */
        readonly '200': PasswordReset;
      };
    };
  };
  readonly '/v1/iam/users/{id}/sessions': {
    /** List the active sessions of a user, the newest first. */
    readonly GET: {
      readonly path: {
        readonly id: string;
      };
      readonly query?: {
        /** Rows of one page; 50 unless told. */
        readonly limit?: number | undefined;
        /** next_cursor of the page before, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
      } | undefined;
      readonly answers: {
        /** One page of sessions. */
        readonly '200': SessionList;
      };
    };
    /** End all sessions of a user. */
    readonly DELETE: {
      readonly path: {
        readonly id: string;
      };
      readonly answers: {
        /** The user. */
        readonly '200': User;
      };
    };
  };
  readonly '/v1/iam/users/{id}/sessions/{session}': {
    /** Get one active session of a user. */
    readonly GET: {
      readonly path: {
        readonly id: string;
        readonly session: string;
      };
      readonly answers: {
        /** The session. */
        readonly '200': Session;
      };
    };
    /** End one session of a user: its tokens prove nothing from now on. */
    readonly DELETE: {
      readonly path: {
        readonly id: string;
        readonly session: string;
      };
      readonly answers: {
        /** Done. There is nothing to show. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/iam/roles': {
    /** List roles, built-in ones among them. */
    readonly GET: {
      readonly query?: {
        /** Rows of one page; 50 unless told. */
        readonly limit?: number | undefined;
        /** next_cursor of the page before, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
        /** Means the same as X-Tenant-ID. Platform administrators may say * for every tenant. */
        readonly tenant_id?: string | undefined;
        /** Any part of name or description. */
        readonly q?: string | undefined;
        /** `true`: only built-in roles; `false`: only custom ones. */
        readonly builtin?: boolean | undefined;
      } | undefined;
      readonly answers: {
        /** One page of roles. */
        readonly '200': RoleList;
      };
    };
    /** Make a role. */
    readonly POST: {
      readonly query?: {
        /** Refuses patterns that no route and no endpoint needs (422); default: false. */
        readonly strict?: boolean | undefined;
      } | undefined;
      readonly body: NewRole;
      readonly answers: {
        /** The role. */
        readonly '201': Role;
      };
    };
  };
  readonly '/v1/iam/roles/{name}': {
    /** Get a role. */
    readonly GET: {
      readonly path: {
        readonly name: string;
      };
      readonly answers: {
        /** The role. */
        readonly '200': Role;
      };
    };
    /** Change a role: the members that are present. */
    readonly PUT: {
      readonly path: {
        readonly name: string;
      };
      readonly query?: {
        /** Refuses patterns that no route and no endpoint needs (422); default: false. */
        readonly strict?: boolean | undefined;
      } | undefined;
      readonly body?: RoleChanges | undefined;
      readonly answers: {
        /** The role as it is now. */
        readonly '200': Role;
      };
    };
    /** Change a role: the members that are present. */
    readonly PATCH: {
      readonly path: {
        readonly name: string;
      };
      readonly query?: {
        /** Refuses patterns that no route and no endpoint needs (422); default: false. */
        readonly strict?: boolean | undefined;
      } | undefined;
      readonly body?: RoleChanges | undefined;
      readonly answers: {
        /** The role as it is now. */
        readonly '200': Role;
      };
    };
    /** Delete a role; with force=true also from the users and policies that have it. */
    readonly DELETE: {
      readonly path: {
        readonly name: string;
      };
      readonly query?: {
        readonly force?: boolean | undefined;
      } | undefined;
      readonly answers: {
        /** Done. There is nothing to show. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/iam/roles/{name}/policies': {
    /** List the policies attached to a role. */
    readonly GET: {
      readonly path: {
        readonly name: string;
      };
      readonly query?: {
        /** Rows of one page; 50 unless told. */
        readonly limit?: number | undefined;
        /** next_cursor of the page before, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
      } | undefined;
      readonly answers: {
        /** One page of policies. */
        readonly '200': PolicyList;
      };
    };
  };
  readonly '/v1/iam/roles/{name}/policies/{policy}': {
    /** Attach a policy to a role. */
    readonly PUT: {
      readonly path: {
        readonly name: string;
        readonly policy: string;
      };
      readonly query?: {
        readonly force?: boolean | undefined;
      } | undefined;
      readonly answers: {
        /** Done. There is nothing to show. */
        readonly '204': undefined;
      };
    };
    /** Detach a policy from a role. */
    readonly DELETE: {
      readonly path: {
        readonly name: string;
        readonly policy: string;
      };
      readonly answers: {
        /** Done. There is nothing to show. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/iam/policies': {
    /** List policies, global ones among them. */
    readonly GET: {
      readonly query?: {
        /** Rows of one page; 50 unless told. */
        readonly limit?: number | undefined;
        /** next_cursor of the page before, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
        /** Means the same as X-Tenant-ID. Platform administrators may say * for every tenant. */
        readonly tenant_id?: string | undefined;
        /** Any part of name or description. */
        readonly q?: string | undefined;
        readonly effect?: 'allow' | 'deny' | undefined;
        readonly enabled?: boolean | undefined;
        readonly applies_to?: 'everyone' | 'roles' | undefined;
        /** A role that the policy is attached to. */
        readonly role?: string | undefined;
        /** `true`: only global policies; `false`: only tenants' own. */
        readonly global?: boolean | undefined;
      } | undefined;
      readonly answers: {
        /** One page of policies. */
        readonly '200': PolicyList;
      };
    };
    /** Make a policy. */
    readonly POST: {
      readonly query?: {
        readonly force?: boolean | undefined;
        /** Refuses patterns that no route and no endpoint needs (422); default: false. */
        readonly strict?: boolean | undefined;
      } | undefined;
      readonly body: NewPolicy;
      readonly answers: {
        /** The policy. */
        readonly '201': Policy;
      };
    };
  };
  readonly '/v1/iam/policies/{name}': {
    /** Get a policy. */
    readonly GET: {
      readonly path: {
        readonly name: string;
      };
      readonly answers: {
        /** The policy. */
        readonly '200': Policy;
      };
    };
    /** Change a policy: the members that are present. */
    readonly PUT: {
      readonly path: {
        readonly name: string;
      };
      readonly query?: {
        readonly force?: boolean | undefined;
        /** Refuses patterns that no route and no endpoint needs (422); default: false. */
        readonly strict?: boolean | undefined;
      } | undefined;
      readonly body?: PolicyChanges | undefined;
      readonly answers: {
        /** The policy as it is now. */
        readonly '200': Policy;
      };
    };
    /** Change a policy: the members that are present. */
    readonly PATCH: {
      readonly path: {
        readonly name: string;
      };
      readonly query?: {
        readonly force?: boolean | undefined;
        /** Refuses patterns that no route and no endpoint needs (422); default: false. */
        readonly strict?: boolean | undefined;
      } | undefined;
      readonly body?: PolicyChanges | undefined;
      readonly answers: {
        /** The policy as it is now. */
        readonly '200': Policy;
      };
    };
    /** Delete a policy. */
    readonly DELETE: {
      readonly path: {
        readonly name: string;
      };
      readonly answers: {
        /** Done. There is nothing to show. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/iam/tenants': {
    /** List tenants. */
    readonly GET: {
      readonly query?: {
        /** Rows of one page; 50 unless told. */
        readonly limit?: number | undefined;
        /** next_cursor of the page before, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
        /** Any part of name or id, in any case. */
        readonly q?: string | undefined;
        readonly status?: 'active' | 'suspended' | undefined;
      } | undefined;
      readonly answers: {
        /** One page of tenants. */
        readonly '200': TenantList;
      };
    };
    /** Make a tenant. */
    readonly POST: {
      readonly body: NewTenant;
      readonly answers: {
        /** The tenant. */
        readonly '201': Tenant;
      };
    };
  };
  readonly '/v1/iam/tenants/{id}': {
    /** Get a tenant: platform administrators any, others their own. */
    readonly GET: {
      readonly path: {
        readonly id: string;
      };
      readonly answers: {
        /** The tenant. */
        readonly '200': Tenant;
      };
    };
    /** Change a tenant; settings and quotas merge, null removes. */
    readonly PUT: {
      readonly path: {
        readonly id: string;
      };
      readonly body?: TenantChanges | undefined;
      readonly answers: {
        /** The tenant as it is now. */
        readonly '200': Tenant;
      };
    };
    /** Change a tenant; settings and quotas merge, null removes. */
    readonly PATCH: {
      readonly path: {
        readonly id: string;
      };
      readonly body?: TenantChanges | undefined;
      readonly answers: {
        /** The tenant as it is now. */
        readonly '200': Tenant;
      };
    };
    /** Delete a tenant that has neither users nor active keys. Its id is never used again. */
    readonly DELETE: {
      readonly path: {
        readonly id: string;
      };
      readonly answers: {
        /** Done. There is nothing to show. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/iam/tenants/{id}/suspend': {
    /** Suspend a tenant: its requests are refused until it is activated. */
    readonly POST: {
      readonly path: {
        readonly id: string;
      };
      readonly query?: {
        readonly force?: boolean | undefined;
      } | undefined;
      readonly answers: {
        /** The tenant as it is now. */
        readonly '200': Tenant;
      };
    };
  };
  readonly '/v1/iam/tenants/{id}/activate': {
    /** Activate a tenant again. */
    readonly POST: {
      readonly path: {
        readonly id: string;
      };
      readonly answers: {
        /** The tenant as it is now. */
        readonly '200': Tenant;
      };
    };
  };
  readonly '/v1/iam/api-keys': {
    /** List API keys: with admin:keys all of the tenant, without it your own. */
    readonly GET: {
      readonly query?: {
        /** Rows of one page; 50 unless told. */
        readonly limit?: number | undefined;
        /** next_cursor of the page before, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
        /** Means the same as X-Tenant-ID. Platform administrators may say * for every tenant. */
        readonly tenant_id?: string | undefined;
        readonly status?: 'active' | 'expired' | 'revoked' | undefined;
        readonly user_id?: string | undefined;
        readonly expires_before?: string | undefined;
        /** The beginning of the shown `prefix`. Never send more of a key: addresses are logged on their way. */
        readonly prefix?: string | undefined;
        /** Any part of name, description or metadata, in any case. */
        readonly q?: string | undefined;
      } | undefined;
      readonly answers: {
        /** One page of API keys. */
        readonly '200': ApiKeyList;
      };
    };
    /** Make an API key. The answer shows it, once. */
    readonly POST: {
      readonly query?: {
        /** Refuses patterns that no route and no endpoint needs (422); default: false. */
        readonly strict?: boolean | undefined;
      } | undefined;
      readonly body: NewApiKey;
      readonly answers: {
        /** The API key, with its text. */
        readonly '201': IssuedApiKey;
      };
    };
  };
  readonly '/v1/iam/api-keys/{id}': {
    /** Get an API key. */
    readonly GET: {
      readonly path: {
        readonly id: string;
      };
      readonly answers: {
        /** The API key. */
        readonly '200': ApiKey;
      };
    };
    /** Change an API key: the members that are present. */
    readonly PUT: {
      readonly path: {
        readonly id: string;
      };
      readonly query?: {
        /** Refuses patterns that no route and no endpoint needs (422); default: false. */
        readonly strict?: boolean | undefined;
      } | undefined;
      readonly body?: ApiKeyChanges | undefined;
      readonly answers: {
        /** The API key as it is now. */
        readonly '200': ApiKey;
      };
    };
    /** Change an API key: the members that are present. */
    readonly PATCH: {
      readonly path: {
        readonly id: string;
      };
      readonly query?: {
        /** Refuses patterns that no route and no endpoint needs (422); default: false. */
        readonly strict?: boolean | undefined;
      } | undefined;
      readonly body?: ApiKeyChanges | undefined;
      readonly answers: {
        /** The API key as it is now. */
        readonly '200': ApiKey;
      };
    };
    /** Revoke an API key for good. */
    readonly DELETE: {
      readonly path: {
        readonly id: string;
      };
      readonly answers: {
        /** Done. There is nothing to show. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/iam/api-keys/{id}/rotate': {
    /** Give an API key a new secret. Through the grace the old one works for platform requests and for reads, and changes nothing. */
    readonly POST: {
      readonly path: {
        readonly id: string;
      };
      readonly body?: Rotation | undefined;
      readonly answers: {
        /** The API key, with its new text. */
        readonly '200': IssuedApiKey;
      };
    };
  };
  readonly '/v1/iam/api-keys/import': {
    /** Import keys of another system by their SHA-256 digests, up to 1,000. Each row has an outcome of its own. */
    readonly POST: {
      readonly body: ImportedApiKeys;
      readonly answers: {
        /** The outcome of each row, in the order of the request. */
        readonly '200': ApiKeyImport;
      };
    };
  };
  readonly '/v1/iam/api-keys/revoke': {
    /** Revoke up to 1,000 API keys for good: by id, or those that a filter matches. */
    readonly POST: {
      readonly query?: {
        /** `true`: revokes nothing, and answers what would be revoked. */
        readonly dry_run?: boolean | undefined;
      } | undefined;
      readonly body?: ApiKeysToRevoke | undefined;
      readonly answers: {
        /** What happened to each key, or would happen. */
        readonly '200': ApiKeyRevocations;
      };
    };
  };
  readonly '/v1/iam/audit': {
    /** Read the audit log, newest first: in pages, or with Accept as one stream of NDJSON or CSV. */
    readonly GET: {
      readonly query?: {
        /** Rows of one page; 50 unless told. */
        readonly limit?: number | undefined;
        /** next_cursor of the page before, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
        /** Means the same as X-Tenant-ID. Platform administrators may say * for every tenant. */
        readonly tenant_id?: string | undefined;
        /** An id; system or anonymous for actors that have none. */
        readonly actor?: string | undefined;
        /** As in auth.login. */
        readonly action?: string | undefined;
        /** An id or a name, or with its type before it: role/auditor. */
        readonly target?: string | undefined;
        readonly result?: 'success' | 'failure' | 'refused' | undefined;
        /** From then on. */
        readonly from?: string | undefined;
        /** Up to then, that instant left out. */
        readonly to?: string | undefined;
        readonly request_id?: string | undefined;
      } | undefined;
      readonly answers: {
        /** One page of rows, newest first; or all of them, as the Accept header asks. */
        readonly '200': AuditRowList;
      };
    };
  };
  readonly '/v1/iam/audit/chain': {
    /** Show how far the audit log is sealed. Nothing is verified. */
    readonly GET: {
      readonly answers: {
        /** The state of the chain. */
        readonly '200': AuditChain;
      };
    };
  };
  readonly '/v1/iam/usage': {
    /** Show what was used in a month: in all, and by model, key, user or day; with Accept as CSV. */
    readonly GET: {
      readonly query?: {
        /** Rows of one page; 50 unless told. */
        readonly limit?: number | undefined;
        /** next_cursor of the page before, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** Means the same as X-Tenant-ID. Platform administrators may say * for every tenant. */
        readonly tenant_id?: string | undefined;
        /** A calendar month of the tenant's time zone; the current one unless told. */
        readonly period?: string | undefined;
        readonly group_by?: 'model' | 'key' | 'user' | 'day' | undefined;
      } | undefined;
      readonly answers: {
        /** The total, and one page of what it is made of; or all of that, as the Accept header asks. */
        readonly '200': Usage;
      };
    };
  };
  readonly '/v1/iam/usage/events': {
    /** Tell what was used, for a platform that meters itself. Each event counts once. */
    readonly POST: {
      readonly body: UsageEvents;
      readonly answers: {
        /** How many events counted. */
        readonly '200': UsageEventsResult;
      };
    };
  };
  readonly '/v1/iam/tenants/{id}/limits': {
    /** Show the limits of a tenant and what is left of them: platform administrators of any, others of their own. */
    readonly GET: {
      readonly path: {
        readonly id: string;
      };
      readonly answers: {
        /** Each limit, what is used of it, what is left, and when it begins anew. */
        readonly '200': Limits;
      };
    };
  };
  readonly '/v1/iam/tenants/{id}/usage': {
    /** Set what a tenant has used, as whoever counted it found it. */
    readonly PUT: {
      readonly path: {
        readonly id: string;
      };
      readonly body?: UsageCorrection | undefined;
      readonly answers: {
        /** The limits as they are now. */
        readonly '200': Limits;
      };
    };
    /** Set what a tenant has used, as whoever counted it found it. */
    readonly PATCH: {
      readonly path: {
        readonly id: string;
      };
      readonly body?: UsageCorrection | undefined;
      readonly answers: {
        /** The limits as they are now. */
        readonly '200': Limits;
      };
    };
  };
  readonly '/v1/iam/decisions': {
    /** Show how many requests were allowed and denied, by time, code and route, for the last 8 days. */
    readonly GET: {
      readonly query?: {
        /** Rows of one page; 50 unless told. */
        readonly limit?: number | undefined;
        /** next_cursor of the page before, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** Means the same as X-Tenant-ID. Platform administrators may say * for every tenant. */
        readonly tenant_id?: string | undefined;
        /** From the minute that it is in; an hour before `to` unless told. */
        readonly from?: string | undefined;
        /** Up to then, a minute that begins then left out; now unless told. */
        readonly to?: string | undefined;
        /** Groups rows by UTC time; default: minute. */
        readonly interval?: 'minute' | 'hour' | 'day' | undefined;
        /** Default: by code and route. */
        readonly group_by?: 'code' | 'outcome' | undefined;
      } | undefined;
      readonly answers: {
        /** The totals, and one page of what they are made of. */
        readonly '200': Decisions;
      };
    };
  };
  readonly '/v1/iam/decisions/recent': {
    /** List denials and a sample of allows of the last 24 hours, newest first. At most 1,000 denials and as many allows of a tenant are kept. */
    readonly GET: {
      readonly query?: {
        /** Rows of one page; 50 unless told. */
        readonly limit?: number | undefined;
        /** next_cursor of the page before, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
        /** Means the same as X-Tenant-ID. Platform administrators may say * for every tenant. */
        readonly tenant_id?: string | undefined;
        readonly outcome?: 'allow' | 'deny' | undefined;
        /** `allow`, or the code of the denial. */
        readonly code?: string | undefined;
        /** The id of a user or a key. */
        readonly principal?: string | undefined;
        /** A line of the route table: POST /v1/chat/completions. */
        readonly route?: string | undefined;
        /** From then on. */
        readonly from?: string | undefined;
        /** Up to then, that instant left out. */
        readonly to?: string | undefined;
      } | undefined;
      readonly answers: {
        /** One page of decisions. */
        readonly '200': RecentDecisions;
      };
    };
  };
  readonly '/v1/iam/decisions/recent/{request_id}': {
    /** Get the recorded decision of a request, with its explanation. */
    readonly GET: {
      readonly path: {
        readonly request_id: string;
      };
      readonly query?: {
        /** Means the same as X-Tenant-ID. Platform administrators may say * for every tenant. */
        readonly tenant_id?: string | undefined;
      } | undefined;
      readonly answers: {
        /** The decision, and the explanation by the rules of now. */
        readonly '200': ExplainedDecision;
      };
    };
  };
  readonly '/v1/iam/explain': {
    /** Explain what would be decided about a request. Nothing is counted. */
    readonly POST: {
      readonly body: ExplainRequest;
      readonly answers: {
        /** The verdict and why. */
        readonly '200': Explanation;
      };
    };
  };
  readonly '/v1/iam/explain/simulate': {
    /** Explain what would be decided if proposed policies and roles were in force. Nothing is saved or counted. */
    readonly POST: {
      readonly body: SimulateRequest;
      readonly answers: {
        /** The verdict and why, and what is decided as things are. */
        readonly '200': Simulation;
      };
    };
  };
  readonly '/v1/iam/explain/who-can': {
    /** List the users and keys of a tenant that have a permission, and why. */
    readonly POST: {
      readonly query?: {
        /** Rows of one page; 50 unless told. */
        readonly limit?: number | undefined;
        /** next_cursor of the page before, or of the export that stopped. */
        readonly cursor?: string | undefined;
      } | undefined;
      readonly body: WhoCanRequest;
      readonly answers: {
        /** One page of users and keys; it may be empty while there are more. */
        readonly '200': WhoCan;
      };
    };
  };
  readonly '/v1/iam/directory/test': {
    /** Try a directory login step by step. Nobody is logged in or made; a wrong password counts as a failed login. */
    readonly POST: {
      readonly body: DirectoryTestRequest;
      readonly answers: {
        /** The steps and how they ended. */
        readonly '200': DirectoryTest;
      };
    };
  };
  readonly '/v1/iam/permissions': {
    /** List every permission, with the routes and endpoints that need it. */
    readonly GET: {
      readonly query?: {
        /** Rows of one page; 50 unless told. */
        readonly limit?: number | undefined;
        /** next_cursor of the page before, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
        /** Only permissions that this pattern covers. */
        readonly pattern?: string | undefined;
      } | undefined;
      readonly answers: {
        /** One page of permissions. */
        readonly '200': PermissionList;
      };
    };
  };
  readonly '/.well-known/jwks.json': {
    /** The public keys of access tokens: the next, the current and the retired until their tokens are gone. */
    readonly GET: {
      readonly answers: {
        /** A JWK set. */
        readonly '200': KeySet;
      };
    };
  };
  readonly '/openapi.json': {
    /** This description (OpenAPI 3.1). */
    readonly GET: {
      readonly answers: {
        /** The content. */
        readonly '200': unknown;
      };
    };
  };
}

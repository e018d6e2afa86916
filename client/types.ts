/** The types of the API. Made by `npm run client:types` from its description; not edited by hand. */

export type ApiKey = {
  /** The id. */
  readonly id: string;
  /** The id of the tenant. */
  readonly tenant_id: string;
  /** Null if the tenant owns the key. */
  readonly user_id: string | null;
  /** A name for people; null if the key has none. */
  readonly name: string | null;
  /** A message for people. */
  readonly description: string;
  readonly metadata: Metadata;
  /** Permission patterns that the key is limited to. */
  readonly scopes: readonly string[];
  readonly resource_constraints: ResourceConstraints;
  /** Requests in a minute; null for no limit. */
  readonly rate_limit_rpm: number | null;
  /** Limits of requests by model; at most 32 rules. An update replaces all rules. Null or an empty list: none. */
  readonly rate_limits: readonly RateLimitRule[] | null;
  /** The first characters of the key, for people. */
  readonly prefix: string;
  /** The last four characters of the key. */
  readonly last_four: string;
  /** The tokens of an issuer that prove the key, in place of a secret. `prefix` and `last_four` are empty then. Null: the key has a secret. */
  readonly proof: {
    /** The name of an issuer of the tenant. */
    readonly issuer: string;
    /** The subject of the token, or a glob. */
    readonly subject: string;
    /** Conditions on claims that a token must meet, all of them. */
    readonly claims: readonly {
      /** The name of a claim, or a JSON pointer if it begins with `/`. */
      readonly claim: string;
      /** The value must be one of these. */
      readonly in: readonly string[];
    }[];
    /** Present if another key has the same proof: a token that matches proves none of them. Read-only. */
    readonly ambiguous?: true;
  } | null;
  /** The secret was issued by another system and imported as a digest. A rotation gives the key a secret of Postern. */
  readonly imported: boolean;
  /** `active`, `disabled`, `expired` or `revoked`. */
  readonly status: 'active' | 'disabled' | 'expired' | 'revoked';
  /** When the key expires; null if it does not. */
  readonly expires_at: string | null;
  /** The principal that created or imported the key. */
  readonly created_by: {
    /** `user` or `api_key`. */
    readonly type: 'user' | 'api_key' | 'system';
    /** Null for the system, which creates the keys of a demonstration. */
    readonly id: string | null;
  };
  /** When the resource was created. */
  readonly created_at: string;
  /** When the resource was last updated. */
  readonly updated_at: string;
  /** When the key last authenticated a request, to the minute; null if it never did. */
  readonly last_used_at: string | null;
  /** The user that owns the key, in lists with `include=owner`. Null if the tenant owns the key. */
  readonly owner?: {
    /** The id. */
    readonly id: string;
    /** The name. */
    readonly name: string;
    /** The user's email address. */
    readonly email: string | null;
  } | null;
  /** The parts of the resource that have no effect. Absent if there are none. Read-only. */
  readonly notices?: readonly Notice[];
  /** The messages of `notices` as one text; absent without notices. */
  readonly notice?: string;
};

export type ApiKeyChanges = {
  /** The name. */
  readonly name?: string | null;
  /** A message for people. */
  readonly description?: string;
  /** Pairs of text. Budgets can select keys by them. Nothing else in a decision reads them. An update replaces all pairs. Null or an empty object removes them. */
  readonly metadata?: Readonly<Record<string, string>> | null;
  /** Permission patterns that the key is limited to. */
  readonly scopes?: readonly string[];
  /** The resources that are permitted, by kind; an absent kind is not constrained. */
  readonly resource_constraints?: {
    /** Globs of model names; `*` matches any characters. */
    readonly models?: readonly string[] | null;
    /** Globs of collection names; `*` matches any characters. */
    readonly collections?: readonly string[] | null;
    /** Globs of agent names; `*` matches any characters. */
    readonly agents?: readonly string[] | null;
  } | null;
  /** Requests in a minute; null for no limit. */
  readonly rate_limit_rpm?: number | null;
  /** Limits of requests by model; at most 32 rules. An update replaces all rules. Null or an empty list: none. */
  readonly rate_limits?: readonly RateLimitRule[] | null;
  /** Tokens of an issuer prove the key, in place of a secret. Needs `admin:keys`. A key keeps its kind: an update changes the proof of a key without a secret only. */
  readonly proof?: {
    /** The name of an issuer of the tenant. */
    readonly issuer: string;
    /** The subject of the token, or a glob. An exact subject beats a glob. */
    readonly subject: string;
    /** Conditions on claims that a token must meet, all of them. */
    readonly claims?: readonly {
      /** The name of a claim, or a JSON pointer if it begins with `/`. */
      readonly claim: string;
      /** Values or globs, of which one must match. A list claim matches if one element does. */
      readonly in: readonly string[];
    }[];
  } | null;
  /** When the key expires; null if it does not. */
  readonly expires_at?: string | null;
  /** Days until the key expires, in place of `expires_at`. */
  readonly expires_in_days?: number;
};

export type ApiKeyImport = {
  /** The number of created keys. */
  readonly imported: number;
  /** One result for each key, in the order of the request. */
  readonly data: readonly {
    /** The index of the row in the request. */
    readonly index: number;
    /** `exists`: the tenant already has a key with this digest, and the key is unchanged. */
    readonly outcome: 'imported' | 'exists' | 'rejected';
    /** Null for `rejected`. */
    readonly id: string | null;
    /** The error code, for programs. */
    readonly code?: 'malformed_request' | 'malformed_path' | 'malformed_body' | 'invalid_tenant' | 'max_tokens_exceeded' | 'usage_required' | 'invalid_json' | 'invalid_parameter' | 'unsupported_grant_type' | 'invalid_subject_token' | 'invalid_scope' | 'invalid_target' | 'missing_credential' | 'invalid_credential' | 'token_expired' | 'no_route' | 'tenant_mismatch' | 'tenant_suspended' | 'denied_by_policy' | 'insufficient_permission' | 'resource_not_permitted' | 'escalation' | 'builtin_role' | 'reauthentication_required' | 'password_expired' | 'not_found' | 'method_not_allowed' | 'already_exists' | 'in_use' | 'revoked' | 'last_admin' | 'would_lock_out' | 'quota_exceeded' | 'idempotency_in_progress' | 'precondition_failed' | 'body_too_large' | 'unsupported_media_type' | 'invalid_field' | 'idempotency_mismatch' | 'rate_limit_exceeded' | 'insufficient_quota' | 'too_many_attempts' | 'unavailable';
    /** A sentence for people. */
    readonly detail?: string;
    /** Every problem of the body, with its member. */
    readonly errors?: readonly {
      /** A JSON Pointer to the member (RFC 6901). */
      readonly path: string;
      /** The error, and the values that are allowed. */
      readonly message: string;
    }[];
  }[];
};

export type ApiKeyList = {
  /** Always `list`. */
  readonly object: 'list';
  /** The rows of the page. */
  readonly data: readonly ApiKey[];
  /** Whether another page follows. */
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** The number of rows of the whole list. Present with `count=true`, for up to 10,000 rows. */
  readonly total?: number;
  /** Present instead of `total` if the list has more rows than this. */
  readonly total_exceeds?: 10000;
};

export type ApiKeyPermission = {
  /** The permission that the request requires. */
  readonly permission: string;
  /** The day of the last recorded use, in UTC. Null: no use is recorded in the last 30 days. */
  readonly last_used_on: string | null;
};

export type ApiKeyPermissionList = {
  /** Always `list`. */
  readonly object: 'list';
  /** The rows of the page. */
  readonly data: readonly ApiKeyPermission[];
  /** Whether another page follows. */
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** The number of rows of the whole list. Present with `count=true`, for up to 10,000 rows. */
  readonly total?: number;
  /** Present instead of `total` if the list has more rows than this. */
  readonly total_exceeds?: 10000;
};

export type ApiKeyRevocations = {
  /** Whether nothing was changed. */
  readonly dry_run: boolean;
  /** The number of keys that were revoked, or that would be revoked in a dry run. */
  readonly revoked: number;
  /** The filter matched more keys than one request takes. Send it again for the rest. */
  readonly has_more: boolean;
  /** One result for each key. */
  readonly data: readonly {
    /** The id. */
    readonly id: string;
    /** The outcome. */
    readonly outcome: 'revoked' | 'would_revoke' | 'already_revoked' | 'not_found' | 'rejected';
    /** The error code, for programs. */
    readonly code?: 'malformed_request' | 'malformed_path' | 'malformed_body' | 'invalid_tenant' | 'max_tokens_exceeded' | 'usage_required' | 'invalid_json' | 'invalid_parameter' | 'unsupported_grant_type' | 'invalid_subject_token' | 'invalid_scope' | 'invalid_target' | 'missing_credential' | 'invalid_credential' | 'token_expired' | 'no_route' | 'tenant_mismatch' | 'tenant_suspended' | 'denied_by_policy' | 'insufficient_permission' | 'resource_not_permitted' | 'escalation' | 'builtin_role' | 'reauthentication_required' | 'password_expired' | 'not_found' | 'method_not_allowed' | 'already_exists' | 'in_use' | 'revoked' | 'last_admin' | 'would_lock_out' | 'quota_exceeded' | 'idempotency_in_progress' | 'precondition_failed' | 'body_too_large' | 'unsupported_media_type' | 'invalid_field' | 'idempotency_mismatch' | 'rate_limit_exceeded' | 'insufficient_quota' | 'too_many_attempts' | 'unavailable';
    /** A sentence for people. */
    readonly detail?: string;
    /** The API key as it was before. */
    readonly key?: {
      /** A name for people; null if the key has none. */
      readonly name: string | null;
      /** A message for people. */
      readonly description: string;
      /** Null if the tenant owns the key. */
      readonly user_id: string | null;
      /** The first characters of the key, for people. */
      readonly prefix: string;
      /** The last four characters of the key. */
      readonly last_four: string;
      /** When the key expires; null if it does not. */
      readonly expires_at: string | null;
      /** When the key last authenticated a request, to the minute; null if it never did. */
      readonly last_used_at: string | null;
    };
  }[];
};

export type ApiKeysToRevoke = {
  /** The ids of the keys. */
  readonly ids?: readonly string[];
  /** Keys that match all members. `status` defaults to `active`. */
  readonly filter?: {
    /** The state of the resource. */
    readonly status?: 'active' | 'disabled' | 'expired';
    /** The id of the user that owns the key; null if the tenant owns it. */
    readonly user_id?: string;
    /** The id of the user or API key that created the key. */
    readonly created_by?: string;
    /** Only keys that expire before this time. */
    readonly expires_before?: string;
    /** `true`: keys that never expire. */
    readonly without_expiry?: true;
    /** Keys that are at least this many days old and were not used in that time. */
    readonly unused_days?: number;
    /** Keys that tokens of the issuer with this name prove. */
    readonly issuer?: string;
    /** The beginning of the shown `prefix`. Never send more of a key: addresses are logged on their way. */
    readonly prefix?: string;
    /** Any part of the name, description or metadata, in any case. With `admin:users` also of the owner's name and email address. */
    readonly q?: string;
  };
};

export type AuditChain = {
  /** The number of audit rows that are sealed. */
  readonly rows: number;
  /** The number of seals. */
  readonly seals: number;
  /** Rows that wait for a seal, at most 100000. */
  readonly unsealed: number;
  /** Null if there is none yet. */
  readonly newest_seal: {
    /** The number of the seal. */
    readonly number: number;
    /** The hash of the newest seal, hexadecimal. */
    readonly hash: string;
    /** When it happened. */
    readonly time: string;
  } | null;
};

export type AuditRow = {
  /** The id. */
  readonly id: string;
  /** When it happened. */
  readonly time: string;
  /** The principal that made the change. */
  readonly actor: {
    /** `user`, `api_key` or `system`. */
    readonly type: 'user' | 'api_key' | 'system' | 'anonymous';
    /** Null for the system and for requests without a known principal. */
    readonly id: string | null;
    /** With `include=names`: the current name of the user or key. Null: there is none, or the caller may not read it. */
    readonly name?: string | null;
  };
  /** Null if the event belongs to no tenant. */
  readonly tenant_id: string | null;
  /** The client's address; null if it is not known. */
  readonly address: string | null;
  /** The action, such as `role.update`. */
  readonly action: string;
  /** The object of the change. */
  readonly target: {
    /** The kind of the object. */
    readonly type: string | null;
    /** The id or name of the object. */
    readonly id: string | null;
    /** With `include=names`: the current name of the user or key. Null: there is none, or the caller may not read it. */
    readonly name?: string | null;
  };
  /** `success`, `failure` or `refused`. */
  readonly result: 'success' | 'failure' | 'refused';
  /** The state before the change, without secrets. Null if nothing is recorded. */
  readonly before: unknown;
  /** The state after the change, or details of the event, without secrets. */
  readonly after: unknown;
  /** The id of the request, as in the header `x-request-id`. */
  readonly request_id: string | null;
};

export type AuditRowList = {
  /** Always `list`. */
  readonly object: 'list';
  /** The rows of the page. */
  readonly data: readonly AuditRow[];
  /** Whether another page follows. */
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** The number of rows of the whole list. Present with `count=true`, for up to 10,000 rows. */
  readonly total?: number;
  /** Present instead of `total` if the list has more rows than this. */
  readonly total_exceeds?: 10000;
};

export type BackchannelLogout = {
  /** OpenID Connect Back-Channel Logout 1.0, section 2.4. */
  readonly logout_token?: string;
};

export type Budget = {
  /** The id. */
  readonly id: string;
  /** The id of the tenant. */
  readonly tenant_id: string;
  /** The name. */
  readonly name: string;
  /** The unit of the amounts: money in the currency of the prices, tokens, or requests. */
  readonly unit: 'money' | 'tokens' | 'requests';
  /** A decimal text for money, otherwise a number. */
  readonly limit: string | number;
  /** The calendar period in which the limit holds. Weeks begin on Monday. `total`: it never resets by itself. */
  readonly period: 'hour' | 'day' | 'week' | 'month' | 'total';
  /** The time zone of the calendar periods. Null: the tenant's, or else UTC. */
  readonly timezone: string | null;
  /** The callers whose requests count. It has one member. */
  readonly applies_to: {
    /** Every request in the tenant. */
    readonly tenant?: boolean;
    /** The API keys. */
    readonly keys?: readonly string[];
    /** The users. */
    readonly users?: readonly string[];
    /** The names of the roles. */
    readonly roles?: readonly string[];
    /** The keys that have all of these pairs. */
    readonly metadata?: Readonly<Record<string, string>>;
  };
  /** `all`: the callers share the amount. `key`, `user`: each has its own. Default: all. */
  readonly per: 'all' | 'key' | 'user';
  /** Globs of model names; `*` matches any characters. */
  readonly models: readonly string[] | null;
  /** `report`: requests are counted, and none is blocked. Default: block. */
  readonly action: 'block' | 'report';
  /** Fractions of the limit that are announced when they are reached. */
  readonly alerts: readonly number[];
  /** Whether requests count and can be blocked. Default: true. */
  readonly enabled: boolean;
  readonly state?: BudgetState;
  /** When the resource was created. */
  readonly created_at: string;
  /** When the resource was last updated. */
  readonly updated_at: string;
  /** The parts of the resource that have no effect. Absent if there are none. Read-only. */
  readonly notices?: readonly Notice[];
  /** The messages of `notices` as one text; absent without notices. */
  readonly notice?: string;
};

export type BudgetChanges = {
  /** Unique in the tenant. The server removes surrounding blanks. */
  readonly name?: string;
  /** The unit of the amounts: money in the currency of the prices, tokens, or requests. */
  readonly unit?: 'money' | 'tokens' | 'requests';
  /** Money: a decimal text with at most 9 places, at most 9000000. Tokens and requests: a number. */
  readonly limit?: string | number;
  /** The calendar period in which the limit holds. Weeks begin on Monday. `total`: it never resets by itself. */
  readonly period?: 'hour' | 'day' | 'week' | 'month' | 'total';
  /** The time zone of the calendar periods. Null: the tenant's, or else UTC. */
  readonly timezone?: string | null;
  /** The callers whose requests count: exactly one member. Those of `users` and `roles` are these users and the keys that they own. */
  readonly applies_to?: {
    /** Every request in the tenant. */
    readonly tenant?: true;
    /** The API keys. */
    readonly keys?: readonly string[];
    /** The users. */
    readonly users?: readonly string[];
    /** The names of the roles. */
    readonly roles?: readonly string[];
    /** Keys with all of these pairs in their metadata. */
    readonly metadata?: Readonly<Record<string, string>>;
  };
  /** `all`: the callers share the amount. `key`, `user`: each has its own. Default: all. */
  readonly per?: 'all' | 'key' | 'user';
  /** Names or globs of models. Null: all requests, also those without a model. */
  readonly models?: readonly string[] | null;
  /** `report`: requests are counted, and none is blocked. Default: block. */
  readonly action?: 'block' | 'report';
  /** Fractions of the limit. Each that is reached is announced once in a period. */
  readonly alerts?: readonly number[];
  /** Whether requests count and can be blocked. Default: true. */
  readonly enabled?: boolean;
};

export type BudgetList = {
  /** Always `list`. */
  readonly object: 'list';
  /** The rows of the page. */
  readonly data: readonly Budget[];
  /** Whether another page follows. */
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** The number of rows of the whole list. Present with `count=true`, for up to 10,000 rows. */
  readonly total?: number;
  /** Present instead of `total` if the list has more rows than this. */
  readonly total_exceeds?: 10000;
};

export type BudgetPreview = {
  /** The beginning of the period. */
  readonly from: string;
  /** The end of the period. */
  readonly to: string;
  /** Null: usage is kept by day, so there are no numbers for hours. */
  readonly periods: readonly {
    /** The first day of the period. */
    readonly starts_on: string;
    /** By all callers together. */
    readonly spent: string | number;
    /** The first day on which an amount was spent. */
    readonly reached_on: string | null;
    /** Amounts: 1 for a shared budget. */
    readonly callers: number;
    /** Amounts that were spent. */
    readonly callers_reached: number;
    /** The number of requests. */
    readonly requests: number;
    /** Requests after the limit was reached. On that day, the share of its requests that the rest of its amount is. */
    readonly blocked_requests: number;
    /** The amount beyond the limit. */
    readonly blocked: string | number;
  }[] | null;
  /** The number of requests. */
  readonly requests: number;
  /** Requests after the limit was reached. On that day, the share of its requests that the rest of its amount is. */
  readonly blocked_requests: number;
  /** The amount beyond the limit. */
  readonly blocked: string | number;
};

export type BudgetReset = {
  /** Why. The audit log keeps it. */
  readonly reason: string;
};

/** Absent after a change. Without `callers`, `by_key` and `by_model` if the period has more than 200,000 rows of usage to sum. */
export type BudgetState = {
  /** The beginning of the period. Null: it has none. */
  readonly starts_at: string | null;
  /** The end of the period. Null: it has none. */
  readonly resets_at: string | null;
  /** Null: each key or user has its own amount. */
  readonly spent: string | number | null;
  /** For requests in progress, and fetched ahead of need. Null as `spent`. */
  readonly reserved: string | number | null;
  /** The limit without the spent and the reserved part, at least 0. Null as `spent`. */
  readonly remaining: string | number | null;
  /** The keys or users that used most. Only in one budget whose callers have their own amounts. */
  readonly callers?: readonly {
    /** A key, or a user. */
    readonly id: string;
    /** Booked in the period. */
    readonly spent: string | number;
    /** Set aside for requests in progress, and fetched ahead of need. */
    readonly reserved: string | number;
    /** The limit without the spent and the reserved part; 0 if more was spent. */
    readonly remaining: string | number;
  }[];
  /** The keys and users that used most, by the usage of the days of the period. Only in one budget, and not for hours. */
  readonly by_key?: readonly {
    /** The id of the API key. */
    readonly key_id: string | null;
    /** The id of the user that owns the key; null if the tenant owns it. */
    readonly user_id: string | null;
    /** Booked in the period. */
    readonly spent: string | number;
  }[];
  /** The same by model. */
  readonly by_model?: readonly {
    /** The model. */
    readonly model: string;
    /** Booked in the period. */
    readonly spent: string | number;
  }[];
};

export type CreatedUser = {
  /** The id. */
  readonly id: string;
  /** Null for users whose directory has no email address for them. */
  readonly email: string | null;
  /** The user's name. */
  readonly name: string;
  /** The user's department. */
  readonly department: string | null;
  readonly metadata: Metadata;
  /** Limits of requests by model; at most 32 rules. An update replaces all rules. Null or an empty list: none. */
  readonly rate_limits: readonly RateLimitRule[] | null;
  /** Assigned through the API. */
  readonly roles: readonly string[];
  /** Assigned by the directory. Read-only. */
  readonly directory_roles: readonly string[];
  /** Given by the mappings of issuers. Read-only. */
  readonly issuer_roles: readonly string[];
  /** The subjects of issuers whose tokens act as the user. */
  readonly identities: readonly {
    /** The name of an issuer of the tenant. */
    readonly issuer: string;
    /** The value of the claim that identifies a user of the issuer. */
    readonly subject: string;
  }[];
  /** The id of the tenant. */
  readonly tenant_id: string;
  /** The state of the resource. */
  readonly status: 'active' | 'deactivated';
  /** `ldap`: a user of a directory, which provides its email address, name and password. `issuer:<name>`: created by a token of the issuer with that name. Such a user has no password. */
  readonly source: string;
  /** Only of users of a directory: what it said last of the user, whose keys and sessions are rejected unless it is `active`. Read-only. */
  readonly directory_status?: 'active' | 'removed' | 'disabled' | 'expired' | 'tenant_changed' | 'several_names' | 'several_ids';
  /** Only of users of a directory: the address that it shows, if another user has it. `email` is null then. Read-only. */
  readonly email_conflict?: string | null;
  /** The time of the last login that created a session. Null if there was none. Read-only. */
  readonly last_login_at: string | null;
  /** The time until which failed logins lock the account. Null if the account is not locked. Read-only. */
  readonly locked_until: string | null;
  /** When the resource was created. */
  readonly created_at: string;
  /** When the resource was last updated. */
  readonly updated_at: string;
  /** A token that sets the first password, once and within one hour. Only this response contains it. */
  readonly password_setup_token?: string;
  /** Present instead of the secret if the server repeats a response. */
  readonly secret_available?: false;
};

export type DecisionTotals = {
  /** The number of allowed requests. */
  readonly allow: number;
  /** The number of denied requests. */
  readonly deny: number;
  /** Requests that the server answered with 503 because it could not decide them. */
  readonly fault: number;
};

export type Decisions = {
  /** The beginning of the period. */
  readonly from: string;
  /** The end of the period. */
  readonly to: string;
  /** `*` for all tenants together, and for requests without a known principal. */
  readonly tenant_id: string;
  /** The length of each period. */
  readonly interval: 'minute' | 'hour' | 'day';
  readonly total: DecisionTotals;
  /** One row for each minute, hour or day and each code and route, code, or outcome. Oldest first. */
  readonly data: readonly DecisionsOfMinute[];
  /** Whether another page follows. */
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
};

export type DecisionsOfMinute = {
  /** The start of the minute, hour or day. */
  readonly minute: string;
  /** `allow` or `deny`. */
  readonly outcome: 'allow' | 'deny' | 'fault';
  /** `allow`, `public`, or the code of the error; null in groups by outcome. */
  readonly code: string | null;
  /** An entry of the route table. Null if no route matched or was needed, and in groups by code or outcome. */
  readonly route: string | null;
  /** The number of requests. */
  readonly count: number;
};

export type Difference = {
  /** `false`: a bound was exceeded, and there may be more boxes. */
  readonly complete: boolean;
  /** Present unless `complete`: which bound. */
  readonly reason?: string;
  /** `true`: both lists are empty, and the difference is complete. */
  readonly unchanged: boolean;
  /** Requests that are denied now and would be allowed. */
  readonly newly_allowed: readonly DifferenceBox[];
  /** Requests that are allowed now and would be denied. */
  readonly newly_denied: readonly DifferenceBox[];
  /** The same for requests of the management API, /v1/iam. */
  readonly management: {
    /** `true`: both lists are empty, and the difference is complete. */
    readonly unchanged: boolean;
    /** Requests that are denied now and would be allowed. */
    readonly newly_allowed: readonly DifferenceBox[];
    /** Requests that are allowed now and would be denied. */
    readonly newly_denied: readonly DifferenceBox[];
  };
  /** Users and keys of the tenant with a request whose outcome changes. */
  readonly affected: {
    /** The number of users. */
    readonly users: number;
    /** The number of keys. */
    readonly keys: number;
  };
  /** Recorded decisions of the last 24 hours. */
  readonly recent: {
    /** Recent decisions that were decided again with and without the change. */
    readonly checked: number;
    /** Those of them whose outcome differs. */
    readonly changed: number;
    /** `true`: other decisions were not recorded. */
    readonly sampled: boolean;
  };
};

export type DifferenceBox = {
  /** The principals of the box. */
  readonly principals: {
    /** Each user of the box holds one of them. A box without users: the owner of each key. A box may also have keys that no user owns. */
    readonly roles: readonly string[];
    /** None of these users or owners holds one of these. */
    readonly without_roles: readonly string[];
    /** `false`: other users, or other owners, have such roles as well. */
    readonly exact: boolean;
    /** The number of users. */
    readonly users: number;
    /** The number of keys. */
    readonly keys: number;
  };
  /** The permission of the route. */
  readonly permission: string;
  /** The permission, or the two of a route with two. */
  readonly permissions: readonly string[];
  /** `true`: a user acts on itself in the management API. */
  readonly self: boolean;
  /** Patterns of the names, by kind. A kind that is absent is one that the request does not have. */
  readonly resources: {
    /** Globs of model names; `*` matches any characters. */
    readonly models?: readonly string[];
    /** Globs of collection names; `*` matches any characters. */
    readonly collections?: readonly string[];
    /** Globs of agent names; `*` matches any characters. */
    readonly agents?: readonly string[];
  };
  /** Patterns of names that are outside. */
  readonly except: {
    /** Globs of model names; `*` matches any characters. */
    readonly models?: readonly string[];
    /** Globs of collection names; `*` matches any characters. */
    readonly collections?: readonly string[];
    /** Globs of agent names; `*` matches any characters. */
    readonly agents?: readonly string[];
  };
  /** Present if `resources` and `except` do not say everything: the exact names, by kind. */
  readonly regions?: readonly {
    /** The kind of the names. */
    readonly kind: 'models' | 'collections' | 'agents';
    /** Each resource of the request is in one of the sets. */
    readonly each: readonly {
      /** One of them matches the name. */
      readonly patterns: readonly string[];
      /** All of them match the name. */
      readonly also: readonly string[];
      /** None of them matches the name. */
      readonly except: readonly string[];
    }[];
    /** In addition, each list of sets contains one of the resources of the request. */
    readonly some: readonly (readonly {
      /** One of them matches the name. */
      readonly patterns: readonly string[];
      /** All of them match the name. */
      readonly also: readonly string[];
      /** None of them matches the name. */
      readonly except: readonly string[];
    }[])[];
    /** A request that does not name the resource is in the box as well. */
    readonly unnamed: boolean;
  }[];
  /** CIDR blocks, and `missing` for an unknown address. Absent: all. */
  readonly addresses?: readonly string[];
  /** Weekly hours. Absent: always. */
  readonly week?: readonly string[];
  /** The time zone of `week`. */
  readonly timezone?: string;
  /** Present if the hours matter in several time zones: the request lies in the hours of each. */
  readonly clocks?: readonly {
    /** A time zone. */
    readonly timezone: string;
    /** Weekly hours. */
    readonly week: readonly string[];
  }[];
  /** The name of the policy or role that the change comes from. */
  readonly by: string;
  /** The kind of the rule in `by`. */
  readonly by_kind: 'policy' | 'role';
  /** One request of the box, with the members of a request to explain. */
  readonly witness: {
    /** The id of a user or key. */
    readonly subject: string;
    /** Null for a request of the management API. */
    readonly method: string | null;
    /** Null for a request of the management API. */
    readonly path: string | null;
    /** The model that the request names. */
    readonly model: string | null;
    /** The JSON body as text; null if the route reads none. */
    readonly body: string | null;
    /** Null: an unknown address. */
    readonly client_ip: string | null;
    /** The time of the request. */
    readonly time: string;
  };
  /** Metered requests of the last 7 days by keys, users and models of the box. Usage records no route, address or hour, so fewer may lie in a box that names them. Null if there is too much usage to read. */
  readonly recent_requests: number | null;
};

export type DifferenceRequest = {
  /** Each in full, as to create it. Policies and roles take at most 64 KiB together, as JSON without spaces. */
  readonly policies?: readonly NewPolicy[];
  /** Each in full, as to create it. Policies and roles take at most 64 KiB together, as JSON without spaces. */
  readonly roles?: readonly NewRole[];
  /** The rules that the change deletes. */
  readonly remove?: {
    /** Names of policies that the change deletes. */
    readonly policies?: readonly string[];
    /** Names of roles that the change deletes. Policies are detached from them. */
    readonly roles?: readonly string[];
  };
};

export type Directories = {
  /** In the order of the configuration. */
  readonly directories: readonly {
    /** `ldap.name`. */
    readonly name: string;
    /** Whether the directory answered the last login, refresh or lookup of this server. `unknown`: there was none since its start. */
    readonly status: 'up' | 'down' | 'unknown';
  }[];
};

export type DirectoryTest = {
  /** The steps in order, up to the first that failed. */
  readonly steps: readonly {
    /** The name of the step. */
    readonly step: 'connect' | 'tls' | 'service_bind' | 'find_user' | 'user_bind' | 'attributes' | 'groups' | 'roles' | 'tenant';
    /** Whether the step succeeded. */
    readonly ok: boolean;
    /** The outcome. */
    readonly detail: string;
    /** How to correct the problem. */
    readonly advice?: string;
    /** The values that the step found, without secrets. */
    readonly data?: Readonly<Record<string, unknown>>;
  }[];
};

export type DirectoryTestRequest = {
  /** The username as in a login. */
  readonly username: string;
  /** If absent, the test runs all steps except the bind as the user. */
  readonly password?: string;
  /** `ldap.name`. Default: the directory that a login with this name would use first. */
  readonly directory?: string;
};

export type Discovery = {
  /** The `iss` of tokens: the setting `issuer`. */
  readonly issuer: string;
  /** The address of the public keys. */
  readonly jwks_uri: string;
  /** Required by the specification. The server has no authorization endpoint. */
  readonly response_types_supported: readonly string[];
  /** Required by the specification: the same `sub` for every audience. */
  readonly subject_types_supported: readonly string[];
  /** The algorithm of tokens. */
  readonly id_token_signing_alg_values_supported: readonly string[];
};

export type ExchangedToken = {
  /** A JWT. */
  readonly access_token: string;
  /** The type of `access_token`. */
  readonly issued_token_type: 'urn:ietf:params:oauth:token-type:access_token';
  /** Always `Bearer`. */
  readonly token_type: 'Bearer';
  /** Seconds. */
  readonly expires_in: number;
  /** The permissions of the token: patterns, separated by spaces. */
  readonly scope: string;
};

export type ExplainRequest = {
  /** The id of a user or a key, the email address of a user, or the shown prefix or the name of a key. Never a whole key. */
  readonly subject?: string;
  /** An API key or an access token. */
  readonly credential?: string;
  /** The value of X-Tenant-ID. */
  readonly tenant_id?: string;
  /** The HTTP method of the request. */
  readonly method: string;
  /** The path of the request. */
  readonly path: string;
  /** An IPv4 or IPv6 address. Default: the caller's address. Null is an unknown address. */
  readonly client_ip?: string | null;
  /** Default: now. */
  readonly time?: string;
  /** The body of the request as text. Null is no body. */
  readonly body?: string | null;
  /** Default: application/json. */
  readonly content_type?: string;
};

export type ExplainedBudget = {
  /** The id. */
  readonly id: string;
  /** The name. */
  readonly name: string;
  /** The unit of the amounts: money in the currency of the prices, tokens, or requests. */
  readonly unit: 'money' | 'tokens' | 'requests';
  /** The calendar period in which the limit holds. Weeks begin on Monday. `total`: it never resets by itself. */
  readonly period: 'hour' | 'day' | 'week' | 'month' | 'total';
  /** `report`: requests are counted, and none is blocked. Default: block. */
  readonly action: 'block' | 'report';
  /** The key or user whose own amount it is. Null: a shared one. */
  readonly caller: string | null;
  /** A decimal text for money, otherwise a number. Null without `usage:read`, unless the amount is that of the caller alone. */
  readonly limit: string | number | null;
  /** Booked in the period. Null as `limit`. */
  readonly spent: string | number | null;
  /** Set aside for requests in progress, and fetched ahead of need. Null as `limit`. */
  readonly reserved: string | number | null;
  /** The amount that this request sets aside. */
  readonly needed: string | number;
  /** When the limit begins again. */
  readonly resets_at: string | null;
  /** More than the rest of the limit is needed. It denies if `action` is `block`. */
  readonly exceeded: boolean;
};

export type ExplainedDecision = {
  /** The request_id of the denial, and its header x-request-id. */
  readonly request_id: string;
  /** When it happened. */
  readonly time: string;
  /** Null if no tenant was known. */
  readonly tenant_id: string | null;
  /** `allow` or `deny`. */
  readonly outcome: 'allow' | 'deny';
  /** `allow`, or the code of the denial. */
  readonly code: string;
  /** The detail of the denial; empty for an allow. */
  readonly detail: string;
  /** The principal that sent the request. */
  readonly principal: {
    /** `user` or `api_key`. */
    readonly type: 'user' | 'api_key';
    /** The id of the user or key. */
    readonly id: string;
    /** With `include=names`: its current name. Null: there is none, or the caller may not read it. */
    readonly name?: string | null;
  } | null;
  /** Null if the server could not read the check. */
  readonly method: string | null;
  /** The path without the query, at most 1,024 characters. Secrets are masked. */
  readonly path: string | null;
  /** An entry of the route table. */
  readonly route: string | null;
  /** The permission that the request requires. */
  readonly permission: string | null;
  /** `<kind>/<name>`, at most 16. */
  readonly resources: readonly string[];
  /** The client's address. */
  readonly client_ip: string | null;
  /** The policy that denied. */
  readonly policy: string | null;
  /** The report-only policy that would have denied the request. Null: none, or it is denied. */
  readonly would_deny: string | null;
  /** The report-only policy that would have allowed the request. Null: none, or it is allowed. */
  readonly would_allow: string | null;
  /** The id of the budget without room for the request. */
  readonly budget: string | null;
  /** `true`: the server did not record other decisions of the tenant with this outcome at that time. */
  readonly sampled: boolean;
  /** `true`: the check was in shadow mode, and its decision changed nothing. */
  readonly shadow: boolean;
  /** The `x-request-id` of a request in shadow mode, by which Envoy names it. */
  readonly client_request_id: string | null;
  /** The other gate's outcome for a request in shadow mode. `deny`: Envoy's access log reports its denial. `allow`: no such report has come. Null: the outcome is not known, because the request has no usable `x-request-id`, or another recorded request has the same one. */
  readonly other: 'allow' | 'deny' | null;
  /** The request as explain and simulate take it; null if the record is not exact. */
  readonly request: {
    /** The id of the user or key. */
    readonly subject?: string;
    /** The id of the tenant. */
    readonly tenant_id?: string;
    /** The HTTP method of the request. */
    readonly method: string;
    /** The path of the request. */
    readonly path: string;
    /** The client's address. */
    readonly client_ip: string | null;
    /** When the request was sent. */
    readonly time: string;
    /** A body that names the same resources. The original body is not recorded. */
    readonly body?: string;
    /** The content type of the request. */
    readonly content_type?: string;
  } | null;
  /** The steps of the decision. */
  readonly explanation: {
    /** `allow`, `deny` or `public`. */
    readonly decision: 'allow' | 'deny';
    /** The HTTP status that the request would get. */
    readonly status: number;
    /** The error code, for programs. */
    readonly code: 'allow' | 'malformed_request' | 'malformed_path' | 'malformed_body' | 'invalid_tenant' | 'max_tokens_exceeded' | 'usage_required' | 'invalid_json' | 'invalid_parameter' | 'unsupported_grant_type' | 'invalid_subject_token' | 'invalid_scope' | 'invalid_target' | 'missing_credential' | 'invalid_credential' | 'token_expired' | 'no_route' | 'tenant_mismatch' | 'tenant_suspended' | 'denied_by_policy' | 'insufficient_permission' | 'resource_not_permitted' | 'escalation' | 'builtin_role' | 'reauthentication_required' | 'password_expired' | 'not_found' | 'method_not_allowed' | 'already_exists' | 'in_use' | 'revoked' | 'last_admin' | 'would_lock_out' | 'quota_exceeded' | 'idempotency_in_progress' | 'precondition_failed' | 'body_too_large' | 'unsupported_media_type' | 'invalid_field' | 'idempotency_mismatch' | 'rate_limit_exceeded' | 'insufficient_quota' | 'too_many_attempts' | 'unavailable';
    /** A sentence for people. */
    readonly detail: string;
    /** The name of the policy that denies. */
    readonly policy: string | null;
    /** The report-only policy that would have denied the request. Null: none, the request is denied, or you lack `admin:policies`. */
    readonly would_deny: string | null;
    /** The report-only policy that would have allowed the request. Null: none, the request is allowed, or you lack `admin:policies`. */
    readonly would_allow: string | null;
    /** The steps, in order. The last one ended the decision. */
    readonly steps: readonly {
      /** The number of the step, 1 to 18. */
      readonly line: number;
      /** The name of the step. */
      readonly name: string;
      /** `not_evaluated`: an earlier step ended the decision. */
      readonly outcome: 'passed' | 'denied' | 'allowed' | 'not_evaluated';
      /** A sentence for people. */
      readonly detail: string;
      /** Of step 8, if it denies: why the credential proves no principal. `unknown` also if you may not manage its key or user. */
      readonly reason?: 'revoked' | 'disabled' | 'expired' | 'rotated' | 'checksum' | 'unknown' | 'owner_deactivated' | 'session_ended' | 'signature' | 'unknown_issuer' | 'issuer_disabled' | 'audience' | 'claims' | 'algorithm' | 'too_old' | 'not_yet_valid' | 'revoked_before' | 'ambiguous' | 'no_principal' | 'email_in_use';
      /** If step 8 denies: the id of the key. */
      readonly key_id?: string | null;
      /** If step 8 denies: the key's owner, or the user of the token. */
      readonly user_id?: string | null;
      /** If step 8 denies: the time since when the reason holds. */
      readonly time?: string | null;
    }[];
    /** The route of the request: method and path template. */
    readonly route: string | null;
    /** The permission that the request requires. */
    readonly permission: string | null;
    /** Globs of resources, `<kind>/<name>`. */
    readonly resources: readonly string[];
    /** The principal's roles and, for a key, its scopes, each with what it contributes. */
    readonly grants: readonly {
      /** `role` or `scopes`. */
      readonly kind: 'role' | 'owner_role' | 'scopes';
      /** The name of the role. */
      readonly name: string | null;
      /** Its permission patterns. */
      readonly permissions: readonly string[];
      readonly resource_constraints: ResourceConstraints;
      /** Whether it permits the request. */
      readonly outcome: 'covers' | 'no_permission' | 'no_resources';
    }[];
    /** The policies that were evaluated. */
    readonly policies: readonly {
      /** The name. */
      readonly name: string;
      /** `allow` or `deny`. */
      readonly effect: 'allow' | 'deny';
      /** Whether the policy belongs to the installation and applies to all tenants. */
      readonly global: boolean;
      /** `report`: the policy has no effect. */
      readonly mode: 'enforce' | 'report';
      /** Whether it matches the request. */
      readonly matched: boolean;
      /** Whether the policy is in force for the principal. */
      readonly applies: boolean;
      /** Permission patterns, `<resource>:<action>`, each part a name or `*`. */
      readonly actions: boolean;
      /** Globs of resources, `<kind>/<name>`. */
      readonly resources: boolean;
      /** The conditions of the policy, each with its result. */
      readonly conditions: readonly {
        /** The name of the condition. */
        readonly kind: string;
        /** How the value is compared. */
        readonly operator: string | null;
        /** The values that the request is compared with. */
        readonly operand: readonly string[];
        /** The value that the condition was compared with. Null if it is missing. */
        readonly value: string | null;
        /** The time zone of the value. */
        readonly timezone: string | null;
        /** Whether it matches the request. */
        readonly matched: boolean;
        /** Whether the request lacks the value that the condition compares. */
        readonly missing: boolean;
      }[];
    }[];
    /** The limits of steps 15 to 17; empty if an earlier step ended the decision. Nothing is counted. */
    readonly limits: readonly {
      /** The name of the limit. */
      readonly name: 'max_tokens_per_request' | 'rate_limit_rpm' | 'requests_per_minute' | 'tokens_per_minute' | 'parallel' | 'monthly_tokens' | 'max_collections';
      /** The limit itself. */
      readonly of: 'tenant' | 'user' | 'api_key';
      /** The globs of a limit by model. Absent: the limit is of all requests. */
      readonly models?: readonly string[];
      /** The step that checks it: 15, 16 or 17. */
      readonly line: number;
      /** `false`: the request does not count toward the limit. */
      readonly applies: boolean;
      /** Null: no limit. */
      readonly limit: number | null;
      /** The usage in the database. For a rate limit, the amount leased to all gates. */
      readonly used: number | null;
      /** For tokens and collections: the part of `remaining` that is set aside. */
      readonly reserved: number | null;
      /** `limit` minus `used`. */
      readonly remaining: number | null;
      /** When the limit begins again. */
      readonly resets_at: string | null;
      /** The amount that this request takes: one request, the tokens that it may spend, or one collection. In step 15, the largest limit that the request names. */
      readonly needed: number | null;
      /** Whether the limit rejects the request. */
      readonly exceeded: boolean;
    }[];
    /** The budgets of step 17 that count the request, by name; empty likewise. */
    readonly budgets: readonly ExplainedBudget[];
    /** Whether the current rules lead to the recorded decision. */
    readonly same: boolean;
    /** How the explanation relates to the recorded decision. */
    readonly note: string;
  } | null;
  /** Why there is no explanation: the check could not be read, a text was cut or masked, or the principal is gone or not visible. */
  readonly not_explained: 'unreadable' | 'altered' | 'unknown_principal' | null;
};

export type Explanation = {
  /** `allow`, `deny` or `public`. */
  readonly decision: 'allow' | 'deny';
  /** The HTTP status that the request would get. */
  readonly status: number;
  /** The error code, for programs. */
  readonly code: 'allow' | 'malformed_request' | 'malformed_path' | 'malformed_body' | 'invalid_tenant' | 'max_tokens_exceeded' | 'usage_required' | 'invalid_json' | 'invalid_parameter' | 'unsupported_grant_type' | 'invalid_subject_token' | 'invalid_scope' | 'invalid_target' | 'missing_credential' | 'invalid_credential' | 'token_expired' | 'no_route' | 'tenant_mismatch' | 'tenant_suspended' | 'denied_by_policy' | 'insufficient_permission' | 'resource_not_permitted' | 'escalation' | 'builtin_role' | 'reauthentication_required' | 'password_expired' | 'not_found' | 'method_not_allowed' | 'already_exists' | 'in_use' | 'revoked' | 'last_admin' | 'would_lock_out' | 'quota_exceeded' | 'idempotency_in_progress' | 'precondition_failed' | 'body_too_large' | 'unsupported_media_type' | 'invalid_field' | 'idempotency_mismatch' | 'rate_limit_exceeded' | 'insufficient_quota' | 'too_many_attempts' | 'unavailable';
  /** A sentence for people. */
  readonly detail: string;
  /** The name of the policy that denies. */
  readonly policy: string | null;
  /** The report-only policy that would have denied the request. Null: none, the request is denied, or you lack `admin:policies`. */
  readonly would_deny: string | null;
  /** The report-only policy that would have allowed the request. Null: none, the request is allowed, or you lack `admin:policies`. */
  readonly would_allow: string | null;
  /** The steps, in order. The last one ended the decision. */
  readonly steps: readonly {
    /** The number of the step, 1 to 18. */
    readonly line: number;
    /** The name of the step. */
    readonly name: string;
    /** `not_evaluated`: an earlier step ended the decision. */
    readonly outcome: 'passed' | 'denied' | 'allowed' | 'not_evaluated';
    /** A sentence for people. */
    readonly detail: string;
    /** Of step 8, if it denies: why the credential proves no principal. `unknown` also if you may not manage its key or user. */
    readonly reason?: 'revoked' | 'disabled' | 'expired' | 'rotated' | 'checksum' | 'unknown' | 'owner_deactivated' | 'session_ended' | 'signature' | 'unknown_issuer' | 'issuer_disabled' | 'audience' | 'claims' | 'algorithm' | 'too_old' | 'not_yet_valid' | 'revoked_before' | 'ambiguous' | 'no_principal' | 'email_in_use';
    /** If step 8 denies: the id of the key. */
    readonly key_id?: string | null;
    /** If step 8 denies: the key's owner, or the user of the token. */
    readonly user_id?: string | null;
    /** If step 8 denies: the time since when the reason holds. */
    readonly time?: string | null;
  }[];
  /** The route of the request: method and path template. */
  readonly route: string | null;
  /** The permission that the request requires. */
  readonly permission: string | null;
  /** The resources that the request names. */
  readonly resources: readonly string[];
  /** The principal's roles and, for a key, its scopes, each with what it contributes. */
  readonly grants: readonly {
    /** `role` or `scopes`. */
    readonly kind: 'role' | 'owner_role' | 'scopes';
    /** The name of the role. */
    readonly name: string | null;
    /** Its permission patterns. */
    readonly permissions: readonly string[];
    readonly resource_constraints: ResourceConstraints;
    /** Whether it permits the request. */
    readonly outcome: 'covers' | 'no_permission' | 'no_resources';
  }[];
  /** The policies that were evaluated. */
  readonly policies: readonly {
    /** The name. */
    readonly name: string;
    /** `allow` or `deny`. */
    readonly effect: 'allow' | 'deny';
    /** Whether the policy belongs to the installation and applies to all tenants. */
    readonly global: boolean;
    /** `report`: the policy has no effect. */
    readonly mode: 'enforce' | 'report';
    /** Whether it matches the request. */
    readonly matched: boolean;
    /** Whether the policy is in force for the principal. */
    readonly applies: boolean;
    /** Permission patterns, `<resource>:<action>`, each part a name or `*`. */
    readonly actions: boolean;
    /** Globs of resources, `<kind>/<name>`. */
    readonly resources: boolean;
    /** The conditions of the policy, each with its result. */
    readonly conditions: readonly {
      /** The name of the condition. */
      readonly kind: string;
      /** How the value is compared. */
      readonly operator: string | null;
      /** The values that the request is compared with. */
      readonly operand: readonly string[];
      /** The value that the condition was compared with. Null if it is missing. */
      readonly value: string | null;
      /** The time zone of the value. */
      readonly timezone: string | null;
      /** Whether it matches the request. */
      readonly matched: boolean;
      /** Whether the request lacks the value that the condition compares. */
      readonly missing: boolean;
    }[];
  }[];
  /** The limits of steps 15 to 17; empty if an earlier step ended the decision. Nothing is counted. */
  readonly limits: readonly {
    /** The name of the limit. */
    readonly name: 'max_tokens_per_request' | 'rate_limit_rpm' | 'requests_per_minute' | 'tokens_per_minute' | 'parallel' | 'monthly_tokens' | 'max_collections';
    /** The limit itself. */
    readonly of: 'tenant' | 'user' | 'api_key';
    /** The globs of a limit by model. Absent: the limit is of all requests. */
    readonly models?: readonly string[];
    /** The step that checks it: 15, 16 or 17. */
    readonly line: number;
    /** `false`: the request does not count toward the limit. */
    readonly applies: boolean;
    /** Null: no limit. */
    readonly limit: number | null;
    /** The usage in the database. For a rate limit, the amount leased to all gates. */
    readonly used: number | null;
    /** For tokens and collections: the part of `remaining` that is set aside. */
    readonly reserved: number | null;
    /** `limit` minus `used`. */
    readonly remaining: number | null;
    /** When the limit begins again. */
    readonly resets_at: string | null;
    /** The amount that this request takes: one request, the tokens that it may spend, or one collection. In step 15, the largest limit that the request names. */
    readonly needed: number | null;
    /** Whether the limit rejects the request. */
    readonly exceeded: boolean;
  }[];
  /** The budgets of step 17 that count the request, by name; empty likewise. */
  readonly budgets: readonly ExplainedBudget[];
};

export type ImportedApiKeys = {
  /** The keys to import. */
  readonly keys: readonly {
    /** SHA-256 of the key in hexadecimal. The key itself is never sent. */
    readonly digest: string;
    /** The beginning of the key, shown in lists. */
    readonly prefix: string;
    /** The last four characters of the key. */
    readonly last_four: string;
    /** The owner; default: the tenant itself. */
    readonly user_id?: string | null;
    /** The name. */
    readonly name?: string | null;
    /** A message for people. */
    readonly description: string;
    /** Pairs of text. Budgets can select keys by them. Nothing else in a decision reads them. An update replaces all pairs. Null or an empty object removes them. */
    readonly metadata?: Readonly<Record<string, string>> | null;
    /** Permission patterns that the key is limited to. */
    readonly scopes: readonly string[];
    /** The resources that are permitted, by kind; an absent kind is not constrained. */
    readonly resource_constraints?: {
      /** Globs of model names; `*` matches any characters. */
      readonly models?: readonly string[] | null;
      /** Globs of collection names; `*` matches any characters. */
      readonly collections?: readonly string[] | null;
      /** Globs of agent names; `*` matches any characters. */
      readonly agents?: readonly string[] | null;
    } | null;
    /** Requests in a minute; null for no limit. */
    readonly rate_limit_rpm?: number | null;
    /** Limits of requests by model; at most 32 rules. An update replaces all rules. Null or an empty list: none. */
    readonly rate_limits?: readonly RateLimitRule[] | null;
    /** When the key expires; null if it does not. */
    readonly expires_at?: string | null;
    /** Days until the key expires, in place of `expires_at`. */
    readonly expires_in_days?: number;
  }[];
};

export type IssuedApiKey = {
  /** The id. */
  readonly id: string;
  /** The id of the tenant. */
  readonly tenant_id: string;
  /** Null if the tenant owns the key. */
  readonly user_id: string | null;
  /** The name. */
  readonly name: string | null;
  /** A message for people. */
  readonly description: string;
  readonly metadata: Metadata;
  /** Permission patterns that the key is limited to. */
  readonly scopes: readonly string[];
  readonly resource_constraints: ResourceConstraints;
  /** Requests in a minute; null for no limit. */
  readonly rate_limit_rpm: number | null;
  /** Limits of requests by model; at most 32 rules. An update replaces all rules. Null or an empty list: none. */
  readonly rate_limits: readonly RateLimitRule[] | null;
  /** The first characters of the key, for people. */
  readonly prefix: string;
  /** The last four characters of the key. */
  readonly last_four: string;
  /** The tokens of an issuer that prove the key, in place of a secret. `prefix` and `last_four` are empty then. Null: the key has a secret. */
  readonly proof: {
    /** The name of an issuer of the tenant. */
    readonly issuer: string;
    /** The subject of the token, or a glob. */
    readonly subject: string;
    /** Conditions on claims that a token must meet, all of them. */
    readonly claims: readonly {
      /** The name of a claim, or a JSON pointer if it begins with `/`. */
      readonly claim: string;
      /** The value must be one of these. */
      readonly in: readonly string[];
    }[];
    /** Present if another key has the same proof: a token that matches proves none of them. Read-only. */
    readonly ambiguous?: true;
  } | null;
  /** The secret was issued by another system and imported as a digest. A rotation gives the key a secret of Postern. */
  readonly imported: boolean;
  /** `active`, `disabled`, `expired` or `revoked`. */
  readonly status: 'active' | 'disabled' | 'expired' | 'revoked';
  /** When the key expires; null if it does not. */
  readonly expires_at: string | null;
  /** The principal that created or imported the key. */
  readonly created_by: {
    /** `user` or `api_key`. */
    readonly type: 'user' | 'api_key' | 'system';
    /** Null for the system, which creates the keys of a demonstration. */
    readonly id: string | null;
  };
  /** When the resource was created. */
  readonly created_at: string;
  /** When the resource was last updated. */
  readonly updated_at: string;
  /** When the key last authenticated a request, to the minute; null if it never did. */
  readonly last_used_at: string | null;
  /** The user that owns the key, in lists with `include=owner`. Null if the tenant owns the key. */
  readonly owner?: {
    /** The id. */
    readonly id: string;
    /** The name. */
    readonly name: string;
    /** The user's email address. */
    readonly email: string | null;
  } | null;
  /** The parts of the resource that have no effect. Absent if there are none. Read-only. */
  readonly notices?: readonly Notice[];
  /** The messages of `notices` as one text; absent without notices. */
  readonly notice?: string;
  /** The text of the key. Only this response contains it. */
  readonly key?: string;
  /** Present instead of the secret if the server repeats a response. */
  readonly secret_available?: false;
};

export type Issuer = {
  /** The id. */
  readonly id: string;
  /** The id of the tenant. */
  readonly tenant_id: string;
  /** The name. */
  readonly name: string;
  /** The kind. */
  readonly kind: 'oidc' | 'spiffe';
  /** The value of `iss`. */
  readonly issuer: string;
  /** The `aud` of a token must have one of them. */
  readonly audiences: readonly string[];
  /** Where the keys are; null if the discovery document says it. */
  readonly jwks_uri: string | null;
  /** The pasted key set; null if the keys are fetched. */
  readonly jwks: {
    /** Public keys (RFC 7517). */
    readonly keys: readonly Readonly<Record<string, unknown>>[];
  } | null;
  /** Certificate authorities of the issuer, PEM; null for those of the system. */
  readonly ca: string | null;
  /** Accepted signature algorithms. */
  readonly algorithms: readonly string[];
  /** Accepted values of `typ`; an empty text is an absent one. Null: at+jwt, JWT and absent. */
  readonly token_types: readonly string[] | null;
  /** Conditions on claims that a token must meet, all of them. */
  readonly required_claims: readonly {
    /** The name of a claim, or a JSON pointer if it begins with `/`. */
    readonly claim: string;
    /** The value must be one of these. */
    readonly in: readonly string[];
  }[];
  /** How its tokens prove users; null if they prove none. */
  readonly users: {
    /** The claim that identifies a user for good. Default: `sub`. */
    readonly subject_claim: string;
    /** The claim that has the email address. */
    readonly email_claim?: string;
    /** The claim that has the name. */
    readonly name_claim?: string;
    /** Whether the first token of a subject creates its user. */
    readonly create: boolean;
    /** Roles that values of claims give. */
    readonly roles: readonly {
      /** The name of a claim, or a JSON pointer if it begins with `/`. */
      readonly claim: string;
      /** The value must be one of these. */
      readonly in: readonly string[];
      /** The names of the roles. */
      readonly roles: readonly string[];
    }[];
    /** Roles of every user of the issuer. */
    readonly default_roles: readonly string[];
  } | null;
  /** The login to the console by this issuer; null for none. */
  readonly sso: {
    /** The id of the client at the issuer. */
    readonly client_id: string;
    /** The scopes of the login. Default: openid, profile and email. */
    readonly scopes: readonly string[];
    /** The text of the button on the login page. */
    readonly label: string;
    /** The `acr` that the ID token must have. */
    readonly required_acr?: string;
    /** A client secret is stored. */
    readonly client_secret_set: boolean;
  } | null;
  /** Whether its tokens are accepted. */
  readonly enabled: boolean;
  /** Bounds the time since `iat`; null for no bound. */
  readonly max_age_seconds: number | null;
  /** Tolerance for `exp`, `nbf` and `iat`. */
  readonly leeway_seconds: number;
  /** Tokens that were issued earlier are refused; null for none. */
  readonly revoked_before: string | null;
  /** The state of the keys that verify its tokens. */
  readonly keys: {
    /** The number of keys. */
    readonly count: number;
    /** The ids of the keys, of those that have one. */
    readonly kids: readonly string[];
    /** Whether the keys are pasted and not fetched. */
    readonly pasted: boolean;
    /** When the keys were last fetched or pasted. Null: never yet. */
    readonly fetched_at: string | null;
    /** Why the last attempt to fetch them failed. */
    readonly error: string | null;
    /** The keys are too old to be used: tokens of this issuer are 503. */
    readonly stale: boolean;
  };
  /** When the resource was created. */
  readonly created_at: string;
  /** When the resource was last updated. */
  readonly updated_at: string;
};

export type IssuerChanges = {
  /** The name. */
  readonly name?: string;
  /** Compared byte for byte with `iss`. For the kind `spiffe`: `spiffe://<trust domain>`. */
  readonly issuer?: string;
  /** The `aud` of a token must have one of them. */
  readonly audiences?: readonly string[];
  /** Where the keys are. Null: the discovery document of the issuer says it. */
  readonly jwks_uri?: string | null;
  /** A pasted key set (RFC 7517). Null: the keys are fetched. */
  readonly jwks?: {
    /** Public keys (RFC 7517). */
    readonly keys: readonly Readonly<Record<string, unknown>>[];
  } | null;
  /** Certificate authorities of the issuer, PEM. */
  readonly ca?: string | null;
  /** Default: RS256, ES256, EdDSA. */
  readonly algorithms?: readonly ('RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA')[];
  /** Accepted values of `typ`; an empty text is an absent one. Null: at+jwt, JWT and absent. */
  readonly token_types?: readonly string[] | null;
  /** Conditions on claims that a token must meet, all of them. */
  readonly required_claims?: readonly {
    /** The name of a claim, or a JSON pointer if it begins with `/`. */
    readonly claim: string;
    /** Values or globs, of which one must match. A list claim matches if one element does. */
    readonly in: readonly string[];
  }[];
  /** How tokens prove users. Absent or null: they prove no user. */
  readonly users?: {
    /** The name of a claim, or a JSON pointer if it begins with `/`. */
    readonly subject_claim?: string;
    /** The name of a claim, or a JSON pointer if it begins with `/`. */
    readonly email_claim?: string;
    /** The name of a claim, or a JSON pointer if it begins with `/`. */
    readonly name_claim?: string;
    /** The first token of a subject creates its user. Default: false. */
    readonly create?: boolean;
    /** Roles that values of claims give. */
    readonly roles?: readonly {
      /** The name of a claim, or a JSON pointer if it begins with `/`. */
      readonly claim: string;
      /** Values or globs, of which one must match. A list claim matches if one element does. */
      readonly in: readonly string[];
      /** The names of the roles. */
      readonly roles: readonly string[];
    }[];
    /** Roles of every user of the issuer. */
    readonly default_roles?: readonly string[];
  } | null;
  /** The login to the console by this issuer. Absent or null: none. */
  readonly sso?: {
    /** The id of the client at the issuer. */
    readonly client_id: string;
    /** The text of the button on the login page. */
    readonly label: string;
    /** The `acr` that the ID token must have. */
    readonly required_acr?: string;
    /** Stored sealed, and never shown. Absent in an update: the stored secret stays. */
    readonly client_secret?: string;
    /** Default: openid, profile and email. */
    readonly scopes?: readonly string[];
  } | null;
  /** Whether its tokens are accepted. `false` ends the sessions that began with them. `true` accepts tokens that are issued after the change. */
  readonly enabled?: boolean;
  /** Bounds the time since `iat`. Null: no bound. */
  readonly max_age_seconds?: number | null;
  /** Tolerance for `exp`, `nbf` and `iat`. Default: 5. */
  readonly leeway_seconds?: number;
};

export type IssuerList = {
  /** Always `list`. */
  readonly object: 'list';
  /** The rows of the page. */
  readonly data: readonly Issuer[];
  /** Whether another page follows. */
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** The number of rows of the whole list. Present with `count=true`, for up to 10,000 rows. */
  readonly total?: number;
  /** Present instead of `total` if the list has more rows than this. */
  readonly total_exceeds?: 10000;
};

export type IssuerRevocation = {
  /** Tokens that were issued earlier are refused. Default: now. */
  readonly time?: string;
};

export type IssuerTest = {
  /** Every step passed: a request with this token is authenticated. */
  readonly accepted: boolean;
  /** All steps. The examination continues after a step that failed. */
  readonly steps: readonly {
    /** `parsed`, `issuer`, `keys`, `algorithm`, `signature`, `type`, `audience`, `required_claims`, `time`, `mapping` (of an issuer with `users`) or `principal`. */
    readonly step: string;
    /** The result of the step. `skipped`: another step leaves nothing to examine. */
    readonly outcome: 'passed' | 'failed' | 'skipped';
    /** The values that the step compared, or the correction. */
    readonly detail: string;
  }[];
  /** The user or key that the token proves. Null: none, or a user that does not exist yet. */
  readonly principal: {
    /** The kind of principal. */
    readonly type: 'user' | 'api_key';
    /** The id of the user or key. */
    readonly id: string;
    /** Null without `admin:users` for a user, or `admin:keys` for a key. */
    readonly name: string | null;
  } | null;
};

export type IssuerTestRequest = {
  /** A token of the issuer. It is neither stored nor logged. */
  readonly token: string;
};

export type KeySet = {
  /** Public keys that verify access tokens (RFC 7517). */
  readonly keys: readonly {
    /** The type of the key, `EC`. */
    readonly kty: string;
    /** The curve of the key, `P-256`. */
    readonly crv: string;
    /** The x coordinate of the key, base64url. */
    readonly x: string;
    /** The y coordinate of the key, base64url. */
    readonly y: string;
    /** The id of the key. */
    readonly kid: string;
    /** Always `sig`. */
    readonly use: string;
    /** The algorithm, `ES256`. */
    readonly alg: string;
  }[];
};

export type Limit = {
  /** Null: there is no limit. */
  readonly limit: number | null;
  /** Null: the usage is not counted. */
  readonly used: number | null;
  /** The part of `remaining` that is set aside for requests in progress and fetched ahead of need. Null: the usage is not counted. */
  readonly reserved: number | null;
  /** How much is left. */
  readonly remaining: number | null;
  /** Null: it does not reset by itself. */
  readonly resets_at: string | null;
};

export type Limits = {
  readonly rate_limit_rpm: Limit;
  readonly max_tokens_per_request: Limit;
  readonly monthly_tokens: MonthlyLimit;
  readonly max_users: Limit;
  readonly max_collections: Limit;
  /** The limits by model of the tenant itself. `used` of `parallel`: the places that all gates hold. */
  readonly rate_limits: readonly ModelRateLimit[];
};

export type Login = {
  /** The email address to log in with. */
  readonly email?: string;
  /** The username at the directory. */
  readonly username?: string;
  /** `ldap` for a login at a directory; absent for a login with email address and password. */
  readonly auth_type?: 'ldap';
  /** The user's password. */
  readonly password: string;
  /** The refresh token comes as an HttpOnly cookie. */
  readonly session?: 'cookie';
};

/** Empty if the access token or the cookie identifies the session. */
export type Logout = {
  /** Absent if the refresh token is sent as a cookie. */
  readonly refresh_token?: string;
};

export type Me = {
  /** The id. */
  readonly id: string;
  /** `user` or `api_key`. */
  readonly type: 'user' | 'api_key';
  /** The user's email address. */
  readonly email: string | null;
  /** The name of the user or key. */
  readonly name: string;
  /** The id of the tenant. */
  readonly tenant_id: string;
  /** Where the password is kept: `local` is Postern, `ldap` a directory. `issuer:<name>`: a token of that issuer created the user, which has no password. Null for API keys. */
  readonly source: string | null;
  /** The names of the roles. */
  readonly roles: readonly string[];
  /** The permission patterns of the roles or scopes. Policies and constraints may narrow or widen them. */
  readonly permissions: readonly string[];
  /** Whether the principal administers the whole installation. */
  readonly platform_admin: boolean;
  /** The budgets that count the requests of the caller in its own tenant. Those with amounts of others show them with `usage:read` only. */
  readonly budgets: readonly OwnBudget[];
};

/** Pairs of text. Budgets can select keys by them. Nothing else in a decision reads them. */
export type Metadata = Readonly<Record<string, string>>;

export type ModelRateLimit = {
  /** Globs of model names; `*` matches any characters. */
  readonly models: readonly string[];
  /** Whether `limit` is of requests or tokens per minute, or of requests at the same time. */
  readonly dimension: 'requests_per_minute' | 'tokens_per_minute' | 'parallel';
  /** Null: there is no limit. */
  readonly limit: number | null;
  /** Null: the usage is not counted. */
  readonly used: number | null;
  /** The part of `remaining` that is set aside for requests in progress and fetched ahead of need. Null: the usage is not counted. */
  readonly reserved: number | null;
  /** How much is left. */
  readonly remaining: number | null;
  /** Null: it does not reset by itself. */
  readonly resets_at: string | null;
};

export type MonthlyLimit = {
  /** Null: there is no limit. */
  readonly limit: number | null;
  /** Null: the usage is not counted. */
  readonly used: number | null;
  /** The part of `remaining` that is set aside for requests in progress and fetched ahead of need. */
  readonly reserved: number;
  /** How much is left. */
  readonly remaining: number | null;
  /** Null: it does not reset by itself. */
  readonly resets_at: string | null;
  /** The time at which the tokens are spent at the month's average pace. Null: not before the reset, spent already, or less than two days of the month have passed. */
  readonly runs_out_at: string | null;
};

export type NewApiKey = {
  /** The id of the user that owns the key; null if the tenant owns it. */
  readonly user_id?: string | null;
  /** The name. */
  readonly name?: string | null;
  /** A message for people. */
  readonly description: string;
  /** Pairs of text. Budgets can select keys by them. Nothing else in a decision reads them. An update replaces all pairs. Null or an empty object removes them. */
  readonly metadata?: Readonly<Record<string, string>> | null;
  /** Permission patterns that the key is limited to. */
  readonly scopes: readonly string[];
  /** The resources that are permitted, by kind; an absent kind is not constrained. */
  readonly resource_constraints?: {
    /** Globs of model names; `*` matches any characters. */
    readonly models?: readonly string[] | null;
    /** Globs of collection names; `*` matches any characters. */
    readonly collections?: readonly string[] | null;
    /** Globs of agent names; `*` matches any characters. */
    readonly agents?: readonly string[] | null;
  } | null;
  /** Requests in a minute; null for no limit. */
  readonly rate_limit_rpm?: number | null;
  /** Limits of requests by model; at most 32 rules. An update replaces all rules. Null or an empty list: none. */
  readonly rate_limits?: readonly RateLimitRule[] | null;
  /** Tokens of an issuer prove the key, in place of a secret. Needs `admin:keys`. A key keeps its kind: an update changes the proof of a key without a secret only. */
  readonly proof?: {
    /** The name of an issuer of the tenant. */
    readonly issuer: string;
    /** The subject of the token, or a glob. An exact subject beats a glob. */
    readonly subject: string;
    /** Conditions on claims that a token must meet, all of them. */
    readonly claims?: readonly {
      /** The name of a claim, or a JSON pointer if it begins with `/`. */
      readonly claim: string;
      /** Values or globs, of which one must match. A list claim matches if one element does. */
      readonly in: readonly string[];
    }[];
  } | null;
  /** When the key expires; null if it does not. */
  readonly expires_at?: string | null;
  /** Days until the key expires, in place of `expires_at`. */
  readonly expires_in_days?: number;
};

export type NewBudget = {
  /** Unique in the tenant. The server removes surrounding blanks. */
  readonly name: string;
  /** The unit of the amounts: money in the currency of the prices, tokens, or requests. */
  readonly unit: 'money' | 'tokens' | 'requests';
  /** Money: a decimal text with at most 9 places, at most 9000000. Tokens and requests: a number. */
  readonly limit: string | number;
  /** The calendar period in which the limit holds. Weeks begin on Monday. `total`: it never resets by itself. */
  readonly period: 'hour' | 'day' | 'week' | 'month' | 'total';
  /** The time zone of the calendar periods. Null: the tenant's, or else UTC. */
  readonly timezone?: string | null;
  /** The callers whose requests count: exactly one member. Those of `users` and `roles` are these users and the keys that they own. */
  readonly applies_to: {
    /** Every request in the tenant. */
    readonly tenant?: true;
    /** The API keys. */
    readonly keys?: readonly string[];
    /** The users. */
    readonly users?: readonly string[];
    /** The names of the roles. */
    readonly roles?: readonly string[];
    /** Keys with all of these pairs in their metadata. */
    readonly metadata?: Readonly<Record<string, string>>;
  };
  /** `all`: the callers share the amount. `key`, `user`: each has its own. Default: all. */
  readonly per?: 'all' | 'key' | 'user';
  /** Names or globs of models. Null: all requests, also those without a model. */
  readonly models?: readonly string[] | null;
  /** `report`: requests are counted, and none is blocked. Default: block. */
  readonly action?: 'block' | 'report';
  /** Fractions of the limit. Each that is reached is announced once in a period. */
  readonly alerts?: readonly number[];
  /** Whether requests count and can be blocked. Default: true. */
  readonly enabled?: boolean;
};

export type NewIssuer = {
  /** The name. */
  readonly name: string;
  /** The kind. */
  readonly kind?: 'oidc' | 'spiffe';
  /** Compared byte for byte with `iss`. For the kind `spiffe`: `spiffe://<trust domain>`. */
  readonly issuer: string;
  /** The `aud` of a token must have one of them. */
  readonly audiences: readonly string[];
  /** Where the keys are. Null: the discovery document of the issuer says it. */
  readonly jwks_uri?: string | null;
  /** A pasted key set (RFC 7517). Null: the keys are fetched. */
  readonly jwks?: {
    /** Public keys (RFC 7517). */
    readonly keys: readonly Readonly<Record<string, unknown>>[];
  } | null;
  /** Certificate authorities of the issuer, PEM. */
  readonly ca?: string | null;
  /** Default: RS256, ES256, EdDSA. */
  readonly algorithms?: readonly ('RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA')[];
  /** Accepted values of `typ`; an empty text is an absent one. Null: at+jwt, JWT and absent. */
  readonly token_types?: readonly string[] | null;
  /** Conditions on claims that a token must meet, all of them. */
  readonly required_claims?: readonly {
    /** The name of a claim, or a JSON pointer if it begins with `/`. */
    readonly claim: string;
    /** Values or globs, of which one must match. A list claim matches if one element does. */
    readonly in: readonly string[];
  }[];
  /** How tokens prove users. Absent or null: they prove no user. */
  readonly users?: {
    /** The name of a claim, or a JSON pointer if it begins with `/`. */
    readonly subject_claim?: string;
    /** The name of a claim, or a JSON pointer if it begins with `/`. */
    readonly email_claim?: string;
    /** The name of a claim, or a JSON pointer if it begins with `/`. */
    readonly name_claim?: string;
    /** The first token of a subject creates its user. Default: false. */
    readonly create?: boolean;
    /** Roles that values of claims give. */
    readonly roles?: readonly {
      /** The name of a claim, or a JSON pointer if it begins with `/`. */
      readonly claim: string;
      /** Values or globs, of which one must match. A list claim matches if one element does. */
      readonly in: readonly string[];
      /** The names of the roles. */
      readonly roles: readonly string[];
    }[];
    /** Roles of every user of the issuer. */
    readonly default_roles?: readonly string[];
  } | null;
  /** The login to the console by this issuer. Absent or null: none. */
  readonly sso?: {
    /** The id of the client at the issuer. */
    readonly client_id: string;
    /** The text of the button on the login page. */
    readonly label: string;
    /** The `acr` that the ID token must have. */
    readonly required_acr?: string;
    /** Stored sealed, and never shown. Absent in an update: the stored secret stays. */
    readonly client_secret?: string;
    /** Default: openid, profile and email. */
    readonly scopes?: readonly string[];
  } | null;
  /** Whether its tokens are accepted. Default: true. */
  readonly enabled?: boolean;
  /** Bounds the time since `iat`. Null: no bound. */
  readonly max_age_seconds?: number | null;
  /** Tolerance for `exp`, `nbf` and `iat`. Default: 5. */
  readonly leeway_seconds?: number;
};

export type NewPassword = {
  /** A `password_setup_token`. */
  readonly token: string;
  /** The new password: 15 to 256 characters, and not a common one. */
  readonly new_password: string;
};

export type NewPolicy = {
  /** The name. */
  readonly name: string;
  /** A message for people. */
  readonly description?: string;
  /** `allow` or `deny`. */
  readonly effect: 'allow' | 'deny';
  /** Permission patterns, `<resource>:<action>`, each part a name or `*`. */
  readonly actions: readonly string[];
  /** Globs of resources, `<kind>/<name>`. */
  readonly resources: readonly string[];
  /** `ip_address`, `time`, `day_of_week`, `weekly_hours` and `timezone`. All must hold. Absent or empty: the policy always applies. */
  readonly conditions?: {
    /** Addresses and CIDR blocks that the client's address is compared with. */
    readonly ip_address?: {
      /** The value must be one of these. */
      readonly in?: readonly string[];
      /** The value must be none of these. */
      readonly not_in?: readonly string[];
    };
    /** Times of the day, in the time zone of the tenant. */
    readonly time?: {
      /** A start and an end, `HH:MM`, in the time zone of the tenant. The value must be between them. */
      readonly between?: readonly string[];
      /** A start and an end, `HH:MM`. The value must not be between them. */
      readonly not_between?: readonly string[];
    };
    /** Days of the week, in the time zone of the tenant. */
    readonly day_of_week?: {
      /** The value must be one of these. */
      readonly in?: readonly ('Mon' | 'Tue' | 'Wed' | 'Thu' | 'Fri' | 'Sat' | 'Sun')[];
      /** The value must be none of these. */
      readonly not_in?: readonly ('Mon' | 'Tue' | 'Wed' | 'Thu' | 'Fri' | 'Sat' | 'Sun')[];
    };
    /** Windows of the week, such as `Mon-Fri 08:00-18:00`, in the time zone of the tenant. */
    readonly weekly_hours?: {
      /** The value must be one of these. */
      readonly in?: readonly string[];
      /** The value must be none of these. */
      readonly not_in?: readonly string[];
    };
    /** A name of the IANA time zone database. */
    readonly timezone?: string;
  } | null;
  /** The principals that the policy applies to: all of them, or the holders of `attached_roles`. */
  readonly applies_to?: 'everyone' | 'roles';
  /** The roles whose holders the policy applies to. */
  readonly attached_roles?: readonly string[];
  /** Whether the policy belongs to the installation and applies to all tenants. */
  readonly global?: boolean;
  /** `enforce`, or `report`: the policy has no effect, and decisions that it would have changed are recorded. */
  readonly mode?: 'enforce' | 'report';
  /** Whether the policy is in force, or is evaluated if its mode is `report`. */
  readonly enabled?: boolean;
};

export type NewPrices = {
  /** The whole list. */
  readonly prices: readonly {
    /** The name of a model, or a glob. The most specific one that matches a model counts. */
    readonly models: string;
    /** The price of prompt tokens. */
    readonly input: string;
    /** The price of tokens of the answer. */
    readonly output: string;
    /** The price of prompt tokens that the upstream read from its cache. Default: `input`. */
    readonly cached_input?: string;
    /** The price of prompt tokens that the upstream wrote to its cache. Default: `input`. */
    readonly cache_write?: string;
    /** The number of tokens that cost the amounts. The price of 1,000,000 tokens may have at most 9 decimal places. */
    readonly per: 1 | 1000 | 1000000;
  }[];
};

export type NewRole = {
  /** The name. */
  readonly name: string;
  /** A message for people. */
  readonly description?: string;
  /** Permission patterns, `<resource>:<action>`, each part a name or `*`. */
  readonly permissions: readonly string[];
  /** The resources that are permitted, by kind; an absent kind is not constrained. */
  readonly resource_constraints?: {
    /** Globs of model names; `*` matches any characters. */
    readonly models?: readonly string[] | null;
    /** Globs of collection names; `*` matches any characters. */
    readonly collections?: readonly string[] | null;
    /** Globs of agent names; `*` matches any characters. */
    readonly agents?: readonly string[] | null;
  } | null;
};

export type NewTenant = {
  /** The id of the new tenant. It never changes. */
  readonly id: string;
  /** The name. */
  readonly name: string;
  /** The settings of the tenant. */
  readonly settings?: {
    /** The model of requests that name none. */
    readonly default_model?: string | null;
    /** The maximum number of tokens that one request may ask for. */
    readonly max_tokens_per_request?: number | null;
    /** Requests in a minute; null for no limit. */
    readonly rate_limit_rpm?: number | null;
    /** A name of the IANA time zone database. */
    readonly timezone?: string | null;
    /** Whether API keys may be created without an expiry. */
    readonly allow_keys_without_expiry?: boolean | null;
    /** Whether a stream of completions must ask for its usage (`stream_options.include_usage`). Without it, the server books an estimate. */
    readonly require_stream_usage?: boolean | null;
    /** Limits of requests by model; at most 32 rules. An update replaces all rules. Null or an empty list: none. */
    readonly rate_limits?: readonly RateLimitRule[] | null;
  } | null;
  /** The quotas of the tenant; an absent quota does not limit. */
  readonly quotas?: {
    /** The tokens that the tenant may spend in a month. */
    readonly monthly_tokens?: number | null;
    /** The maximum number of users of the tenant. */
    readonly max_users?: number | null;
    /** The maximum number of collections of the tenant. */
    readonly max_collections?: number | null;
  } | null;
  /** Pairs of text. Budgets can select keys by them. Nothing else in a decision reads them. An update replaces all pairs. Null or an empty object removes them. */
  readonly metadata?: Readonly<Record<string, string>> | null;
};

export type NewUser = {
  /** The user's email address. */
  readonly email: string;
  /** The user's name. */
  readonly name: string;
  /** The user's department. */
  readonly department?: string | null;
  /** Pairs of text. Budgets can select keys by them. Nothing else in a decision reads them. An update replaces all pairs. Null or an empty object removes them. */
  readonly metadata?: Readonly<Record<string, string>> | null;
  /** Limits of requests by model; at most 32 rules. An update replaces all rules. Null or an empty list: none. */
  readonly rate_limits?: readonly RateLimitRule[] | null;
  /** The names of the roles. */
  readonly roles?: readonly string[];
  /** Replaces all identities of the user. */
  readonly identities?: readonly {
    /** The name of an issuer of the tenant. */
    readonly issuer: string;
    /** The value of the claim that identifies a user of the issuer. */
    readonly subject: string;
  }[];
  /** The same as X-Tenant-ID. */
  readonly tenant_id?: string;
  /** The user's password. */
  readonly password?: string;
};

export type NewWebhook = {
  /** An https address on the public internet, or a host that `webhooks.allowed-hosts` names. */
  readonly url: string;
  /** Events, groups such as `budget.*`, or `*`. Events: - `budget.threshold`: A budget has reached one of its alerts. - `budget.reset`: A budget was reset. - `quota.threshold`: The tenant has used 80 % or all of its monthly tokens. - `key.expiring`: An API key expires in 14 days, 7 days or 1 day. - `key.expired`: An API key has expired. - `key.revoked`: An API key was revoked. - `login.locked`: Failed logins have locked the account of a user, for all addresses or for one. - `session.reuse_detected`: A refresh token was used twice. Its session has ended. - `issuer.keys_stale`: The keys of an issuer are too old to be used. Its tokens are answered 503. - `audit.chain_broken`: The chain of the audit log is broken. Only webhooks of the first tenant receive it. - `audit.<action>`: any other row of the tenant's audit log, for example `audit.role.update`. It needs `audit:read` as well. */
  readonly events: readonly string[];
  /** A text for the console and for lists. Null: none. */
  readonly description?: string | null;
  /** Whether events are sent to it. Default: true. */
  readonly enabled?: boolean;
};

export type Notice = {
  /** The reason for the notice, for programs. */
  readonly kind: 'unneeded_pattern' | 'binds_no_one' | 'duplicate' | 'shadowed' | 'no_effect' | 'no_price';
  /** JSON pointer to the member; empty: the whole resource. */
  readonly path: string;
  /** The pattern that no route and no endpoint needs, or the model without a price. */
  readonly pattern: string | null;
  /** The nearest pattern that covers a permission. */
  readonly nearest: string | null;
  /** A sentence for people. */
  readonly message: string;
};

export type NoticedResource = {
  /** The kind. */
  readonly kind: 'role' | 'policy' | 'key';
  /** The name of a role or policy, or the id of a key. */
  readonly id: string;
  /** The name. */
  readonly name: string;
  readonly notice: Notice;
};

/** An error of the token endpoint (RFC 6749, section 5.2). */
export type OAuthError = {
  /** The error, in the words of RFC 6749 and RFC 8693. */
  readonly error: 'invalid_request' | 'invalid_grant' | 'invalid_scope' | 'invalid_target' | 'unsupported_grant_type' | 'temporarily_unavailable';
  /** A message for people. It may change at any time. */
  readonly error_description: string;
  /** A code for programs. It does not change. */
  readonly code: 'malformed_request' | 'malformed_path' | 'malformed_body' | 'invalid_tenant' | 'max_tokens_exceeded' | 'usage_required' | 'invalid_json' | 'invalid_parameter' | 'unsupported_grant_type' | 'invalid_subject_token' | 'invalid_scope' | 'invalid_target' | 'missing_credential' | 'invalid_credential' | 'token_expired' | 'no_route' | 'tenant_mismatch' | 'tenant_suspended' | 'denied_by_policy' | 'insufficient_permission' | 'resource_not_permitted' | 'escalation' | 'builtin_role' | 'reauthentication_required' | 'password_expired' | 'not_found' | 'method_not_allowed' | 'already_exists' | 'in_use' | 'revoked' | 'last_admin' | 'would_lock_out' | 'quota_exceeded' | 'idempotency_in_progress' | 'precondition_failed' | 'body_too_large' | 'unsupported_media_type' | 'invalid_field' | 'idempotency_mismatch' | 'rate_limit_exceeded' | 'insufficient_quota' | 'too_many_attempts' | 'unavailable';
  /** The state of the resource. */
  readonly status: number;
  /** The id of the request, as in the header `x-request-id`. */
  readonly request_id: string;
};

export type Overview = {
  readonly monthly_tokens?: MonthlyLimit;
  /** The latest denials, with names. */
  readonly denials?: readonly RecentDecision[];
  /** The latest changes, with names. */
  readonly changes?: readonly AuditRow[];
  /** The users. */
  readonly users?: {
    /** Accounts that failed logins have locked. */
    readonly locked: readonly User[];
    /** Users of a directory whose address another user has. */
    readonly email_conflicts: readonly User[];
    /** Users that their directory has suspended. */
    readonly suspended: readonly User[];
  };
  /** Models without a price, those with the most requests first. Empty while no prices are set. */
  readonly unpriced_models?: readonly {
    /** The name that the requests gave. */
    readonly model: string;
    /** The requests of the current month that cost nothing. */
    readonly requests: number;
  }[];
  /** Parts of rules and keys without effect. */
  readonly notices: {
    /** Notices of enabled policies, custom roles and active keys that the caller may read. */
    readonly data: readonly NoticedResource[];
    /** Whether another page follows. */
    readonly has_more: boolean;
    /** `false`: of the active keys, only the newest 100 were examined. */
    readonly all_keys: boolean;
  };
  /** Keys that expire soon. */
  readonly expiring_keys: {
    /** The end of the time within which they expire. */
    readonly before: string;
    /** Active keys that expire within 14 days, at most 10,000. */
    readonly total: number;
    /** The first of them to expire. */
    readonly data: readonly ApiKey[];
  };
};

export type OwnBudget = {
  /** The name. */
  readonly name: string;
  /** The unit of the amounts: money in the currency of the prices, tokens, or requests. */
  readonly unit: 'money' | 'tokens' | 'requests';
  /** The calendar period in which the limit holds. Weeks begin on Monday. `total`: it never resets by itself. */
  readonly period: 'hour' | 'day' | 'week' | 'month' | 'total';
  /** `report`: requests are counted, and none is blocked. Default: block. */
  readonly action: 'block' | 'report';
  /** Globs of model names; `*` matches any characters. */
  readonly models: readonly string[] | null;
  /** The end of the period. Null: it has none. */
  readonly resets_at: string | null;
  /** A decimal text for money, otherwise a number. */
  readonly limit?: string | number;
  /** Booked in the period. */
  readonly spent?: string | number;
  /** Set aside for requests in progress, and fetched ahead of need. */
  readonly reserved?: string | number;
  /** The limit without the spent and the reserved part; 0 if more was spent. */
  readonly remaining?: string | number;
};

export type PasswordChange = {
  /** The current password. */
  readonly old_password: string;
  /** The new password: 15 to 256 characters, and not a common one. */
  readonly new_password: string;
};

export type PasswordReset = {
  /** Only this response contains it. */
  readonly password_setup_token?: string;
  /** Present instead of the secret if the server repeats a response. */
  readonly secret_available?: false;
  /** When the key expires; null if it does not. */
  readonly expires_at: string;
};

export type PasswordResetRequest = {
  /** The caller's current password. Required for a reset of the caller's own password. */
  readonly current_password?: string;
};

export type Permission = {
  /** The permission that the request requires. */
  readonly permission: string;
  /** `platform`: routes of the platform require it. `management`: only endpoints under /v1/iam require it. */
  readonly kind: 'platform' | 'management';
  /** The routes and endpoints that require the permission, or for which it is one of two sufficient permissions. */
  readonly routes: readonly {
    /** The HTTP method of the request. */
    readonly method: string;
    /** A path template. */
    readonly path: string;
  }[];
  /** All of them; `routes` shows 100 at most. */
  readonly route_count: number;
};

export type PermissionList = {
  /** Always `list`. */
  readonly object: 'list';
  /** The rows of the page. */
  readonly data: readonly Permission[];
  /** Whether another page follows. */
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** The number of rows of the whole list. Present with `count=true`, for up to 10,000 rows. */
  readonly total?: number;
  /** Present instead of `total` if the list has more rows than this. */
  readonly total_exceeds?: 10000;
};

export type Policy = {
  /** The name. */
  readonly name: string;
  /** A message for people. */
  readonly description: string;
  /** `allow` or `deny`. */
  readonly effect: 'allow' | 'deny';
  /** Permission patterns, `<resource>:<action>`, each part a name or `*`. */
  readonly actions: readonly string[];
  /** Globs of resources, `<kind>/<name>`. */
  readonly resources: readonly string[];
  readonly conditions: PolicyConditions;
  /** The principals that the policy applies to: all of them, or the holders of `attached_roles`. */
  readonly applies_to: 'everyone' | 'roles';
  /** The roles whose holders the policy applies to. */
  readonly attached_roles: readonly string[];
  /** Whether the policy belongs to the installation and applies to all tenants. */
  readonly global: boolean;
  /** `enforce`, or `report`: the policy has no effect, and decisions that it would have changed are recorded. */
  readonly mode: 'enforce' | 'report';
  /** Whether the policy is in force, or is evaluated if its mode is `report`. */
  readonly enabled: boolean;
  /** Null for global policies. */
  readonly tenant_id: string | null;
  /** When the resource was created. */
  readonly created_at: string;
  /** When the resource was last updated. */
  readonly updated_at: string;
  /** The parts of the resource that have no effect. Absent if there are none. Read-only. */
  readonly notices?: readonly Notice[];
  /** The messages of `notices` as one text; absent without notices. */
  readonly notice?: string;
};

export type PolicyChanges = {
  /** A message for people. */
  readonly description?: string;
  /** `allow` or `deny`. */
  readonly effect?: 'allow' | 'deny';
  /** Permission patterns, `<resource>:<action>`, each part a name or `*`. */
  readonly actions?: readonly string[];
  /** Globs of resources, `<kind>/<name>`. */
  readonly resources?: readonly string[];
  /** `ip_address`, `time`, `day_of_week`, `weekly_hours` and `timezone`. All must hold. Absent or empty: the policy always applies. */
  readonly conditions?: {
    /** Addresses and CIDR blocks that the client's address is compared with. */
    readonly ip_address?: {
      /** The value must be one of these. */
      readonly in?: readonly string[];
      /** The value must be none of these. */
      readonly not_in?: readonly string[];
    };
    /** Times of the day, in the time zone of the tenant. */
    readonly time?: {
      /** A start and an end, `HH:MM`, in the time zone of the tenant. The value must be between them. */
      readonly between?: readonly string[];
      /** A start and an end, `HH:MM`. The value must not be between them. */
      readonly not_between?: readonly string[];
    };
    /** Days of the week, in the time zone of the tenant. */
    readonly day_of_week?: {
      /** The value must be one of these. */
      readonly in?: readonly ('Mon' | 'Tue' | 'Wed' | 'Thu' | 'Fri' | 'Sat' | 'Sun')[];
      /** The value must be none of these. */
      readonly not_in?: readonly ('Mon' | 'Tue' | 'Wed' | 'Thu' | 'Fri' | 'Sat' | 'Sun')[];
    };
    /** Windows of the week, such as `Mon-Fri 08:00-18:00`, in the time zone of the tenant. */
    readonly weekly_hours?: {
      /** The value must be one of these. */
      readonly in?: readonly string[];
      /** The value must be none of these. */
      readonly not_in?: readonly string[];
    };
    /** A name of the IANA time zone database. */
    readonly timezone?: string;
  } | null;
  /** The principals that the policy applies to: all of them, or the holders of `attached_roles`. */
  readonly applies_to?: 'everyone' | 'roles';
  /** The roles whose holders the policy applies to. */
  readonly attached_roles?: readonly string[];
  /** Whether the policy belongs to the installation and applies to all tenants. */
  readonly global?: boolean;
  /** `enforce`, or `report`: the policy has no effect, and decisions that it would have changed are recorded. */
  readonly mode?: 'enforce' | 'report';
  /** Whether the policy is in force, or is evaluated if its mode is `report`. */
  readonly enabled?: boolean;
};

/** All must hold. Empty: the policy always applies. */
export type PolicyConditions = {
  /** Addresses and CIDR blocks that the client's address is compared with. */
  readonly ip_address?: {
    /** The value must be one of these. */
    readonly in?: readonly string[];
    /** The value must be none of these. */
    readonly not_in?: readonly string[];
  };
  /** Times of the day, in the time zone of the tenant. */
  readonly time?: {
    /** A start and an end, `HH:MM`, in the time zone of the tenant. The value must be between them. */
    readonly between?: readonly string[];
    /** A start and an end, `HH:MM`. The value must not be between them. */
    readonly not_between?: readonly string[];
  };
  /** Days of the week, in the time zone of the tenant. */
  readonly day_of_week?: {
    /** The value must be one of these. */
    readonly in?: readonly ('Mon' | 'Tue' | 'Wed' | 'Thu' | 'Fri' | 'Sat' | 'Sun')[];
    /** The value must be none of these. */
    readonly not_in?: readonly ('Mon' | 'Tue' | 'Wed' | 'Thu' | 'Fri' | 'Sat' | 'Sun')[];
  };
  /** Windows of the week, such as `Mon-Fri 08:00-18:00`, in the time zone of the tenant. */
  readonly weekly_hours?: {
    /** The value must be one of these. */
    readonly in?: readonly string[];
    /** The value must be none of these. */
    readonly not_in?: readonly string[];
  };
  /** The time zone of the tenant, such as `Europe/Berlin`. */
  readonly timezone?: string;
};

export type PolicyList = {
  /** Always `list`. */
  readonly object: 'list';
  /** The rows of the page. */
  readonly data: readonly Policy[];
  /** Whether another page follows. */
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** The number of rows of the whole list. Present with `count=true`, for up to 10,000 rows. */
  readonly total?: number;
  /** Present instead of `total` if the list has more rows than this. */
  readonly total_exceeds?: 10000;
};

export type Price = {
  /** The name of a model, or a glob. The most specific one that matches a model counts. */
  readonly models: string;
  /** The price of prompt tokens. */
  readonly input: string;
  /** The price of tokens of the answer. */
  readonly output: string;
  /** The price of prompt tokens that the upstream read from its cache. Default: `input`. */
  readonly cached_input?: string;
  /** The price of prompt tokens that the upstream wrote to its cache. Default: `input`. */
  readonly cache_write?: string;
  /** The number of tokens. */
  readonly per: 1000000;
};

export type PriceProposal = {
  /** Grows by 1 with each list. 0: no list was set yet. */
  readonly version: number;
  /** The setting `prices.currency`. */
  readonly currency: string;
  /** The origin of the table. */
  readonly source: {
    /** The package that the table was made from. */
    readonly name: string;
    /** The version of the package. */
    readonly version: string;
    /** The license of the package. */
    readonly license: string;
    /** The currency of the proposed amounts. The server converts none. */
    readonly currency: string;
    /** The day whose prices the table has. */
    readonly date: string;
  };
  /** Every provider of the table. */
  readonly providers: readonly {
    /** The id. */
    readonly id: string;
    /** The name. */
    readonly name: string;
  }[];
  /** The prices that the filters select, in the order of `models`. */
  readonly data: readonly ProposedPrice[];
};

export type Prices = {
  /** Grows by 1 with each list. 0: no list was set yet. */
  readonly version: number;
  /** The setting `prices.currency`. */
  readonly currency: string;
  /** The time at which the list was set. Null: no list was set yet. */
  readonly set_at: string | null;
  /** In the order of `models`. A model without a price costs nothing. */
  readonly prices: readonly Price[];
};

/** Every error: problem details (RFC 9457) that also have the `error` member of the OpenAI API. */
export type Problem = {
  /** A URI that names the error code. */
  readonly type: string;
  /** The title of the error code. */
  readonly title: string;
  /** The HTTP status. */
  readonly status: number;
  /** A message for people. It may change at any time. */
  readonly detail: string;
  /** A code for programs. It does not change. */
  readonly code: 'malformed_request' | 'malformed_path' | 'malformed_body' | 'invalid_tenant' | 'max_tokens_exceeded' | 'usage_required' | 'invalid_json' | 'invalid_parameter' | 'unsupported_grant_type' | 'invalid_subject_token' | 'invalid_scope' | 'invalid_target' | 'missing_credential' | 'invalid_credential' | 'token_expired' | 'no_route' | 'tenant_mismatch' | 'tenant_suspended' | 'denied_by_policy' | 'insufficient_permission' | 'resource_not_permitted' | 'escalation' | 'builtin_role' | 'reauthentication_required' | 'password_expired' | 'not_found' | 'method_not_allowed' | 'already_exists' | 'in_use' | 'revoked' | 'last_admin' | 'would_lock_out' | 'quota_exceeded' | 'idempotency_in_progress' | 'precondition_failed' | 'body_too_large' | 'unsupported_media_type' | 'invalid_field' | 'idempotency_mismatch' | 'rate_limit_exceeded' | 'insufficient_quota' | 'too_many_attempts' | 'unavailable';
  /** The id of the request, as in the header `x-request-id`. */
  readonly request_id: string;
  /** The policy that denies. */
  readonly policy?: string;
  /** The end of the period of the quota. Null: it does not reset by itself. */
  readonly resets_at?: string | null;
  /** The budget without room for the request. Only callers with `usage:read` get its unit and amounts. */
  readonly budget?: {
    /** The id. */
    readonly id: string;
    /** The name. */
    readonly name: string;
    /** The month, `YYYY-MM`. */
    readonly period: 'hour' | 'day' | 'week' | 'month' | 'total';
    /** When the limit begins again. */
    readonly resets_at: string | null;
    /** The unit of the amounts. */
    readonly unit?: 'money' | 'tokens' | 'requests';
    /** A number of tokens or requests, or a decimal text of money. */
    readonly limit?: number | string;
    /** A number of tokens or requests, or a decimal text of money. */
    readonly spent?: number | string;
    /** A number of tokens or requests, or a decimal text of money. */
    readonly reserved?: number | string;
    /** A number of tokens or requests, or a decimal text of money. */
    readonly remaining?: number | string;
  };
  /** The exceeded limit by model. A long list of patterns is cut. */
  readonly limit?: {
    /** The owner of the limit. */
    readonly level: 'tenant' | 'user' | 'key';
    /** Globs of model names; `*` matches any characters. */
    readonly models: readonly string[];
    /** The unit of the limit: requests or tokens per minute, or requests at the same time. */
    readonly dimension: 'requests_per_minute' | 'tokens_per_minute' | 'parallel';
  };
  /** The problems of the body, by member. */
  readonly errors?: readonly {
    /** A JSON pointer (RFC 6901). */
    readonly path: string;
    /** The error, and the values that are allowed. */
    readonly message: string;
  }[];
  /** The same error, in the format of the OpenAI API. */
  readonly error: {
    /** A sentence for people. */
    readonly message: string;
    /** The type of the error, as the SDKs of OpenAI know it. */
    readonly type: 'invalid_request_error' | 'authentication_error' | 'permission_error' | 'rate_limit_error' | 'insufficient_quota' | 'server_error';
    /** The member or parameter that is wrong; null if there is none. */
    readonly param: string | null;
    /** The error code, for programs. */
    readonly code: string;
  };
};

export type ProposedPrice = {
  /** The effect on the list in force if the price is accepted. */
  readonly change: 'added' | 'changed' | 'unchanged';
  /** The id of the provider. */
  readonly provider: string;
  readonly price: Price;
  /** The price in force for the same glob. */
  readonly current: Price | null;
  /** Prices of the provider that the table does not have: `tiers` are higher ones for long prompts, `times` are lower ones at some hours. */
  readonly left_out: readonly ('tiers' | 'times')[];
};

export type ProviderLogout = {
  /** The session began at an OpenID provider. At this address, the browser also ends the provider's session. */
  readonly logout_url: string;
};

export type RateLimitRule = {
  /** Names of models, or globs. All models that they match share the limits. For each limit, the rule with the most specific glob counts. */
  readonly models: readonly string[];
  /** Requests per minute. 0 allows nothing. Absent: the rule does not limit them. */
  readonly requests_per_minute?: number;
  /** Tokens per minute. 0 allows nothing. Absent: the rule does not limit them. */
  readonly tokens_per_minute?: number;
  /** Requests that may run at the same time. 0 allows nothing. Absent: the rule does not limit them. */
  readonly parallel?: number;
};

export type RecentDecision = {
  /** The request_id of the denial, and its header x-request-id. */
  readonly request_id: string;
  /** When it happened. */
  readonly time: string;
  /** Null if no tenant was known. */
  readonly tenant_id: string | null;
  /** `allow` or `deny`. */
  readonly outcome: 'allow' | 'deny';
  /** `allow`, or the code of the denial. */
  readonly code: string;
  /** The detail of the denial; empty for an allow. */
  readonly detail: string;
  /** The principal that sent the request. */
  readonly principal: {
    /** `user` or `api_key`. */
    readonly type: 'user' | 'api_key';
    /** The id of the user or key. */
    readonly id: string;
    /** With `include=names`: its current name. Null: there is none, or the caller may not read it. */
    readonly name?: string | null;
  } | null;
  /** Null if the server could not read the check. */
  readonly method: string | null;
  /** The path without the query, at most 1,024 characters. Secrets are masked. */
  readonly path: string | null;
  /** An entry of the route table. */
  readonly route: string | null;
  /** The permission that the request requires. */
  readonly permission: string | null;
  /** `<kind>/<name>`, at most 16. */
  readonly resources: readonly string[];
  /** The client's address. */
  readonly client_ip: string | null;
  /** The policy that denied. */
  readonly policy: string | null;
  /** The report-only policy that would have denied the request. Null: none, or it is denied. */
  readonly would_deny: string | null;
  /** The report-only policy that would have allowed the request. Null: none, or it is allowed. */
  readonly would_allow: string | null;
  /** The id of the budget without room for the request. */
  readonly budget: string | null;
  /** `true`: the server did not record other decisions of the tenant with this outcome at that time. */
  readonly sampled: boolean;
  /** `true`: the check was in shadow mode, and its decision changed nothing. */
  readonly shadow: boolean;
  /** The `x-request-id` of a request in shadow mode, by which Envoy names it. */
  readonly client_request_id: string | null;
  /** The other gate's outcome for a request in shadow mode. `deny`: Envoy's access log reports its denial. `allow`: no such report has come. Null: the outcome is not known, because the request has no usable `x-request-id`, or another recorded request has the same one. */
  readonly other: 'allow' | 'deny' | null;
};

export type RecentDecisions = {
  /** Always `list`. */
  readonly object: 'list';
  /** The rows of the page. */
  readonly data: readonly RecentDecision[];
  /** Whether another page follows. */
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** The number of rows of the whole list. Present with `count=true`, for up to 10,000 rows. */
  readonly total?: number;
  /** Present instead of `total` if the list has more rows than this. */
  readonly total_exceeds?: 10000;
  /** `true`: at least one decision on this page is a sample. */
  readonly sampled: boolean;
};

/** A browser that keeps the refresh token in a cookie sends an empty object or no body. */
export type RefreshToken = {
  /** Absent if the refresh token is sent as a cookie. */
  readonly refresh_token?: string;
};

/** Names or globs by kind. An absent kind is unconstrained, an empty list permits none. */
export type ResourceConstraints = {
  /** Globs of model names; `*` matches any characters. */
  readonly models?: readonly string[];
  /** Globs of collection names; `*` matches any characters. */
  readonly collections?: readonly string[];
  /** Globs of agent names; `*` matches any characters. */
  readonly agents?: readonly string[];
};

export type Role = {
  /** The name. */
  readonly name: string;
  /** A message for people. */
  readonly description: string;
  /** Permission patterns, `<resource>:<action>`, each part a name or `*`. */
  readonly permissions: readonly string[];
  readonly resource_constraints: ResourceConstraints;
  /** Whether the role is built in and cannot be changed. */
  readonly builtin: boolean;
  /** Null for built-in roles, which are the same in every tenant. */
  readonly tenant_id: string | null;
  /** When the resource was created. */
  readonly created_at: string | null;
  /** When the resource was last updated. */
  readonly updated_at: string | null;
  /** The parts of the resource that have no effect. Absent if there are none. Read-only. */
  readonly notices?: readonly Notice[];
  /** The messages of `notices` as one text; absent without notices. */
  readonly notice?: string;
};

export type RoleChanges = {
  /** A message for people. */
  readonly description?: string;
  /** Permission patterns, `<resource>:<action>`, each part a name or `*`. */
  readonly permissions?: readonly string[];
  /** The resources that are permitted, by kind; an absent kind is not constrained. */
  readonly resource_constraints?: {
    /** Globs of model names; `*` matches any characters. */
    readonly models?: readonly string[] | null;
    /** Globs of collection names; `*` matches any characters. */
    readonly collections?: readonly string[] | null;
    /** Globs of agent names; `*` matches any characters. */
    readonly agents?: readonly string[] | null;
  } | null;
};

export type RoleList = {
  /** Always `list`. */
  readonly object: 'list';
  /** The rows of the page. */
  readonly data: readonly Role[];
  /** Whether another page follows. */
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** The number of rows of the whole list. Present with `count=true`, for up to 10,000 rows. */
  readonly total?: number;
  /** Present instead of `total` if the list has more rows than this. */
  readonly total_exceeds?: 10000;
};

export type Rotation = {
  /** The seconds during which the old secret also works, for platform requests and reads only. 0: the old secret stops working at once. */
  readonly grace_seconds?: number;
};

export type Session = {
  /** The id. */
  readonly id: string;
  /** When the user logged in. */
  readonly created_at: string;
  /** The time at which the session began or was last refreshed. */
  readonly last_used_at: string;
  /** The time at which the session ends even if it is used. */
  readonly expires_at: string;
  /** The client address at login. */
  readonly address: string | null;
  /** The user agent that logged in. */
  readonly user_agent: string | null;
  /** The refresh token is kept in a browser's cookie. */
  readonly cookie: boolean;
  /** The name of the issuer whose token began the session. */
  readonly issuer: string | null;
  /** The permission patterns that narrow the session. Null: it has all permissions of its user. */
  readonly scope: readonly string[] | null;
  /** Whether this is the session of the request's access token. */
  readonly current: boolean;
};

export type SessionList = {
  /** Always `list`. */
  readonly object: 'list';
  /** The rows of the page. */
  readonly data: readonly Session[];
  /** Whether another page follows. */
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** The number of rows of the whole list. Present with `count=true`, for up to 10,000 rows. */
  readonly total?: number;
  /** Present instead of `total` if the list has more rows than this. */
  readonly total_exceeds?: 10000;
};

export type SimulateRequest = {
  /** The id of a user or a key, the email address of a user, or the shown prefix or the name of a key. Never a whole key. */
  readonly subject?: string;
  /** An API key or an access token. */
  readonly credential?: string;
  /** The value of X-Tenant-ID. */
  readonly tenant_id?: string;
  /** The HTTP method of the request. */
  readonly method: string;
  /** The path of the request. */
  readonly path: string;
  /** An IPv4 or IPv6 address. Default: the caller's address. Null is an unknown address. */
  readonly client_ip?: string | null;
  /** Default: now. */
  readonly time?: string;
  /** The body of the request as text. Null is no body. */
  readonly body?: string | null;
  /** Default: application/json. */
  readonly content_type?: string;
  /** Each in full, as to create it. Policies and roles take at most 64 KiB together, as JSON without spaces. */
  readonly policies?: readonly NewPolicy[];
  /** Each in full, as to create it. Policies and roles take at most 64 KiB together, as JSON without spaces. */
  readonly roles?: readonly NewRole[];
  /** The rules that the change deletes. */
  readonly remove?: {
    /** Names of policies that the change deletes. */
    readonly policies?: readonly string[];
    /** Names of roles that the change deletes. Policies are detached from them. */
    readonly roles?: readonly string[];
  };
};

export type Simulation = {
  /** `allow`, `deny` or `public`. */
  readonly decision: 'allow' | 'deny';
  /** The HTTP status that the request would get. */
  readonly status: number;
  /** The error code, for programs. */
  readonly code: 'allow' | 'malformed_request' | 'malformed_path' | 'malformed_body' | 'invalid_tenant' | 'max_tokens_exceeded' | 'usage_required' | 'invalid_json' | 'invalid_parameter' | 'unsupported_grant_type' | 'invalid_subject_token' | 'invalid_scope' | 'invalid_target' | 'missing_credential' | 'invalid_credential' | 'token_expired' | 'no_route' | 'tenant_mismatch' | 'tenant_suspended' | 'denied_by_policy' | 'insufficient_permission' | 'resource_not_permitted' | 'escalation' | 'builtin_role' | 'reauthentication_required' | 'password_expired' | 'not_found' | 'method_not_allowed' | 'already_exists' | 'in_use' | 'revoked' | 'last_admin' | 'would_lock_out' | 'quota_exceeded' | 'idempotency_in_progress' | 'precondition_failed' | 'body_too_large' | 'unsupported_media_type' | 'invalid_field' | 'idempotency_mismatch' | 'rate_limit_exceeded' | 'insufficient_quota' | 'too_many_attempts' | 'unavailable';
  /** A sentence for people. */
  readonly detail: string;
  /** The name of the policy that denies. */
  readonly policy: string | null;
  /** The report-only policy that would have denied the request. Null: none, the request is denied, or you lack `admin:policies`. */
  readonly would_deny: string | null;
  /** The report-only policy that would have allowed the request. Null: none, the request is allowed, or you lack `admin:policies`. */
  readonly would_allow: string | null;
  /** The steps, in order. The last one ended the decision. */
  readonly steps: readonly {
    /** The number of the step, 1 to 18. */
    readonly line: number;
    /** The name of the step. */
    readonly name: string;
    /** `not_evaluated`: an earlier step ended the decision. */
    readonly outcome: 'passed' | 'denied' | 'allowed' | 'not_evaluated';
    /** A sentence for people. */
    readonly detail: string;
    /** Of step 8, if it denies: why the credential proves no principal. `unknown` also if you may not manage its key or user. */
    readonly reason?: 'revoked' | 'disabled' | 'expired' | 'rotated' | 'checksum' | 'unknown' | 'owner_deactivated' | 'session_ended' | 'signature' | 'unknown_issuer' | 'issuer_disabled' | 'audience' | 'claims' | 'algorithm' | 'too_old' | 'not_yet_valid' | 'revoked_before' | 'ambiguous' | 'no_principal' | 'email_in_use';
    /** If step 8 denies: the id of the key. */
    readonly key_id?: string | null;
    /** If step 8 denies: the key's owner, or the user of the token. */
    readonly user_id?: string | null;
    /** If step 8 denies: the time since when the reason holds. */
    readonly time?: string | null;
  }[];
  /** The route of the request: method and path template. */
  readonly route: string | null;
  /** The permission that the request requires. */
  readonly permission: string | null;
  /** Globs of resources, `<kind>/<name>`. */
  readonly resources: readonly string[];
  /** The principal's roles and, for a key, its scopes, each with what it contributes. */
  readonly grants: readonly {
    /** `role` or `scopes`. */
    readonly kind: 'role' | 'owner_role' | 'scopes';
    /** The name of the role. */
    readonly name: string | null;
    /** Its permission patterns. */
    readonly permissions: readonly string[];
    readonly resource_constraints: ResourceConstraints;
    /** Whether it permits the request. */
    readonly outcome: 'covers' | 'no_permission' | 'no_resources';
  }[];
  /** The policies that were evaluated. */
  readonly policies: readonly {
    /** The name. */
    readonly name: string;
    /** `allow` or `deny`. */
    readonly effect: 'allow' | 'deny';
    /** Whether the policy belongs to the installation and applies to all tenants. */
    readonly global: boolean;
    /** `report`: the policy has no effect. */
    readonly mode: 'enforce' | 'report';
    /** Whether it matches the request. */
    readonly matched: boolean;
    /** Whether the policy is in force for the principal. */
    readonly applies: boolean;
    /** Permission patterns, `<resource>:<action>`, each part a name or `*`. */
    readonly actions: boolean;
    /** Globs of resources, `<kind>/<name>`. */
    readonly resources: boolean;
    /** The conditions of the policy, each with its result. */
    readonly conditions: readonly {
      /** The name of the condition. */
      readonly kind: string;
      /** How the value is compared. */
      readonly operator: string | null;
      /** The values that the request is compared with. */
      readonly operand: readonly string[];
      /** The value that the condition was compared with. Null if it is missing. */
      readonly value: string | null;
      /** The time zone of the value. */
      readonly timezone: string | null;
      /** Whether it matches the request. */
      readonly matched: boolean;
      /** Whether the request lacks the value that the condition compares. */
      readonly missing: boolean;
    }[];
  }[];
  /** The limits of steps 15 to 17; empty if an earlier step ended the decision. Nothing is counted. */
  readonly limits: readonly {
    /** The name of the limit. */
    readonly name: 'max_tokens_per_request' | 'rate_limit_rpm' | 'requests_per_minute' | 'tokens_per_minute' | 'parallel' | 'monthly_tokens' | 'max_collections';
    /** The limit itself. */
    readonly of: 'tenant' | 'user' | 'api_key';
    /** The globs of a limit by model. Absent: the limit is of all requests. */
    readonly models?: readonly string[];
    /** The step that checks it: 15, 16 or 17. */
    readonly line: number;
    /** `false`: the request does not count toward the limit. */
    readonly applies: boolean;
    /** Null: no limit. */
    readonly limit: number | null;
    /** The usage in the database. For a rate limit, the amount leased to all gates. */
    readonly used: number | null;
    /** For tokens and collections: the part of `remaining` that is set aside. */
    readonly reserved: number | null;
    /** `limit` minus `used`. */
    readonly remaining: number | null;
    /** When the limit begins again. */
    readonly resets_at: string | null;
    /** The amount that this request takes: one request, the tokens that it may spend, or one collection. In step 15, the largest limit that the request names. */
    readonly needed: number | null;
    /** Whether the limit rejects the request. */
    readonly exceeded: boolean;
  }[];
  /** The budgets of step 17 that count the request, by name; empty likewise. */
  readonly budgets: readonly ExplainedBudget[];
  /** The decision without the proposal. */
  readonly current: {
    /** `allow`, `deny` or `public`. */
    readonly decision: 'allow' | 'deny';
    /** The HTTP status that the request gets without the proposals. */
    readonly status: number;
    /** The error code, for programs. */
    readonly code: 'allow' | 'malformed_request' | 'malformed_path' | 'malformed_body' | 'invalid_tenant' | 'max_tokens_exceeded' | 'usage_required' | 'invalid_json' | 'invalid_parameter' | 'unsupported_grant_type' | 'invalid_subject_token' | 'invalid_scope' | 'invalid_target' | 'missing_credential' | 'invalid_credential' | 'token_expired' | 'no_route' | 'tenant_mismatch' | 'tenant_suspended' | 'denied_by_policy' | 'insufficient_permission' | 'resource_not_permitted' | 'escalation' | 'builtin_role' | 'reauthentication_required' | 'password_expired' | 'not_found' | 'method_not_allowed' | 'already_exists' | 'in_use' | 'revoked' | 'last_admin' | 'would_lock_out' | 'quota_exceeded' | 'idempotency_in_progress' | 'precondition_failed' | 'body_too_large' | 'unsupported_media_type' | 'invalid_field' | 'idempotency_mismatch' | 'rate_limit_exceeded' | 'insufficient_quota' | 'too_many_attempts' | 'unavailable';
    /** A sentence for people. */
    readonly detail: string;
    /** The name of the policy that denies. */
    readonly policy: string | null;
  };
};

export type SsoIssuers = {
  /** The rows of the page. */
  readonly data: readonly {
    /** The id. */
    readonly id: string;
    /** The text of the button. */
    readonly label: string;
  }[];
  /** The console hides the form for passwords. */
  readonly only: boolean;
};

export type Tenant = {
  /** The id of the tenant, which never changes. */
  readonly id: string;
  /** The name. */
  readonly name: string;
  /** `active` or `suspended`. */
  readonly status: 'active' | 'suspended';
  readonly settings: TenantSettings;
  readonly quotas: TenantQuotas;
  readonly metadata: Metadata;
  /** When the resource was created. */
  readonly created_at: string;
  /** When the resource was last updated. */
  readonly updated_at: string;
  readonly limits?: Limits;
  readonly activity?: TenantActivity;
};

export type TenantActivity = {
  /** The metered requests of the current month in the tenant's time zone. */
  readonly requests: number;
  /** The denied requests of the last 24 hours. */
  readonly denied: number;
};

export type TenantChanges = {
  /** The name. */
  readonly name?: string;
  /** The settings of the tenant. */
  readonly settings?: {
    /** The model of requests that name none. */
    readonly default_model?: string | null;
    /** The maximum number of tokens that one request may ask for. */
    readonly max_tokens_per_request?: number | null;
    /** Requests in a minute; null for no limit. */
    readonly rate_limit_rpm?: number | null;
    /** A name of the IANA time zone database. */
    readonly timezone?: string | null;
    /** Whether API keys may be created without an expiry. */
    readonly allow_keys_without_expiry?: boolean | null;
    /** Whether a stream of completions must ask for its usage (`stream_options.include_usage`). Without it, the server books an estimate. */
    readonly require_stream_usage?: boolean | null;
    /** Limits of requests by model; at most 32 rules. An update replaces all rules. Null or an empty list: none. */
    readonly rate_limits?: readonly RateLimitRule[] | null;
  } | null;
  /** The quotas of the tenant; an absent quota does not limit. */
  readonly quotas?: {
    /** The tokens that the tenant may spend in a month. */
    readonly monthly_tokens?: number | null;
    /** The maximum number of users of the tenant. */
    readonly max_users?: number | null;
    /** The maximum number of collections of the tenant. */
    readonly max_collections?: number | null;
  } | null;
  /** Pairs of text. Budgets can select keys by them. Nothing else in a decision reads them. An update replaces all pairs. Null or an empty object removes them. */
  readonly metadata?: Readonly<Record<string, string>> | null;
};

export type TenantList = {
  /** Always `list`. */
  readonly object: 'list';
  /** The rows of the page. */
  readonly data: readonly Tenant[];
  /** Whether another page follows. */
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** The number of rows of the whole list. Present with `count=true`, for up to 10,000 rows. */
  readonly total?: number;
  /** Present instead of `total` if the list has more rows than this. */
  readonly total_exceeds?: 10000;
};

/** If a limit is absent, there is none. 0 allows nothing. */
export type TenantQuotas = {
  /** The tokens that the tenant may spend in a month. */
  readonly monthly_tokens?: number;
  /** The maximum number of users of the tenant. */
  readonly max_users?: number;
  /** The maximum number of collections of the tenant. */
  readonly max_collections?: number;
};

/** If a limit is absent, there is none. 0 allows nothing. */
export type TenantSettings = {
  /** The model of requests that name none. */
  readonly default_model?: string;
  /** The maximum number of tokens that one request may ask for. */
  readonly max_tokens_per_request?: number;
  /** Requests in a minute; null for no limit. */
  readonly rate_limit_rpm?: number;
  /** The time zone of the tenant, such as `Europe/Berlin`. */
  readonly timezone?: string;
  /** Whether API keys may be created without an expiry. */
  readonly allow_keys_without_expiry?: boolean;
  /** Whether a stream of completions must ask for its usage (`stream_options.include_usage`). Without it, the server books an estimate. */
  readonly require_stream_usage?: boolean;
  /** Limits of requests by model; at most 32 rules. An update replaces all rules. Null or an empty list: none. */
  readonly rate_limits?: readonly RateLimitRule[];
};

export type TokenExchange = {
  /** Must be `urn:ietf:params:oauth:grant-type:token-exchange`. */
  readonly grant_type: string;
  /** The token of another issuer. */
  readonly subject_token: string;
  /** Must be `urn:ietf:params:oauth:token-type:access_token` or `urn:ietf:params:oauth:token-type:jwt`. */
  readonly subject_token_type: string;
  /** Permission patterns, separated by spaces. The access token has only the permissions that they and the principal both have. Default: all of the principal. At most 2048 characters. */
  readonly scope?: string;
  /** Must be `urn:ietf:params:oauth:token-type:access_token`, which is the default. */
  readonly requested_token_type?: string;
  /** The audience of this installation, which is the default. */
  readonly audience?: string;
  /** The same as `audience`. */
  readonly resource?: string;
  /** Not supported: a request with it is rejected. */
  readonly actor_token?: string;
};

export type TokenPair = {
  /** A JWT. */
  readonly access_token: string;
  /** Always `Bearer`. */
  readonly token_type: 'Bearer';
  /** Seconds. */
  readonly expires_in: number;
  /** Absent if the refresh token is sent as a cookie. */
  readonly refresh_token?: string;
};

export type Trial = {
  /** The beginning of the period. */
  readonly from: string;
  /** The end of the period. */
  readonly to: string;
  /** `*` for all tenants together, and for requests without a known principal. */
  readonly tenant_id: string;
  readonly total: DecisionTotals;
  /** The decisions that are recorded. All following numbers count these. */
  readonly recorded: {
    /** The number of allowed requests. */
    readonly allow: number;
    /** The number of denied requests. */
    readonly deny: number;
  };
  /** Allows and denials of `total` beyond the bounds of the record. Above 0, the record is a sample. */
  readonly not_recorded: number;
  /** How often the two gates decided a request differently. */
  readonly differences: {
    /** Requests that this server would have denied and the other gate allowed. */
    readonly denied_here: number;
    /** Requests that this server would have allowed and the other gate denied. */
    readonly denied_there: number;
  };
  /** The time of the last report of the access log that names the other gate's denials, to the minute. Null: none has ever come, so the other gate's outcome is not known. */
  readonly other_gate_reported_at: string | null;
  /** The requests that this server would have denied, by reason. The largest number first. */
  readonly denied_by_code: readonly {
    /** The error code, for programs. */
    readonly code: string;
    /** The policy that would have denied. */
    readonly policy: string | null;
    /** The number of requests. */
    readonly count: number;
    /** Those that the other gate is known to have decided otherwise. */
    readonly differing: number;
  }[];
  /** The same by principal, at most 50. Null: no principal was known. */
  readonly denied_by_principal: readonly {
    /** The principal that sent the request. */
    readonly principal: {
      /** `user` or `api_key`. */
      readonly type: 'user' | 'api_key';
      /** The id of the user or key. */
      readonly id: string;
      /** With `include=names`: its current name. Null: there is none, or the caller may not read it. */
      readonly name?: string | null;
    } | null;
    /** The number of requests. */
    readonly count: number;
    /** Those that the other gate is known to have decided otherwise. */
    readonly differing: number;
  }[];
};

export type Usage = {
  /** Null if the request has `from`. */
  readonly period: string | null;
  /** The first day. */
  readonly from: string;
  /** The last day, which is included. */
  readonly to: string;
  /** The time zone of the days. */
  readonly timezone: string;
  /** `*` for all tenants together. */
  readonly tenant_id: string;
  readonly total: UsageSums;
  /** One row for each model, key, user, day or tenant with usage, in order. Empty without `group_by`. */
  readonly data: readonly UsageRow[];
  /** Whether another page follows. */
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
};

export type UsageCorrection = {
  /** The number of items. */
  readonly collections?: number;
  /** Tokens spent in the current period. */
  readonly monthly_tokens_used?: number;
};

export type UsageEvent = {
  /** An id that the client chooses. An event with the id of an earlier event is not counted again. */
  readonly id: string;
  /** The model. */
  readonly model: string;
  /** The id of the API key. */
  readonly key_id?: string | null;
  /** The id of the user that owns the key; null if the tenant owns it. */
  readonly user_id?: string | null;
  /** The time of the usage, within the last 35 days. */
  readonly time: string;
  /** Tokens of the requests. */
  readonly prompt_tokens: number;
  /** Tokens of the responses. */
  readonly completion_tokens: number;
  /** The part of the prompt tokens that the upstream read from its cache. */
  readonly cached_tokens?: number;
  /** The part of the prompt tokens that the upstream wrote to its cache. It counts in the cost only. */
  readonly cache_write_tokens?: number;
  /** Default: the sum of prompt and completion tokens. */
  readonly total_tokens?: number;
  /** The number of requests that the event counts. Default: 1. */
  readonly requests?: number;
};

export type UsageEvents = {
  /** The id of the tenant. */
  readonly tenant_id?: string;
  /** Usage events, each counted once by its id. */
  readonly events: readonly UsageEvent[];
};

export type UsageEventsResult = {
  /** The number of events that were accepted. */
  readonly accepted: number;
  /** Events that an earlier event of this or another batch already reported. */
  readonly duplicates: number;
};

export type UsageRow = {
  /** Grouped by model. null: the request named none, or failed. */
  readonly model?: string | null;
  /** Grouped by key: its id. null: without a key. */
  readonly key?: string | null;
  /** Grouped by user: its id, of a key its owner. null: a key of its tenant. */
  readonly user?: string | null;
  /** The day, in the tenant's time zone. */
  readonly day?: string;
  /** Grouped by tenant: its id. */
  readonly tenant?: string;
  /** With `include=names`, grouped by key, user or tenant: its name. null: there is none, or the caller may not read it. */
  readonly name?: string | null;
  /** The number of requests. */
  readonly requests: number;
  /** Tokens of the requests. */
  readonly prompt_tokens: number;
  /** Tokens of the responses. */
  readonly completion_tokens: number;
  /** The part of the prompt tokens that the upstream read from its cache. */
  readonly cached_tokens: number;
  /** Tokens of requests and responses. */
  readonly total_tokens: number;
  /** The part of the total that was estimated and not reported by the upstream. */
  readonly estimated_tokens: number;
  /** In `prices.currency`, by the prices when the requests were admitted. Requests without a price cost nothing. */
  readonly cost: string;
  /** Requests that named a model without a price. Absent with `key_id`, and in the rows of keys and users, for which the server does not count them. */
  readonly unpriced_requests?: number;
};

export type UsageSums = {
  /** The number of requests. */
  readonly requests: number;
  /** Tokens of the requests. */
  readonly prompt_tokens: number;
  /** Tokens of the responses. */
  readonly completion_tokens: number;
  /** The part of the prompt tokens that the upstream read from its cache. */
  readonly cached_tokens: number;
  /** Tokens of requests and responses. */
  readonly total_tokens: number;
  /** The part of the total that was estimated and not reported by the upstream. */
  readonly estimated_tokens: number;
  /** In `prices.currency`, by the prices when the requests were admitted. Requests without a price cost nothing. */
  readonly cost: string;
  /** Requests that named a model without a price. Absent with `key_id`, and in the rows of keys and users, for which the server does not count them. */
  readonly unpriced_requests?: number;
};

export type User = {
  /** The id. */
  readonly id: string;
  /** Null for users whose directory has no email address for them. */
  readonly email: string | null;
  /** The user's name. */
  readonly name: string;
  /** The user's department. */
  readonly department: string | null;
  readonly metadata: Metadata;
  /** Limits of requests by model; at most 32 rules. An update replaces all rules. Null or an empty list: none. */
  readonly rate_limits: readonly RateLimitRule[] | null;
  /** Assigned through the API. */
  readonly roles: readonly string[];
  /** Assigned by the directory. Read-only. */
  readonly directory_roles: readonly string[];
  /** Given by the mappings of issuers. Read-only. */
  readonly issuer_roles: readonly string[];
  /** The subjects of issuers whose tokens act as the user. */
  readonly identities: readonly {
    /** The name of an issuer of the tenant. */
    readonly issuer: string;
    /** The value of the claim that identifies a user of the issuer. */
    readonly subject: string;
  }[];
  /** The id of the tenant. */
  readonly tenant_id: string;
  /** `active` or `deactivated`. */
  readonly status: 'active' | 'deactivated';
  /** `ldap`: a user of a directory, which provides its email address, name and password. `issuer:<name>`: created by a token of the issuer with that name. Such a user has no password. */
  readonly source: string;
  /** Only of users of a directory: what it said last of the user, whose keys and sessions are rejected unless it is `active`. Read-only. */
  readonly directory_status?: 'active' | 'removed' | 'disabled' | 'expired' | 'tenant_changed' | 'several_names' | 'several_ids';
  /** Only of users of a directory: the address that it shows, if another user has it. `email` is null then. Read-only. */
  readonly email_conflict?: string | null;
  /** The time of the last login that created a session. Null if there was none. Read-only. */
  readonly last_login_at: string | null;
  /** The time until which failed logins lock the account. Null if the account is not locked. Read-only. */
  readonly locked_until: string | null;
  /** When the resource was created. */
  readonly created_at: string;
  /** When the resource was last updated. */
  readonly updated_at: string;
};

export type UserChanges = {
  /** The user's email address. */
  readonly email?: string;
  /** The user's name. */
  readonly name?: string;
  /** The user's department. */
  readonly department?: string | null;
  /** Pairs of text. Budgets can select keys by them. Nothing else in a decision reads them. An update replaces all pairs. Null or an empty object removes them. */
  readonly metadata?: Readonly<Record<string, string>> | null;
  /** Limits of requests by model; at most 32 rules. An update replaces all rules. Null or an empty list: none. */
  readonly rate_limits?: readonly RateLimitRule[] | null;
  /** The names of the roles. */
  readonly roles?: readonly string[];
  /** Replaces all identities of the user. */
  readonly identities?: readonly {
    /** The name of an issuer of the tenant. */
    readonly issuer: string;
    /** The value of the claim that identifies a user of the issuer. */
    readonly subject: string;
  }[];
  /** The caller's current password. Required for a new email address or identity of the caller. */
  readonly current_password?: string;
};

export type UserChangesReport = {
  /** Whether nothing was changed. */
  readonly dry_run: boolean;
  /** The number of users that were changed, or that would be changed in a dry run. */
  readonly changed: number;
  /** The filter matched more users than one request takes. Send it again for the rest. */
  readonly has_more: boolean;
  /** The rows of the page. */
  readonly data: readonly {
    /** The id. */
    readonly id: string;
    /** The outcome. */
    readonly outcome: 'changed' | 'would_change' | 'unchanged' | 'not_found' | 'rejected';
    /** The error code, for programs. */
    readonly code?: 'malformed_request' | 'malformed_path' | 'malformed_body' | 'invalid_tenant' | 'max_tokens_exceeded' | 'usage_required' | 'invalid_json' | 'invalid_parameter' | 'unsupported_grant_type' | 'invalid_subject_token' | 'invalid_scope' | 'invalid_target' | 'missing_credential' | 'invalid_credential' | 'token_expired' | 'no_route' | 'tenant_mismatch' | 'tenant_suspended' | 'denied_by_policy' | 'insufficient_permission' | 'resource_not_permitted' | 'escalation' | 'builtin_role' | 'reauthentication_required' | 'password_expired' | 'not_found' | 'method_not_allowed' | 'already_exists' | 'in_use' | 'revoked' | 'last_admin' | 'would_lock_out' | 'quota_exceeded' | 'idempotency_in_progress' | 'precondition_failed' | 'body_too_large' | 'unsupported_media_type' | 'invalid_field' | 'idempotency_mismatch' | 'rate_limit_exceeded' | 'insufficient_quota' | 'too_many_attempts' | 'unavailable';
    /** A sentence for people. */
    readonly detail?: string;
    /** Identifies the user to a person. */
    readonly user?: {
      /** The name. */
      readonly name: string;
      /** The user's email address. */
      readonly email: string | null;
    };
  }[];
};

export type UserList = {
  /** Always `list`. */
  readonly object: 'list';
  /** The rows of the page. */
  readonly data: readonly User[];
  /** Whether another page follows. */
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** The number of rows of the whole list. Present with `count=true`, for up to 10,000 rows. */
  readonly total?: number;
  /** Present instead of `total` if the list has more rows than this. */
  readonly total_exceeds?: 10000;
};

export type UsersToChange = {
  /** The action, such as `role.update`. */
  readonly action: 'deactivate' | 'add_role' | 'remove_role';
  /** The role to add or to remove. Not for `deactivate`. */
  readonly role?: string;
  /** The ids of the users. Either `ids` or `filter`. */
  readonly ids?: readonly string[];
  /** Users that match all members, except the caller. An empty object matches every user of the tenant. */
  readonly filter?: {
    /** Users that hold the role. */
    readonly role?: string;
    /** The state of the resource. */
    readonly status?: 'active' | 'deactivated';
    /** The user's email address. */
    readonly email?: string;
    /** Any part of the name, email address or department, in any case. */
    readonly q?: string;
    /** `true`: users whose account is locked by failed logins now. */
    readonly locked?: true;
    /** Users of directories whose directory last reported this. */
    readonly directory_status?: 'active' | 'removed' | 'disabled' | 'expired' | 'tenant_changed' | 'several_names' | 'several_ids';
    /** `true`: users of a directory whose address another user has. */
    readonly email_conflict?: true;
  };
};

export type Webhook = {
  /** The id. */
  readonly id: string;
  /** The id of the tenant. */
  readonly tenant_id: string;
  /** The address that events are sent to. */
  readonly url: string;
  /** The events that are sent, by name or by group. */
  readonly events: readonly string[];
  /** A text for the console and for lists. Null: none. */
  readonly description: string | null;
  /** Whether events are sent to it. Default: true. */
  readonly enabled: boolean;
  /** Why the server disabled the webhook. Null: it did not. */
  readonly disabled_reason: string | null;
  /** The former secret signs as well until this time. Null: there is none. */
  readonly previous_until: string | null;
  /** Events that were left out because 10,000 deliveries waited. */
  readonly dropped: number;
  /** When the resource was created. */
  readonly created_at: string;
  /** When the resource was last updated. */
  readonly updated_at: string;
};

export type WebhookChanges = {
  /** An https address on the public internet, or a host that `webhooks.allowed-hosts` names. */
  readonly url?: string;
  /** Events, groups such as `budget.*`, or `*`. Events: - `budget.threshold`: A budget has reached one of its alerts. - `budget.reset`: A budget was reset. - `quota.threshold`: The tenant has used 80 % or all of its monthly tokens. - `key.expiring`: An API key expires in 14 days, 7 days or 1 day. - `key.expired`: An API key has expired. - `key.revoked`: An API key was revoked. - `login.locked`: Failed logins have locked the account of a user, for all addresses or for one. - `session.reuse_detected`: A refresh token was used twice. Its session has ended. - `issuer.keys_stale`: The keys of an issuer are too old to be used. Its tokens are answered 503. - `audit.chain_broken`: The chain of the audit log is broken. Only webhooks of the first tenant receive it. - `audit.<action>`: any other row of the tenant's audit log, for example `audit.role.update`. It needs `audit:read` as well. */
  readonly events?: readonly string[];
  /** A text for the console and for lists. Null: none. */
  readonly description?: string | null;
  /** Whether events are sent to it. Default: true. */
  readonly enabled?: boolean;
};

export type WebhookDelivery = {
  /** The same in every attempt: the header `webhook-id`. */
  readonly id: string;
  /** The webhook that receives the event. */
  readonly webhook_id: string;
  /** The name of the event. */
  readonly type: string;
  /** `waiting` for its first or next attempt, `delivered` or `failed`. */
  readonly state: 'waiting' | 'delivered' | 'failed';
  /** Attempts since the delivery was made or replayed. */
  readonly attempts: number;
  /** When the resource was created. */
  readonly created_at: string;
  /** When the last attempt began; null before the first. */
  readonly attempted_at: string | null;
  /** Null: no further attempt is due. */
  readonly next_attempt_at: string | null;
  /** The status of the last answer. Null: there was none. */
  readonly status: number | null;
  /** The first 1 KiB of the last answer. */
  readonly answer: string | null;
  /** Why the last attempt failed. */
  readonly error: string | null;
};

export type WebhookDeliveryList = {
  /** Always `list`. */
  readonly object: 'list';
  /** The rows of the page. */
  readonly data: readonly WebhookDelivery[];
  /** Whether another page follows. */
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** The number of rows of the whole list. Present with `count=true`, for up to 10,000 rows. */
  readonly total?: number;
  /** Present instead of `total` if the list has more rows than this. */
  readonly total_exceeds?: 10000;
};

export type WebhookList = {
  /** Always `list`. */
  readonly object: 'list';
  /** The rows of the page. */
  readonly data: readonly Webhook[];
  /** Whether another page follows. */
  readonly has_more: boolean;
  /** The `cursor` of the next page; null on the last. */
  readonly next_cursor: string | null;
  /** The number of rows of the whole list. Present with `count=true`, for up to 10,000 rows. */
  readonly total?: number;
  /** Present instead of `total` if the list has more rows than this. */
  readonly total_exceeds?: 10000;
};

export type WebhookWithSecret = {
  /** The id. */
  readonly id: string;
  /** The id of the tenant. */
  readonly tenant_id: string;
  /** The address that events are sent to. */
  readonly url: string;
  /** The events that are sent, by name or by group. */
  readonly events: readonly string[];
  /** A text for the console and for lists. Null: none. */
  readonly description: string | null;
  /** Whether events are sent to it. Default: true. */
  readonly enabled: boolean;
  /** Why the server disabled the webhook. Null: it did not. */
  readonly disabled_reason: string | null;
  /** The former secret signs as well until this time. Null: there is none. */
  readonly previous_until: string | null;
  /** Events that were left out because 10,000 deliveries waited. */
  readonly dropped: number;
  /** When the resource was created. */
  readonly created_at: string;
  /** When the resource was last updated. */
  readonly updated_at: string;
  /** The key of the signatures, `whsec_…`. Only this response contains it. */
  readonly secret?: string;
  /** Present instead of the secret if the server repeats a response. */
  readonly secret_available?: false;
};

export type WhoCan = {
  /** The permission that the request requires. */
  readonly permission: string | null;
  /** The resource of the permission. */
  readonly resource: string | null;
  /** The id of the tenant. */
  readonly tenant_id: string;
  /** The users. */
  readonly users: readonly {
    /** `user` or `api_key`. */
    readonly type: 'user';
    /** The id. */
    readonly id: string;
    /** The user's email address. */
    readonly email: string | null;
    /** The name. */
    readonly name: string;
    /** The id of the tenant. */
    readonly tenant_id: string;
    /** Whether the principal administers the whole installation. */
    readonly platform_admin: boolean;
    /** Roles that values of claims give. */
    readonly roles: readonly string[];
    /** `conditional`: the result depends on the conditions of the policies in `conditions`. */
    readonly verdict: 'allow' | 'conditional';
    /** The rule that gives it: the first role or policy in `why`, or `scopes` for a key of the tenant. */
    readonly by: string;
    /** The permissions of the question that it has, at least under conditions. */
    readonly permissions: readonly string[];
    /** The source of the permission. */
    readonly why: readonly {
      /** `role`, `scopes` or `policy`. */
      readonly kind: 'role' | 'owner_role' | 'scopes' | 'policy';
      /** The name of the role or policy. */
      readonly name: string | null;
      /** The grant covers only some resources. */
      readonly constrained: boolean;
      /** A policy that allows under conditions. */
      readonly conditional: boolean;
    }[];
    /** Names of policies. `policies` has the policies. */
    readonly conditions: readonly string[];
  }[];
  /** The API keys. */
  readonly keys: readonly {
    /** `user` or `api_key`. */
    readonly type: 'api_key';
    /** The id. */
    readonly id: string;
    /** A message for people. */
    readonly description: string;
    /** Null if the tenant owns the key. */
    readonly user_id: string | null;
    /** When the key expires; null if it does not. */
    readonly expires_at: string | null;
    /** `conditional`: the result depends on the conditions of the policies in `conditions`. */
    readonly verdict: 'allow' | 'conditional';
    /** The rule that gives it: the first role or policy in `why`, or `scopes` for a key of the tenant. */
    readonly by: string;
    /** The permissions of the question that it has, at least under conditions. */
    readonly permissions: readonly string[];
    /** The source of the permission. */
    readonly why: readonly {
      /** `role`, `scopes` or `policy`. */
      readonly kind: 'role' | 'owner_role' | 'scopes' | 'policy';
      /** The name of the role or policy. */
      readonly name: string | null;
      /** The grant covers only some resources. */
      readonly constrained: boolean;
      /** A policy that allows under conditions. */
      readonly conditional: boolean;
    }[];
    /** Names of policies. `policies` has the policies. */
    readonly conditions: readonly string[];
  }[];
  /** GET only. The roles that give the access to a user without other roles. */
  readonly roles?: readonly {
    /** `user` or `api_key`. */
    readonly type: 'role';
    /** The name. */
    readonly name: string;
    /** Whether the role is built in and cannot be changed. */
    readonly builtin: boolean;
    /** `conditional`: the result depends on the conditions of the policies in `conditions`. */
    readonly verdict: 'allow' | 'conditional';
    /** The rule that gives it: the first role or policy in `why`, or `scopes` for a key of the tenant. */
    readonly by: string;
    /** The permissions of the question that it has, at least under conditions. */
    readonly permissions: readonly string[];
    /** The source of the permission. */
    readonly why: readonly {
      /** `role`, `scopes` or `policy`. */
      readonly kind: 'role' | 'owner_role' | 'scopes' | 'policy';
      /** The name of the role or policy. */
      readonly name: string | null;
      /** The grant covers only some resources. */
      readonly constrained: boolean;
      /** A policy that allows under conditions. */
      readonly conditional: boolean;
    }[];
    /** Names of policies. `policies` has the policies. */
    readonly conditions: readonly string[];
  }[];
  /** The policies that the rows of this page name. */
  readonly policies: readonly {
    /** The name. */
    readonly name: string;
    /** `allow` or `deny`. */
    readonly effect: 'allow' | 'deny';
    /** Whether the policy belongs to the installation and applies to all tenants. */
    readonly global: boolean;
    readonly conditions: PolicyConditions;
  }[];
  /** Whether platform administrators have the permission as well. */
  readonly platform_administrators: 'allow' | 'conditional' | 'deny';
  /** Whether another page follows. */
  readonly has_more: boolean;
  /** The `cursor` of the next page, which may be empty; null on the last. */
  readonly next_cursor: string | null;
};

export type WhoCanRequest = {
  /** One permission, <resource>:<action>, without wildcards. */
  readonly permission: string;
  /** <kind>/<name>; <kind>/ alone for one that the request does not name. Absent: a request without resources. */
  readonly resource?: string;
  /** The same as X-Tenant-ID. */
  readonly tenant_id?: string;
};

export interface Paths {
  readonly '/v1/auth/login': {
    /** Log in with email and password, or with a directory username. Returns an access token and a refresh token. */
    readonly POST: {
      readonly body: Login;
      readonly answers: {
        /** The tokens. */
        readonly '200': TokenPair;
      };
    };
  };
  readonly '/v1/auth/refresh': {
    /** Exchange a refresh token, from the body or the cookie, for a new pair of tokens. */
    readonly POST: {
      readonly body?: RefreshToken | undefined;
      readonly answers: {
        /** The next tokens. */
        readonly '200': TokenPair;
      };
    };
  };
  readonly '/v1/auth/token': {
    /** Exchange a token of another issuer for an access token (RFC 8693). */
    readonly POST: {
      readonly body?: TokenExchange | undefined;
      readonly answers: {
        /** The access token. */
        readonly '200': ExchangedToken;
      };
    };
  };
  readonly '/v1/auth/logout': {
    /** End the session of a refresh token, or of the request's access token. */
    readonly POST: {
      readonly body?: Logout | undefined;
      readonly answers: {
        /** The session has ended here. The browser can also end the provider's session. */
        readonly '200': ProviderLogout;
        /** The session has ended. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/auth/me': {
    /** Get the principal of the request's credential. */
    readonly GET: {
      readonly answers: {
        /** The principal. */
        readonly '200': Me;
      };
    };
  };
  readonly '/v1/auth/password': {
    /** Change your own password. The caller's other sessions end. */
    readonly POST: {
      readonly body: PasswordChange;
      readonly answers: {
        /** Done. The response has no body. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/auth/password/reset': {
    /** Set a password with a one-time token. All sessions of the user end. */
    readonly POST: {
      readonly body: NewPassword;
      readonly answers: {
        /** Done. The response has no body. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/auth/sessions': {
    /** List your own active sessions, newest first. */
    readonly GET: {
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
      } | undefined;
      readonly answers: {
        /** One page of sessions. */
        readonly '200': SessionList;
      };
    };
    /** End all of your own sessions except the current one. With `current=true`, end the current one as well. */
    readonly DELETE: {
      readonly query?: {
        /** `true`: the current session ends as well. */
        readonly current?: boolean | undefined;
      } | undefined;
      readonly answers: {
        /** Done. The response has no body. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/auth/sessions/{id}': {
    /** Get one of your own active sessions. */
    readonly GET: {
      readonly path: {
        /** The id of the session. */
        readonly id: string;
      };
      readonly answers: {
        /** The session. */
        readonly '200': Session;
      };
    };
    /** End one of your own sessions. Its tokens are no longer valid. */
    readonly DELETE: {
      readonly path: {
        /** The id of the session. */
        readonly id: string;
      };
      readonly answers: {
        /** Done. The response has no body. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/auth/sso': {
    /** List the issuers by which users log in to the console, by label: at most 100. */
    readonly GET: {
      readonly query?: {
        /** Only the issuers of this tenant. */
        readonly tenant?: string | undefined;
      } | undefined;
      readonly answers: {
        /** The issuers. */
        readonly '200': SsoIssuers;
      };
    };
  };
  readonly '/v1/iam/users': {
    /** List users. */
    readonly GET: {
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
        /** The same as X-Tenant-ID. Platform administrators may send * for all tenants. */
        readonly tenant_id?: string | undefined;
        /** The order of the rows; `-` sorts downwards. Rows without a value come last in both directions. Default: `-created_at`. */
        readonly sort?: 'created_at' | '-created_at' | 'last_login_at' | '-last_login_at' | 'name' | '-name' | undefined;
        /** Users that hold the role. */
        readonly role?: string | undefined;
        /** Only resources in this state. */
        readonly status?: 'active' | 'deactivated' | undefined;
        /** Only the user with this email address. */
        readonly email?: string | undefined;
        /** Any part of the name, email address or department, in any case. */
        readonly q?: string | undefined;
        /** `true`: users whose account is locked by failed logins now. */
        readonly locked?: true | undefined;
        /** Users of directories whose directory last reported this. */
        readonly directory_status?: 'active' | 'removed' | 'disabled' | 'expired' | 'tenant_changed' | 'several_names' | 'several_ids' | undefined;
        /** `true`: users of a directory whose address another user has. */
        readonly email_conflict?: true | undefined;
      } | undefined;
      readonly answers: {
        /** One page of users. */
        readonly '200': UserList;
      };
    };
    /** Create a user. */
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
        /** The id of the user. */
        readonly id: string;
      };
      readonly answers: {
        /** The user. */
        readonly '200': User;
      };
    };
    /** Update a user: the members that are present. */
    readonly PUT: {
      readonly path: {
        /** The id of the user. */
        readonly id: string;
      };
      readonly body?: UserChanges | undefined;
      readonly answers: {
        /** The updated user. */
        readonly '200': User;
      };
    };
    /** Update a user: the members that are present. */
    readonly PATCH: {
      readonly path: {
        /** The id of the user. */
        readonly id: string;
      };
      readonly body?: UserChanges | undefined;
      readonly answers: {
        /** The updated user. */
        readonly '200': User;
      };
    };
    /** Delete a user. Its keys are revoked, and its email address can be used again. */
    readonly DELETE: {
      readonly path: {
        /** The id of the user. */
        readonly id: string;
      };
      readonly answers: {
        /** Done. The response has no body. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/iam/users/{id}/deactivate': {
    /** Deactivate a user. Its sessions end, and its keys stop working until it is activated. */
    readonly POST: {
      readonly path: {
        /** The id of the user. */
        readonly id: string;
      };
      readonly answers: {
        /** The updated user. */
        readonly '200': User;
      };
    };
  };
  readonly '/v1/iam/users/{id}/activate': {
    /** Activate a user. Its keys work again. */
    readonly POST: {
      readonly path: {
        /** The id of the user. */
        readonly id: string;
      };
      readonly answers: {
        /** The updated user. */
        readonly '200': User;
      };
    };
  };
  readonly '/v1/iam/users/change': {
    /** Deactivate up to 500 users, or add or remove one of their roles, by id or by a filter. */
    readonly POST: {
      readonly query?: {
        /** `true`: the server changes nothing, and reports what it would change. */
        readonly dry_run?: boolean | undefined;
      } | undefined;
      readonly body: UsersToChange;
      readonly answers: {
        /** The outcome of each user, or with `dry_run` the outcome that it would have. */
        readonly '200': UserChangesReport;
      };
    };
  };
  readonly '/v1/iam/users/{id}/unlock': {
    /** Unlock a user. The failed logins of the account no longer count. */
    readonly POST: {
      readonly path: {
        /** The id of the user. */
        readonly id: string;
      };
      readonly answers: {
        /** The updated user. */
        readonly '200': User;
      };
    };
  };
  readonly '/v1/iam/users/{id}/password-reset': {
    /** Create a one-time token that sets a new password for the user. */
    readonly POST: {
      readonly path: {
        /** The id of the user. */
        readonly id: string;
      };
      readonly body?: PasswordResetRequest | undefined;
      readonly answers: {
        /** The one-time token. */
        readonly '200': PasswordReset;
      };
    };
  };
  readonly '/v1/iam/users/{id}/sessions': {
    /** List the active sessions of a user, newest first. */
    readonly GET: {
      readonly path: {
        /** The id of the user. */
        readonly id: string;
      };
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
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
        /** The id of the user. */
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
        /** The id of the user. */
        readonly id: string;
        /** The id of the session. */
        readonly session: string;
      };
      readonly answers: {
        /** The session. */
        readonly '200': Session;
      };
    };
    /** End one session of a user. Its tokens are no longer valid. */
    readonly DELETE: {
      readonly path: {
        /** The id of the user. */
        readonly id: string;
        /** The id of the session. */
        readonly session: string;
      };
      readonly answers: {
        /** Done. The response has no body. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/iam/roles': {
    /** List roles, including the built-in roles. */
    readonly GET: {
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
        /** The same as X-Tenant-ID. Platform administrators may send * for all tenants. */
        readonly tenant_id?: string | undefined;
        /** Any part of the name or description, in any case. */
        readonly q?: string | undefined;
        /** `true`: only those with a notice. With `tenant_id=*`, rules of other tenants than the caller's own have no notice `duplicate`, `shadowed` or `no_effect`. */
        readonly notices?: true | undefined;
        /** `true`: only built-in roles. `false`: only custom roles. */
        readonly builtin?: boolean | undefined;
      } | undefined;
      readonly answers: {
        /** One page of roles. */
        readonly '200': RoleList;
      };
    };
    /** Create a role. */
    readonly POST: {
      readonly query?: {
        /** Rejects patterns that no route and no endpoint needs (422). Default: false. */
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
        /** The name of the role. */
        readonly name: string;
      };
      readonly answers: {
        /** The role. */
        readonly '200': Role;
      };
    };
    /** Update a role: the members that are present. */
    readonly PUT: {
      readonly path: {
        /** The name of the role. */
        readonly name: string;
      };
      readonly query?: {
        /** Rejects patterns that no route and no endpoint needs (422). Default: false. */
        readonly strict?: boolean | undefined;
      } | undefined;
      readonly body?: RoleChanges | undefined;
      readonly answers: {
        /** The updated role. */
        readonly '200': Role;
      };
    };
    /** Update a role: the members that are present. */
    readonly PATCH: {
      readonly path: {
        /** The name of the role. */
        readonly name: string;
      };
      readonly query?: {
        /** Rejects patterns that no route and no endpoint needs (422). Default: false. */
        readonly strict?: boolean | undefined;
      } | undefined;
      readonly body?: RoleChanges | undefined;
      readonly answers: {
        /** The updated role. */
        readonly '200': Role;
      };
    };
    /** Delete a role. With `force=true`, users, policies and mappings of issuers that have the role lose it. */
    readonly DELETE: {
      readonly path: {
        /** The name of the role. */
        readonly name: string;
      };
      readonly query?: {
        /** `true` makes the change even if it locks out its author. */
        readonly force?: boolean | undefined;
      } | undefined;
      readonly answers: {
        /** Done. The response has no body. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/iam/roles/{name}/policies': {
    /** List the policies attached to a role. */
    readonly GET: {
      readonly path: {
        /** The name of the role. */
        readonly name: string;
      };
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
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
        /** The name of the role. */
        readonly name: string;
        /** The name of the policy. */
        readonly policy: string;
      };
      readonly query?: {
        /** `true` makes the change even if it locks out its author. */
        readonly force?: boolean | undefined;
      } | undefined;
      readonly answers: {
        /** Done. The response has no body. */
        readonly '204': undefined;
      };
    };
    /** Detach a policy from a role. */
    readonly DELETE: {
      readonly path: {
        /** The name of the role. */
        readonly name: string;
        /** The name of the policy. */
        readonly policy: string;
      };
      readonly answers: {
        /** Done. The response has no body. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/iam/policies': {
    /** List policies, including the global policies. */
    readonly GET: {
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
        /** The same as X-Tenant-ID. Platform administrators may send * for all tenants. */
        readonly tenant_id?: string | undefined;
        /** Any part of the name or description, in any case. */
        readonly q?: string | undefined;
        /** Only policies with this effect. */
        readonly effect?: 'allow' | 'deny' | undefined;
        /** Only policies of this mode. */
        readonly mode?: 'enforce' | 'report' | undefined;
        /** Only policies that are, or are not, enabled. */
        readonly enabled?: boolean | undefined;
        /** Only policies with this `applies_to`. */
        readonly applies_to?: 'everyone' | 'roles' | undefined;
        /** A role that the policy is attached to. */
        readonly role?: string | undefined;
        /** `true`: only global policies. `false`: only the tenant's policies. */
        readonly global?: boolean | undefined;
        /** `true`: only those with a notice. With `tenant_id=*`, rules of other tenants than the caller's own have no notice `duplicate`, `shadowed` or `no_effect`. */
        readonly notices?: true | undefined;
      } | undefined;
      readonly answers: {
        /** One page of policies. */
        readonly '200': PolicyList;
      };
    };
    /** Create a policy. */
    readonly POST: {
      readonly query?: {
        /** `true` makes the change even if it locks out its author. */
        readonly force?: boolean | undefined;
        /** Rejects patterns that no route and no endpoint needs (422). Default: false. */
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
        /** The name of the policy. */
        readonly name: string;
      };
      readonly answers: {
        /** The policy. */
        readonly '200': Policy;
      };
    };
    /** Update a policy: the members that are present. */
    readonly PUT: {
      readonly path: {
        /** The name of the policy. */
        readonly name: string;
      };
      readonly query?: {
        /** `true` makes the change even if it locks out its author. */
        readonly force?: boolean | undefined;
        /** Rejects patterns that no route and no endpoint needs (422). Default: false. */
        readonly strict?: boolean | undefined;
      } | undefined;
      readonly body?: PolicyChanges | undefined;
      readonly answers: {
        /** The updated policy. */
        readonly '200': Policy;
      };
    };
    /** Update a policy: the members that are present. */
    readonly PATCH: {
      readonly path: {
        /** The name of the policy. */
        readonly name: string;
      };
      readonly query?: {
        /** `true` makes the change even if it locks out its author. */
        readonly force?: boolean | undefined;
        /** Rejects patterns that no route and no endpoint needs (422). Default: false. */
        readonly strict?: boolean | undefined;
      } | undefined;
      readonly body?: PolicyChanges | undefined;
      readonly answers: {
        /** The updated policy. */
        readonly '200': Policy;
      };
    };
    /** Delete a policy. */
    readonly DELETE: {
      readonly path: {
        /** The name of the policy. */
        readonly name: string;
      };
      readonly answers: {
        /** Done. The response has no body. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/iam/tenants': {
    /** List tenants. */
    readonly GET: {
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
        /** Any part of the name or id, in any case. */
        readonly q?: string | undefined;
        /** Only resources in this state. */
        readonly status?: 'active' | 'suspended' | undefined;
        /** `true`: tenants that have spent 80 % of the month's tokens, or that run out of them before the reset at the month's pace. */
        readonly near_limit?: true | undefined;
        /** The order of the rows; `-` sorts downwards. Rows without a value come last in both directions. Default: `id`. */
        readonly sort?: 'id' | '-id' | 'tokens' | '-tokens' | 'requests' | '-requests' | 'denied' | '-denied' | 'share' | '-share' | undefined;
        /** `limits`: each tenant also has its `limits` and its `activity`. */
        readonly include?: 'limits' | undefined;
      } | undefined;
      readonly answers: {
        /** One page of tenants. */
        readonly '200': TenantList;
      };
    };
    /** Create a tenant. */
    readonly POST: {
      readonly body: NewTenant;
      readonly answers: {
        /** The tenant. */
        readonly '201': Tenant;
      };
    };
  };
  readonly '/v1/iam/tenants/{id}': {
    /** Get a tenant. Platform administrators may get any tenant, other callers their own. */
    readonly GET: {
      readonly path: {
        /** The id of the tenant. */
        readonly id: string;
      };
      readonly answers: {
        /** The tenant. */
        readonly '200': Tenant;
      };
    };
    /** Update a tenant: the members that are present. `settings` and `quotas` are merged, and null removes a member. */
    readonly PUT: {
      readonly path: {
        /** The id of the tenant. */
        readonly id: string;
      };
      readonly body?: TenantChanges | undefined;
      readonly answers: {
        /** The updated tenant. */
        readonly '200': Tenant;
      };
    };
    /** Update a tenant: the members that are present. `settings` and `quotas` are merged, and null removes a member. */
    readonly PATCH: {
      readonly path: {
        /** The id of the tenant. */
        readonly id: string;
      };
      readonly body?: TenantChanges | undefined;
      readonly answers: {
        /** The updated tenant. */
        readonly '200': Tenant;
      };
    };
    /** Delete a tenant that has no users and no active keys. Its id cannot be used again. */
    readonly DELETE: {
      readonly path: {
        /** The id of the tenant. */
        readonly id: string;
      };
      readonly answers: {
        /** Done. The response has no body. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/iam/tenants/{id}/suspend': {
    /** Suspend a tenant. The server denies its requests until it is activated. */
    readonly POST: {
      readonly path: {
        /** The id of the tenant. */
        readonly id: string;
      };
      readonly query?: {
        /** `true` makes the change even if it locks out its author. */
        readonly force?: boolean | undefined;
      } | undefined;
      readonly answers: {
        /** The updated tenant. */
        readonly '200': Tenant;
      };
    };
  };
  readonly '/v1/iam/tenants/{id}/activate': {
    /** Activate a tenant. */
    readonly POST: {
      readonly path: {
        /** The id of the tenant. */
        readonly id: string;
      };
      readonly answers: {
        /** The updated tenant. */
        readonly '200': Tenant;
      };
    };
  };
  readonly '/v1/iam/api-keys': {
    /** List API keys: the tenant's with `admin:keys`, otherwise your own. */
    readonly GET: {
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
        /** The same as X-Tenant-ID. Platform administrators may send * for all tenants. */
        readonly tenant_id?: string | undefined;
        /** The order of the rows; `-` sorts downwards. Rows without a value come last in both directions. Default: `-created_at`. */
        readonly sort?: 'created_at' | '-created_at' | 'last_used_at' | '-last_used_at' | 'expires_at' | '-expires_at' | 'name' | '-name' | undefined;
        /** `owner`: each key also has `owner`, with the name and email address of its user. Needs `admin:users`. */
        readonly include?: 'owner' | undefined;
        /** Only resources in this state. */
        readonly status?: 'active' | 'disabled' | 'expired' | 'revoked' | undefined;
        /** `true`: keys that are at least 30 days old and have a scope for a permission of the platform without a recorded use in the last 30 days. A hint: records of uses may be missing. */
        readonly wider_than_used?: true | undefined;
        /** Only keys of this user. */
        readonly user_id?: string | undefined;
        /** The id of the user or API key that created the key. */
        readonly created_by?: string | undefined;
        /** Only keys that expire before this time. */
        readonly expires_before?: string | undefined;
        /** `true`: keys that never expire. */
        readonly without_expiry?: true | undefined;
        /** Keys that are at least this many days old and were not used in that time. */
        readonly unused_days?: number | undefined;
        /** Keys that tokens of the issuer with this name prove. */
        readonly issuer?: string | undefined;
        /** The beginning of the shown `prefix`. Never send more of a key: addresses are logged on their way. */
        readonly prefix?: string | undefined;
        /** Any part of the name, description or metadata, in any case. With `admin:users` also of the owner's name and email address. */
        readonly q?: string | undefined;
      } | undefined;
      readonly answers: {
        /** One page of API keys. */
        readonly '200': ApiKeyList;
      };
    };
    /** Create an API key. Only this response contains its text. */
    readonly POST: {
      readonly query?: {
        /** Rejects patterns that no route and no endpoint needs (422). Default: false. */
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
        /** The id of the API key. */
        readonly id: string;
      };
      readonly answers: {
        /** The API key. */
        readonly '200': ApiKey;
      };
    };
    /** Update an API key: the members that are present. */
    readonly PUT: {
      readonly path: {
        /** The id of the API key. */
        readonly id: string;
      };
      readonly query?: {
        /** Rejects patterns that no route and no endpoint needs (422). Default: false. */
        readonly strict?: boolean | undefined;
      } | undefined;
      readonly body?: ApiKeyChanges | undefined;
      readonly answers: {
        /** The updated API key. */
        readonly '200': ApiKey;
      };
    };
    /** Update an API key: the members that are present. */
    readonly PATCH: {
      readonly path: {
        /** The id of the API key. */
        readonly id: string;
      };
      readonly query?: {
        /** Rejects patterns that no route and no endpoint needs (422). Default: false. */
        readonly strict?: boolean | undefined;
      } | undefined;
      readonly body?: ApiKeyChanges | undefined;
      readonly answers: {
        /** The updated API key. */
        readonly '200': ApiKey;
      };
    };
    /** Revoke an API key permanently. */
    readonly DELETE: {
      readonly path: {
        /** The id of the API key. */
        readonly id: string;
      };
      readonly answers: {
        /** Done. The response has no body. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/iam/api-keys/{id}/rotate': {
    /** Give an API key a new secret. During the grace period, the old secret works for platform requests and for reads only. */
    readonly POST: {
      readonly path: {
        /** The id of the API key. */
        readonly id: string;
      };
      readonly body?: Rotation | undefined;
      readonly answers: {
        /** The API key, with its new text. */
        readonly '200': IssuedApiKey;
      };
    };
  };
  readonly '/v1/iam/api-keys/{id}/disable': {
    /** Disable an API key. Requests with it are rejected until it is enabled. */
    readonly POST: {
      readonly path: {
        /** The id of the API key. */
        readonly id: string;
      };
      readonly answers: {
        /** The updated API key. */
        readonly '200': ApiKey;
      };
    };
  };
  readonly '/v1/iam/api-keys/{id}/enable': {
    /** Enable a disabled API key. The caller needs what a caller that creates the key needs. */
    readonly POST: {
      readonly path: {
        /** The id of the API key. */
        readonly id: string;
      };
      readonly answers: {
        /** The updated API key. */
        readonly '200': ApiKey;
      };
    };
  };
  readonly '/v1/iam/api-keys/{id}/permissions': {
    /** List the permissions of the platform that the scopes of an API key cover, each with its last recorded use. */
    readonly GET: {
      readonly path: {
        /** The id of the API key. */
        readonly id: string;
      };
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
      } | undefined;
      readonly answers: {
        /** One page of permissions. */
        readonly '200': ApiKeyPermissionList;
      };
    };
  };
  readonly '/v1/iam/api-keys/import': {
    /** Import up to 1,000 keys of another system by their SHA-256 digests. Each row has its own outcome. */
    readonly POST: {
      readonly body: ImportedApiKeys;
      readonly answers: {
        /** The outcome of each row, in the order of the request. */
        readonly '200': ApiKeyImport;
      };
    };
  };
  readonly '/v1/iam/api-keys/revoke': {
    /** Revoke up to 1,000 API keys permanently, by id or by a filter. */
    readonly POST: {
      readonly query?: {
        /** `true`: the server revokes nothing, and reports what it would revoke. */
        readonly dry_run?: boolean | undefined;
      } | undefined;
      readonly body?: ApiKeysToRevoke | undefined;
      readonly answers: {
        /** The outcome of each key, or with `dry_run` the outcome that it would have. */
        readonly '200': ApiKeyRevocations;
      };
    };
  };
  readonly '/v1/iam/issuers': {
    /** List issuers. */
    readonly GET: {
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
        /** The same as X-Tenant-ID. Platform administrators may send * for all tenants. */
        readonly tenant_id?: string | undefined;
        /** Any part of the name or the issuer, in any case. */
        readonly q?: string | undefined;
        /** Only policies that are, or are not, enabled. */
        readonly enabled?: boolean | undefined;
      } | undefined;
      readonly answers: {
        /** One page of issuers. */
        readonly '200': IssuerList;
      };
    };
    /** Create an issuer, whose tokens the tenant then accepts. */
    readonly POST: {
      readonly body: NewIssuer;
      readonly answers: {
        /** The issuer. */
        readonly '201': Issuer;
      };
    };
  };
  readonly '/v1/iam/issuers/{id}': {
    /** Get an issuer, with the state of its keys. */
    readonly GET: {
      readonly path: {
        /** The id of the issuer. */
        readonly id: string;
      };
      readonly answers: {
        /** The issuer. */
        readonly '200': Issuer;
      };
    };
    /** Update an issuer: the members that are present. A wider change applies to tokens issued after it. */
    readonly PUT: {
      readonly path: {
        /** The id of the issuer. */
        readonly id: string;
      };
      readonly body?: IssuerChanges | undefined;
      readonly answers: {
        /** The updated issuer. */
        readonly '200': Issuer;
      };
    };
    /** Update an issuer: the members that are present. A wider change applies to tokens issued after it. */
    readonly PATCH: {
      readonly path: {
        /** The id of the issuer. */
        readonly id: string;
      };
      readonly body?: IssuerChanges | undefined;
      readonly answers: {
        /** The updated issuer. */
        readonly '200': Issuer;
      };
    };
    /** Delete an issuer. With `force=true`, keys with a proof of it are revoked, and linked users lose the link and its roles. */
    readonly DELETE: {
      readonly path: {
        /** The id of the issuer. */
        readonly id: string;
      };
      readonly query?: {
        /** `true` makes the change even if it locks out its author. */
        readonly force?: boolean | undefined;
      } | undefined;
      readonly answers: {
        /** Done. The response has no body. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/iam/issuers/{id}/revoke-before': {
    /** Refuse the tokens that were issued before a time, and end the sessions that began with such tokens. */
    readonly POST: {
      readonly path: {
        /** The id of the issuer. */
        readonly id: string;
      };
      readonly body?: IssuerRevocation | undefined;
      readonly answers: {
        /** The updated issuer. */
        readonly '200': Issuer;
      };
    };
  };
  readonly '/v1/iam/issuers/{id}/test': {
    /** Test a token at an issuer, also at a disabled one, and report each step. Nothing is stored. */
    readonly POST: {
      readonly path: {
        /** The id of the issuer. */
        readonly id: string;
      };
      readonly body: IssuerTestRequest;
      readonly answers: {
        /** The steps, their outcomes, and the principal. */
        readonly '200': IssuerTest;
      };
    };
  };
  readonly '/v1/iam/issuers/{id}/refresh': {
    /** Fetch the keys of an issuer now. `keys.error` has the reason if that failed. */
    readonly POST: {
      readonly path: {
        /** The id of the issuer. */
        readonly id: string;
      };
      readonly answers: {
        /** The issuer after the attempt. */
        readonly '200': Issuer;
      };
    };
  };
  readonly '/v1/iam/budgets': {
    /** List budgets, with what was spent of the amounts that callers share. */
    readonly GET: {
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
        /** The same as X-Tenant-ID. Platform administrators may send * for all tenants. */
        readonly tenant_id?: string | undefined;
        /** Any part of the name, in any case. */
        readonly q?: string | undefined;
        /** Only budgets in this unit. */
        readonly unit?: 'money' | 'tokens' | 'requests' | undefined;
        /** Only budgets with this period. */
        readonly period?: 'hour' | 'day' | 'week' | 'month' | 'total' | undefined;
        /** Only budgets with this `action`. */
        readonly action?: 'block' | 'report' | undefined;
        /** Only budgets that are, or are not, in force. */
        readonly enabled?: boolean | undefined;
      } | undefined;
      readonly answers: {
        /** One page of budgets. */
        readonly '200': BudgetList;
      };
    };
    /** Create a budget: a limit of what callers may spend in a period. */
    readonly POST: {
      readonly body: NewBudget;
      readonly answers: {
        /** The budget. */
        readonly '201': Budget;
      };
    };
  };
  readonly '/v1/iam/budgets/{id}': {
    /** Get a budget, with what was spent of it, and by which keys, users and models. */
    readonly GET: {
      readonly path: {
        /** The id of the budget. */
        readonly id: string;
      };
      readonly answers: {
        /** The budget. */
        readonly '200': Budget;
      };
    };
    /** Update a budget: the members that are present. A limit applies at once. Another unit, period, time zone or `per` begins a new amount. */
    readonly PUT: {
      readonly path: {
        /** The id of the budget. */
        readonly id: string;
      };
      readonly body?: BudgetChanges | undefined;
      readonly answers: {
        /** The updated budget. */
        readonly '200': Budget;
      };
    };
    /** Update a budget: the members that are present. A limit applies at once. Another unit, period, time zone or `per` begins a new amount. */
    readonly PATCH: {
      readonly path: {
        /** The id of the budget. */
        readonly id: string;
      };
      readonly body?: BudgetChanges | undefined;
      readonly answers: {
        /** The updated budget. */
        readonly '200': Budget;
      };
    };
    /** Delete a budget. */
    readonly DELETE: {
      readonly path: {
        /** The id of the budget. */
        readonly id: string;
      };
      readonly answers: {
        /** Done. The response has no body. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/iam/budgets/{id}/reset': {
    /** Begin a new amount in the current period. The audit log keeps the reason. */
    readonly POST: {
      readonly path: {
        /** The id of the budget. */
        readonly id: string;
      };
      readonly body: BudgetReset;
      readonly answers: {
        /** The updated budget. */
        readonly '200': Budget;
      };
    };
  };
  readonly '/v1/iam/budgets/preview': {
    /** Show what a budget would have done in the last full month, by that month's usage. Nothing is stored. */
    readonly POST: {
      readonly body: NewBudget;
      readonly answers: {
        /** The periods of the month, and what would have been beyond the limit. */
        readonly '200': BudgetPreview;
      };
    };
  };
  readonly '/v1/iam/webhooks': {
    /** List webhooks. */
    readonly GET: {
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
        /** The same as X-Tenant-ID. Platform administrators may send * for all tenants. */
        readonly tenant_id?: string | undefined;
      } | undefined;
      readonly answers: {
        /** One page of webhooks. */
        readonly '200': WebhookList;
      };
    };
    /** Create a webhook, to which the tenant's events are sent. The response has the secret of the signatures. */
    readonly POST: {
      readonly body: NewWebhook;
      readonly answers: {
        /** The webhook, with its secret. */
        readonly '201': WebhookWithSecret;
      };
    };
  };
  readonly '/v1/iam/webhooks/{id}': {
    /** Get a webhook. */
    readonly GET: {
      readonly path: {
        /** The id of the webhook. */
        readonly id: string;
      };
      readonly answers: {
        /** The webhook. */
        readonly '200': Webhook;
      };
    };
    /** Update a webhook: the members that are present. */
    readonly PUT: {
      readonly path: {
        /** The id of the webhook. */
        readonly id: string;
      };
      readonly body?: WebhookChanges | undefined;
      readonly answers: {
        /** The updated webhook. */
        readonly '200': Webhook;
      };
    };
    /** Update a webhook: the members that are present. */
    readonly PATCH: {
      readonly path: {
        /** The id of the webhook. */
        readonly id: string;
      };
      readonly body?: WebhookChanges | undefined;
      readonly answers: {
        /** The updated webhook. */
        readonly '200': Webhook;
      };
    };
    /** Delete a webhook with its deliveries, also those that wait. */
    readonly DELETE: {
      readonly path: {
        /** The id of the webhook. */
        readonly id: string;
      };
      readonly answers: {
        /** Done. The response has no body. */
        readonly '204': undefined;
      };
    };
  };
  readonly '/v1/iam/webhooks/{id}/rotate': {
    /** Give a webhook a new secret. For 24 hours, each request has a signature of the former one as well. */
    readonly POST: {
      readonly path: {
        /** The id of the webhook. */
        readonly id: string;
      };
      readonly answers: {
        /** The webhook, with its new secret. */
        readonly '200': WebhookWithSecret;
      };
    };
  };
  readonly '/v1/iam/webhooks/{id}/test': {
    /** Send the event `webhook.test` to a webhook once, also to a disabled one, and answer with the outcome. */
    readonly POST: {
      readonly path: {
        /** The id of the webhook. */
        readonly id: string;
      };
      readonly answers: {
        /** The delivery after its attempt. */
        readonly '200': WebhookDelivery;
      };
    };
  };
  readonly '/v1/iam/webhooks/{id}/deliveries': {
    /** List the deliveries of a webhook of the last 30 days, newest first. */
    readonly GET: {
      readonly path: {
        /** The id of the webhook. */
        readonly id: string;
      };
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
        /** Only deliveries in this state. */
        readonly state?: 'waiting' | 'delivered' | 'failed' | undefined;
      } | undefined;
      readonly answers: {
        /** One page of deliveries. */
        readonly '200': WebhookDeliveryList;
      };
    };
  };
  readonly '/v1/iam/webhooks/{id}/deliveries/{delivery}/replay': {
    /** Send a delivery again, with the same id and body. */
    readonly POST: {
      readonly path: {
        /** The id of the webhook. */
        readonly id: string;
        /** The id of the delivery. */
        readonly delivery: string;
      };
      readonly answers: {
        /** The delivery, which waits for its attempt. */
        readonly '200': WebhookDelivery;
      };
    };
  };
  readonly '/v1/iam/audit': {
    /** Read the audit log, newest first: in pages, or as one stream of NDJSON or CSV if the Accept header asks for it. */
    readonly GET: {
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
        /** The same as X-Tenant-ID. Platform administrators may send * for all tenants. */
        readonly tenant_id?: string | undefined;
        /** An id, or `system` or `anonymous` for actors without an id. */
        readonly actor?: string | undefined;
        /** As in auth.login. */
        readonly action?: string | undefined;
        /** An id or a name, or with its type before it: role/auditor. */
        readonly target?: string | undefined;
        /** Any part of the name or email address of the actor or of the target, in any case; or a whole id, request id, name of a target, or prefix of a key. The page has no `total` if more than 500 users and keys have the text. */
        readonly q?: string | undefined;
        /** Only rows with this result. */
        readonly result?: 'success' | 'failure' | 'refused' | undefined;
        /** The start of the time span, included. */
        readonly from?: string | undefined;
        /** The end of the time span, excluded. */
        readonly to?: string | undefined;
        /** Only rows of the request with this id. */
        readonly request_id?: string | undefined;
        /** `names`: the current names of users (with `admin:users`) and keys (with `admin:keys`) beside their ids. */
        readonly include?: 'names' | undefined;
      } | undefined;
      readonly answers: {
        /** One page of rows, newest first, or the stream that the Accept header asks for. */
        readonly '200': AuditRowList;
      };
    };
  };
  readonly '/v1/iam/audit/chain': {
    /** Show how far the audit log is sealed. The server verifies nothing. */
    readonly GET: {
      readonly answers: {
        /** The state of the chain. */
        readonly '200': AuditChain;
      };
    };
  };
  readonly '/v1/iam/usage': {
    /** Show the usage of a month or of a span of days: the total, and the usage by model, key, user, day or tenant. As CSV if the Accept header asks for it. */
    readonly GET: {
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** The same as X-Tenant-ID. Platform administrators may send * for all tenants. */
        readonly tenant_id?: string | undefined;
        /** A calendar month in the tenant's time zone. Default: the current month. */
        readonly period?: string | undefined;
        /** The first day, in the tenant's time zone, in place of `period`. */
        readonly from?: string | undefined;
        /** The last day, which is included, at most 366 days after `from`. Default: today. */
        readonly to?: string | undefined;
        /** `tenant` needs `tenant_id=*`. Default: no grouping. */
        readonly group_by?: 'model' | 'key' | 'user' | 'day' | 'tenant' | undefined;
        /** Only the usage of this API key, in the total and in each group. */
        readonly key_id?: string | undefined;
        /** The order of the rows; `-` sorts downwards. Rows without a value come last in both directions. Default: `id`. */
        readonly sort?: 'id' | '-id' | 'cost' | '-cost' | 'unpriced_requests' | '-unpriced_requests' | 'requests' | '-requests' | 'prompt_tokens' | '-prompt_tokens' | 'completion_tokens' | '-completion_tokens' | 'cached_tokens' | '-cached_tokens' | 'total_tokens' | '-total_tokens' | 'estimated_tokens' | '-estimated_tokens' | undefined;
        /** `names`: the current names of users (with `admin:users`) and keys (with `admin:keys`) beside their ids. */
        readonly include?: 'names' | undefined;
      } | undefined;
      readonly answers: {
        /** The total and one page of its parts, or all parts in the format that the Accept header asks for. */
        readonly '200': Usage;
      };
    };
  };
  readonly '/v1/iam/usage/events': {
    /** Report usage from a platform that meters itself. Each event counts once. */
    readonly POST: {
      readonly body: UsageEvents;
      readonly answers: {
        /** The number of counted events and of duplicates. */
        readonly '200': UsageEventsResult;
      };
    };
  };
  readonly '/v1/iam/tenants/{id}/limits': {
    /** Show the limits of a tenant and what is left of them. Platform administrators may ask about any tenant, other callers about their own. */
    readonly GET: {
      readonly path: {
        /** The id of the tenant. */
        readonly id: string;
      };
      readonly answers: {
        /** Each limit with its usage, the rest and the time of its reset. */
        readonly '200': Limits;
      };
    };
  };
  readonly '/v1/iam/tenants/{id}/usage': {
    /** Set the current usage of a tenant, after it changed without Postern. */
    readonly PUT: {
      readonly path: {
        /** The id of the tenant. */
        readonly id: string;
      };
      readonly body?: UsageCorrection | undefined;
      readonly answers: {
        /** The resulting limits. */
        readonly '200': Limits;
      };
    };
    /** Set the current usage of a tenant, after it changed without Postern. */
    readonly PATCH: {
      readonly path: {
        /** The id of the tenant. */
        readonly id: string;
      };
      readonly body?: UsageCorrection | undefined;
      readonly answers: {
        /** The resulting limits. */
        readonly '200': Limits;
      };
    };
  };
  readonly '/v1/iam/prices': {
    /** Show the prices of models that are in force. */
    readonly GET: {
      readonly answers: {
        /** The list in force. */
        readonly '200': Prices;
      };
    };
    /** Replace the prices of models, as a platform administrator. Requests that the server admits later cost the new prices. Send If-Match, so that the list replaces no list that you have not seen. */
    readonly PUT: {
      readonly body: NewPrices;
      readonly answers: {
        /** The list in force. */
        readonly '200': Prices;
      };
    };
    /** Replace the prices of models, as a platform administrator. Requests that the server admits later cost the new prices. Send If-Match, so that the list replaces no list that you have not seen. */
    readonly PATCH: {
      readonly body: NewPrices;
      readonly answers: {
        /** The list in force. */
        readonly '200': Prices;
      };
    };
  };
  readonly '/v1/iam/prices/proposal': {
    /** Compare the table of prices of this release with the list in force, as a platform administrator. Nothing applies until an administrator sets the prices. */
    readonly GET: {
      readonly query?: {
        /** The id of a provider of the table. Default: all of them. The first one that has a glob counts. */
        readonly provider?: string | undefined;
        /** Any part of the glob on models, in any case. */
        readonly q?: string | undefined;
      } | undefined;
      readonly answers: {
        /** The table, filtered, with the price in force for each glob. */
        readonly '200': PriceProposal;
      };
    };
  };
  readonly '/v1/iam/decisions': {
    /** Show how many requests were allowed and denied, by time, code and route, for the last 8 days. */
    readonly GET: {
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** The same as X-Tenant-ID. Platform administrators may send * for all tenants. */
        readonly tenant_id?: string | undefined;
        /** `true`: decisions in shadow mode, which changed nothing. `false`: decisions that the gate enforced. Default: false. */
        readonly shadow?: boolean | undefined;
        /** The first minute. Default: one hour before `to`. */
        readonly from?: string | undefined;
        /** The end of the time span. A minute that begins at this time is excluded. Default: now. */
        readonly to?: string | undefined;
        /** Groups rows by UTC time; default: minute. */
        readonly interval?: 'minute' | 'hour' | 'day' | undefined;
        /** Default: by code and route. */
        readonly group_by?: 'code' | 'outcome' | undefined;
      } | undefined;
      readonly answers: {
        /** The totals and one page of their parts. */
        readonly '200': Decisions;
      };
    };
  };
  readonly '/v1/iam/decisions/trial': {
    /** Show which requests the server would have denied in shadow mode, by reason and principal, and how often another gate decided otherwise. */
    readonly GET: {
      readonly query?: {
        /** The same as X-Tenant-ID. Platform administrators may send * for all tenants. */
        readonly tenant_id?: string | undefined;
        /** The first minute. Default: 24 hours before `to`. */
        readonly from?: string | undefined;
        /** The end of the time span, excluded. Default: now. */
        readonly to?: string | undefined;
      } | undefined;
      readonly answers: {
        /** The numbers of the time span. */
        readonly '200': Trial;
      };
    };
  };
  readonly '/v1/iam/decisions/recent': {
    /** List denials, the first allow of each principal, route and model of a day, and a sample of the other allows, of the last 24 hours, newest first. At most 1,000 denials, as many sampled allows, and 10,000 first allows of a tenant are kept, and apart from these 1,000 denials and as many allows that a report-only policy would have changed, and 10,000 denials and as many allows in shadow mode. */
    readonly GET: {
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** `true`: the page also has `total`, or `total_exceeds` beyond 10000 rows. */
        readonly count?: boolean | undefined;
        /** The same as X-Tenant-ID. Platform administrators may send * for all tenants. */
        readonly tenant_id?: string | undefined;
        /** `true`: decisions in shadow mode, which changed nothing. `false`: decisions that the gate enforced. Default: false. */
        readonly shadow?: boolean | undefined;
        /** With `shadow=true`: the outcome of the other gate. */
        readonly other?: 'allow' | 'deny' | undefined;
        /** With `shadow=true`. `true`: decisions whose outcome is not that of the other gate. `false`: the others. */
        readonly differs?: boolean | undefined;
        /** Only decisions with this outcome. */
        readonly outcome?: 'allow' | 'deny' | undefined;
        /** `allow`, or the code of the denial. */
        readonly code?: string | undefined;
        /** The id of a user or a key. */
        readonly principal?: string | undefined;
        /** A line of the route table: POST /v1/chat/completions. */
        readonly route?: string | undefined;
        /** Decisions that a report-only policy would have changed: to a denial, to an allow, or to either. */
        readonly would?: 'deny' | 'allow' | 'any' | undefined;
        /** The name of the report-only policy that would have changed the decision. */
        readonly report?: string | undefined;
        /** The start of the time span, included. */
        readonly from?: string | undefined;
        /** The end of the time span, excluded. */
        readonly to?: string | undefined;
        /** `names`: the current names of users (with `admin:users`) and keys (with `admin:keys`) beside their ids. */
        readonly include?: 'names' | undefined;
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
        /** The id of the request. */
        readonly request_id: string;
      };
      readonly query?: {
        /** The same as X-Tenant-ID. Platform administrators may send * for all tenants. */
        readonly tenant_id?: string | undefined;
      } | undefined;
      readonly answers: {
        /** The decision, and its explanation by the current rules. */
        readonly '200': ExplainedDecision;
      };
    };
  };
  readonly '/v1/iam/explain': {
    /** Explain the decision about a request. Nothing is counted. */
    readonly POST: {
      readonly body: ExplainRequest;
      readonly answers: {
        /** The decision and its reasons. */
        readonly '200': Explanation;
      };
    };
  };
  readonly '/v1/iam/explain/simulate': {
    /** Explain the decision as if proposed policies and roles were in force. Nothing is saved or counted. */
    readonly POST: {
      readonly body: SimulateRequest;
      readonly answers: {
        /** The decision with the proposals, its reasons, and the current decision. */
        readonly '200': Simulation;
      };
    };
  };
  readonly '/v1/iam/explain/difference': {
    /** Show which requests of a tenant proposed policies and roles would newly allow or deny, exactly. Nothing is saved. */
    readonly POST: {
      readonly query?: {
        /** `true`: `recent` has decisions in shadow mode. `false`: decisions that the gate enforced. Default: false. */
        readonly shadow?: boolean | undefined;
      } | undefined;
      readonly body?: DifferenceRequest | undefined;
      readonly answers: {
        /** The difference: the boxes of requests whose outcome changes. */
        readonly '200': Difference;
      };
    };
  };
  readonly '/v1/iam/explain/who-can': {
    /** List the roles, users and keys of a tenant with access to a permission, a resource or both, with the reasons: in pages, or as one stream of NDJSON or CSV if the Accept header asks for it. */
    readonly GET: {
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
        readonly cursor?: string | undefined;
        /** The same as X-Tenant-ID. */
        readonly tenant_id?: string | undefined;
        /** One permission, <resource>:<action>, without wildcards. */
        readonly permission?: string | undefined;
        /** <kind>/<name>; <kind>/ alone for one that the request does not name. Without `permission`: every permission whose routes name such a resource. */
        readonly resource?: string | undefined;
      } | undefined;
      readonly answers: {
        /** One page of roles, users and keys, which may be empty although there are more, or the stream that the Accept header asks for. */
        readonly '200': WhoCan;
      };
    };
    /** List the users and keys of a tenant that have a permission, with the reasons. */
    readonly POST: {
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
        readonly cursor?: string | undefined;
      } | undefined;
      readonly body: WhoCanRequest;
      readonly answers: {
        /** One page of users and keys. It may be empty although there are more. */
        readonly '200': WhoCan;
      };
    };
  };
  readonly '/v1/iam/directory': {
    /** List the configured directories, and whether each answers. */
    readonly GET: {
      readonly answers: {
        /** The configured directories. */
        readonly '200': Directories;
      };
    };
  };
  readonly '/v1/iam/directory/test': {
    /** Test a directory login and report each step. The server creates no session and no user. A wrong password counts as a failed login. */
    readonly POST: {
      readonly body: DirectoryTestRequest;
      readonly answers: {
        /** The steps and their outcomes. */
        readonly '200': DirectoryTest;
      };
    };
  };
  readonly '/v1/iam/overview': {
    /** Show the tenant's tokens of the month, its latest denials and changes, and the users, rules and keys that need care. Each part needs the permission of its own endpoint, and is absent without it. */
    readonly GET: {
      readonly answers: {
        /** The parts that the caller may read. */
        readonly '200': Overview;
      };
    };
  };
  readonly '/v1/iam/permissions': {
    /** List every permission, with the routes and endpoints that need it. */
    readonly GET: {
      readonly query?: {
        /** The number of rows of a page. Default: 50. */
        readonly limit?: number | undefined;
        /** The `next_cursor` of the previous page, or of the export that stopped. */
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
    /** Get the public keys of tokens: the next, the current, and the retired keys until their tokens have expired. */
    readonly GET: {
      readonly answers: {
        /** A JWK set. */
        readonly '200': KeySet;
      };
    };
  };
  readonly '/.well-known/openid-configuration': {
    /** Get the issuer of tokens and the address of its public keys (OpenID Connect Discovery 1.0), if the setting `issuer` is a URL. */
    readonly GET: {
      readonly answers: {
        /** The discovery document. */
        readonly '200': Discovery;
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

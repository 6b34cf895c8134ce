/** Holds the sentence about each setting in docs/settings.md. */
import { SETTINGS_OF_SHARE, type SettingName } from '../../src/settings.ts';
type OwnSetting = Exclude<SettingName, (typeof SETTINGS_OF_SHARE)[keyof typeof SETTINGS_OF_SHARE][number]>;

/**
 * The sentences by group and setting, in the order of docs/settings.md. The settings of a share are described with the
 * share.
 */
export const SETTING_TEXTS: Readonly<Record<string, Partial<Readonly<Record<OwnSetting, string>>>>> = {
  Listening: {
    HOST: 'the address to listen on; credentials are required for every address except loopback',
    PORT: 'the port to listen on; 0 takes a free one',
    BASE_PATH: 'the path under which everything is served, such as `/callboard`',
    ALLOWED_ORIGINS: 'origins of pages that may use the relay besides its own, comma-separated and exact',
    TRUST_PROXY: 'take the forwarded headers of a proxy in front',
    TLS_CERT:
      'a file with the certificate and its chain (PEM), if the relay itself speaks TLS; read again when it changes',
    TLS_KEY: 'the file with its key (PEM)',
    NODE_ID: 'the name of this node, unique in a deployment',
    CONSOLE: 'serves the console, a page for operators and users, at `/console/`',
    LABEL: 'a name of the deployment for people, such as `staging`; tools show it',
    LOG_LEVEL: 'the least level of the lines on standard error',
  },
  Credentials: {
    ADMIN_TOKEN:
      'tokens of administrators, comma-separated; `name=token` (16 characters or more) puts the name into logs',
    SECRET:
      'signs and checks tokens of users (HS256); at least 32 bytes; a second line is [the secret before it](tokens.md#replace-a-secret)',
    METRICS_TOKEN: 'reads `/metrics` and nothing else, for Prometheus; at least 32 characters',
    JWKS_URL: 'the published keys of an identity provider; ISSUER and AUDIENCE are then required',
    ISSUER: 'the `iss` that every JWT must have',
    AUDIENCE: 'the `aud` that every JWT must have',
    USER_CLAIM: 'for tokens of JWKS_URL: the claim that names the user ([tokens](tokens.md))',
    SCOPE_CLAIM: 'for tokens of JWKS_URL: the only claim with scopes',
    SCOPE_PREFIX: 'for tokens of JWKS_URL: what the names of scopes begin with',
    AUDIT_FILE:
      'the file of [the audit](security.md#audit) in direct mode; needs AUDIT_KEY or SECRET; without it the audit is kept in memory',
    AUDIT_KEY:
      'signs the rows of the audit; at least 32 bytes; further lines are [earlier keys](security.md#audit); else derived from SECRET',
    AUDIT_DAYS: 'days that a row of the audit is kept',
    AUDIT_MAX_ROWS: 'rows of the audit that are kept; 100,000 take about 40 MB of memory in direct mode',
    REVEAL:
      'how administrators read payloads: `argument` (by arguments of listings, too), `mutation` (by `revealPayload` alone, with a reason) or `off`',
    POLICY_FILE: 'a file of rules and capacities ([security](security.md#policy))',
    INTROSPECTION: 'who may read the GraphQL schema from the relay',
    TRACE_IDS: 'lets [spans](tracing.md) name users and clients, which are personal data',
    RAW_MESSAGES: 'lets administrators read the raw sample of history',
  },
  'What is kept': {
    RETENTION_MS: 'how long history and the results of commands are kept',
    STREAM_MAX_MESSAGES: 'messages of one stream; older ones are evicted',
    IDEMPOTENCY_WINDOW_MS: 'how long after its end the id of a command is known, and runs at most once',
    SPILL_DIR: 'the directory of payloads over 16 KiB; without it they are kept in memory, or in Redis in shared mode',
  },
  'What one requester may send': {
    MAX_BODY_BYTES: 'the body of one HTTP request',
    INBOUND_BYTES_PER_SECOND:
      'what one user may send in a second, over links and HTTP bodies together; administrators are not limited',
    UNAUTHENTICATED_SOCKETS_PER_ADDRESS:
      'open connections of one address without a valid token; not applied with TRUST_PROXY',
    FAST_PATH: '`--no-fast-path`: graphql-js runs every request; the answers have the same bytes',
  },
  'Shared mode': {
    REDIS_URL:
      '`redis://` or `rediss://`; `redis+sentinel://host:port,host:port/master`; `redis+cluster://host:port,host:port`',
    NAMESPACE: 'separates deployments in one Redis',
    PARTITIONS: 'fixed for a namespace; spreads it over the masters of a cluster by admission scope',
    DURABILITY: 'the least durability that Redis must have; unset: what Redis reports, except `memory`',
    STRICT_MIGRATION: 'refuses to start while the legacy keys hold anything',
    LEGACY_COMMAND_STREAM: 'a key of an earlier system, which is only read: `/delivery/summary` shows its depth',
    LEGACY_PENDING: 'another such key',
  },
};

/** Reads the settings that decide which tokens a relay accepts, and lists the values that must never be logged. */
import { randomBytes } from 'node:crypto';
import { readTarget, secretsOf } from '../backends/redis/target.ts';
import { parseAdminToken } from '../core/auth/admin-token.ts';
import type { SettingValues } from '../settings.ts';
import type { AuditConfig } from './audit-config.ts';
import type { RedisConfig } from './redis-config.ts';

export type AuthConfig = {
  /** The administrators' tokens. Each is a bare token or `name=token`. */
  readonly adminTokens: readonly string[];
  /** The key that signs and verifies tokens (HS256); null: no signed tokens are accepted. */
  readonly secret: string | null;
  /** The token that may read `/metrics` and nothing else; null: only administrators may read it. */
  readonly metricsToken?: string | null;
  /** A second key that still verifies tokens while the secret is being replaced; null: none. */
  readonly previousSecret?: string | null;
  readonly jwksUrl: string | null;
  /** The accepted issuers, and the accepted audiences. A JWT must have one of each; null or empty: any. */
  readonly issuer: string | readonly string[] | null;
  readonly audience: string | readonly string[] | null;
  /** Whether `client_id` counts as the audience, in tokens of `jwksUrl` without `aud`. */
  readonly audienceFromClientId?: boolean;
  /** The paths of the claims that contain the user id, in tokens of `jwksUrl`; default `sub`. */
  readonly userClaim?: string | readonly string[] | null;
  /**
   * Whether user ids in tokens of `jwksUrl` are converted to their canonical form. Default false: a token with another
   * form is refused.
   */
  readonly foldUsers?: boolean;
  /**
   * The paths of the claims that contain the scopes, in tokens of `jwksUrl`; default `scope`, `scp` and `permissions`.
   */
  readonly scopeClaim?: string | readonly string[] | null;
  /** The prefix of the scope names, in tokens of `jwksUrl`; default none. */
  readonly scopePrefix?: string;
};

/**
 * Reads the credentials from the settings. `generated`: whether none are configured, so that they are generated for
 * this run.
 */
export function authOf(settings: SettingValues, generated: boolean): AuthConfig {
  return {
    adminTokens: generated ? [randomBytes(24).toString('base64url')] : settings.ADMIN_TOKEN,
    metricsToken: settings.METRICS_TOKEN ?? null,
    secret: generated ? randomBytes(32).toString('base64url') : (settings.SECRET?.[0] ?? null),
    previousSecret: settings.SECRET?.[1] ?? null,
    jwksUrl: settings.JWKS_URL ?? null,
    issuer: settings.ISSUER ?? null,
    audience: settings.AUDIENCE ?? null,
    audienceFromClientId: settings.AUDIENCE_FROM_CLIENT_ID,
    foldUsers: settings.FOLD_USERS,
    userClaim: settings.USER_CLAIM ?? null,
    scopeClaim: settings.SCOPE_CLAIM ?? null,
    scopePrefix: settings.SCOPE_PREFIX,
  };
}

/** Returns the values of a configuration that must never be logged or printed. */
export function secretsIn({
  auth,
  redis,
  audit,
}: {
  readonly auth: AuthConfig;
  readonly audit: Pick<AuditConfig, 'key' | 'earlierKeys'>;
  readonly redis: Pick<RedisConfig, 'url'> | null;
}): readonly string[] {
  const tokens = auth.adminTokens.map((text) => parseAdminToken(text).token);
  const keys = [audit.key, ...audit.earlierKeys];
  const secrets = [auth.secret, auth.previousSecret, auth.metricsToken, ...keys].filter(
    (secret) => typeof secret === 'string',
  );
  const own = [...tokens, ...secrets];
  return redis ? [...own, ...secretsOf(readTarget(redis.url))] : own;
}

/** Which credentials a relay accepts, as its settings say. */
import { randomBytes } from 'node:crypto';
import type { SettingValues } from './settings.ts';

export type AuthConfig = {
  /** Each is a bare token or `name=token`. */
  readonly adminTokens: readonly string[];
  readonly secret: string | null;
  readonly jwksUrl: string | null;
  readonly issuer: string | null;
  readonly audience: string | null;
  /** For tokens of `jwksUrl`: the claim with the user's id; default `sub`. */
  readonly userClaim?: string | null;
  /** For tokens of `jwksUrl`: the claim with the scopes; default the first of `scope`, `scp` and `permissions`. */
  readonly scopeClaim?: string | null;
  /** For tokens of `jwksUrl`: what the names of scopes begin with. */
  readonly scopePrefix?: string;
};

/** `generated`: no credentials are configured, so they are made for this run. */
export function authOf(settings: SettingValues, generated: boolean): AuthConfig {
  return {
    adminTokens: generated ? [randomBytes(24).toString('base64url')] : settings.ADMIN_TOKEN,
    secret: generated ? randomBytes(32).toString('base64url') : (settings.SECRET ?? null),
    jwksUrl: settings.JWKS_URL ?? null,
    issuer: settings.ISSUER ?? null,
    audience: settings.AUDIENCE ?? null,
    userClaim: settings.USER_CLAIM ?? null,
    scopeClaim: settings.SCOPE_CLAIM ?? null,
    scopePrefix: settings.SCOPE_PREFIX,
  };
}

/** Signs JWTs that the relay accepts. Verification is in auth.ts. */
import { SignJWT } from 'jose';

export type TokenRequest = {
  /** The secret of the deployment (setting SECRET), at least 32 bytes. */
  readonly secret: string;
  /** A canonical user id. */
  readonly user: string;
  readonly scopes: readonly string[];
  readonly ttlSeconds: number;
  /** The time of issue, in milliseconds since the Unix epoch. */
  readonly now: number;
  readonly issuer?: string | null;
  readonly audience?: string | null;
};

/** Signs a JWT that the relay accepts: HS256, with `sub`, `scope`, `iat` and `exp`, and `iss` and `aud` if given. */
export function signToken(request: TokenRequest): Promise<string> {
  const issued = Math.floor(request.now / 1000);
  const token = new SignJWT({ scope: request.scopes.join(' ') })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setSubject(request.user)
    .setIssuedAt(issued)
    .setExpirationTime(issued + request.ttlSeconds);
  if (request.issuer) token.setIssuer(request.issuer);
  if (request.audience) token.setAudience(request.audience);
  return token.sign(new TextEncoder().encode(request.secret));
}

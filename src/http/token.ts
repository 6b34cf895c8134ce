import { SignJWT } from 'jose';

export type TokenRequest = {
  /** At least 32 bytes: the deployment's SECRET. */
  readonly secret: string;
  /** A canonical user. */
  readonly user: string;
  readonly scopes: readonly string[];
  readonly ttlSeconds: number;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly issuer?: string | null;
  readonly audience?: string | null;
};

/** Signs a user's token as the relay verifies it: HS256, with `sub`, `scope`, `iat` and `exp`. */
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

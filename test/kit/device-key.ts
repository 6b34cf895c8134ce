/** Makes keys of devices, and proofs of them, as `callboard/enrol` does. */
import { SignJWT, exportJWK, generateKeyPair, type JWK } from 'jose';

/** What a proof says, where a test wants it to be wrong. */
type ProofClaims = {
  readonly now?: number;
  readonly id?: string;
  readonly audience?: string;
  readonly type?: string;
  /** The key that the header names. Default: the device's. */
  readonly jwk?: JWK;
};

export type DeviceKey = {
  readonly jwk: JWK;
  /** Signs a proof. `purpose`: `enrol` or `token`. */
  prove(purpose: string, claims?: ProofClaims): Promise<string>;
};

let proofs = 0;

/** Makes a key. `now`: the time of the device's clock, in epoch milliseconds. */
export async function newDeviceKey(now: () => number = Date.now): Promise<DeviceKey> {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const jwk = await exportJWK(publicKey);
  return {
    jwk,
    prove: (purpose, claims = {}) =>
      new SignJWT({})
        .setProtectedHeader({ alg: 'ES256', typ: claims.type ?? 'callboard-proof+jwt', jwk: claims.jwk ?? jwk })
        .setAudience(claims.audience ?? `callboard:${purpose}`)
        .setIssuedAt(Math.floor((claims.now ?? now()) / 1000))
        .setJti(claims.id ?? `proof-${++proofs}`)
        .sign(privateKey),
  };
}

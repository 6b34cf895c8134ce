/**
 * Checks the proofs by which devices show that they hold their keys, and signs the tokens of devices. A proof is a JWT
 * that the device signs with its own key (ES256). The JWT's header contains the public key.
 */
import { calculateJwkThumbprint, decodeProtectedHeader, importJWK, jwtVerify, type JWK } from 'jose';
import type { DeviceCredentials, DeviceProof, ProofPurpose } from '../core/devices/device.ts';
import { CallboardError, fail } from '../core/errors.ts';
import { DEVICE_TOKEN_SECONDS } from '../core/limits.ts';
import { TOLERANCE_SECONDS, signToken, type Names } from './tokens.ts';

/**
 * How far the clock of a device may differ from the relay's, in seconds. A device learns the relay's time from the
 * first answer.
 */
const PROOF_SECONDS = 300;
const PROOF_TYPE = 'callboard-proof+jwt';
const PROOF_CHARS = 1_024;
const PROOF_ID_CHARS = 64;
const PURPOSES: readonly ProofPurpose[] = ['enrol', 'token'];

type DeviceTokenOptions = {
  readonly secret?: string | null;
  readonly issuer?: Names;
  readonly audience?: Names;
};

export interface DeviceTokens extends DeviceCredentials {
  /** Signs with this secret from now on. */
  replace(credentials: Pick<DeviceTokenOptions, 'secret'>): void;
}

/**
 * Creates the object that checks proofs and signs tokens. `now`: the clock by which proofs are dated, in epoch
 * milliseconds.
 */
export function createDeviceTokens(given: DeviceTokenOptions, now: () => number): DeviceTokens {
  let { secret = null } = given;
  const { issuer = null, audience = null } = given;
  return {
    proofMs: (2 * PROOF_SECONDS + 60) * 1000,
    readProof: (proof) => readProof(proof, now()),
    async sign({ userId, clientId, clientType, actions, at }, issuedAt) {
      if (secret === null)
        return fail('not_supported', 'Devices get tokens of SECRET, which this relay does not have.');
      const ttlSeconds = DEVICE_TOKEN_SECONDS;
      const device = { clientId, clientType, actions, since: at };
      const request = {
        secret,
        user: userId,
        scopes: ['connect'],
        ttlSeconds,
        now: issuedAt,
        issuer,
        audience,
        device,
      };
      return { token: await signToken(request), expiresAt: issuedAt + (ttlSeconds + TOLERANCE_SECONDS) * 1000 };
    },
    replace: (next) => void (secret = next.secret ?? null),
  };
}

async function readProof(proof: string, now: number): Promise<DeviceProof> {
  if (proof.length > PROOF_CHARS) return refuse('it is too long');
  try {
    const jwk = publicKeyIn(decodeProtectedHeader(proof).jwk);
    const rules = {
      ...{ algorithms: ['ES256'], typ: PROOF_TYPE, currentDate: new Date(now) },
      requiredClaims: ['iat', 'jti', 'aud'],
    };
    const { jti = '', aud, iat = 0 } = (await jwtVerify(proof, await importJWK(jwk, 'ES256'), rules)).payload;
    const purpose = PURPOSES.find((one) => `callboard:${one}` === aud);
    if (purpose === undefined || jti === '' || jti.length > PROOF_ID_CHARS) return refuse('a claim is wrong');
    if (Math.abs(now / 1000 - iat) > PROOF_SECONDS) return refuse('its time is not that of the relay');
    return { keyId: await calculateJwkThumbprint(jwk), proofId: jti, purpose };
  } catch (error) {
    if (error instanceof CallboardError) throw error;
    return refuse('it cannot be verified');
  }
}

/** Returns only the members that a public key has, so that anything else in the header is ignored. */
function publicKeyIn(jwk: JWK | undefined): JWK {
  if (jwk?.kty !== 'EC' || jwk.crv !== 'P-256' || typeof jwk.x !== 'string' || typeof jwk.y !== 'string')
    return refuse('its header names no key of P-256');
  return { kty: 'EC', crv: 'P-256', x: jwk.x, y: jwk.y };
}

function refuse(why: string): never {
  fail('unauthenticated', `The proof of the device is not valid: ${why}.`);
}

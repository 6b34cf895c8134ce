/** Devices that a person has enrolled, the codes that they show before, and the storage port for both. */
import { matchesAny } from '../auth/patterns.ts';
import type { Principal, UserPrincipal } from '../auth/principal.ts';
import type { ClientType } from '../connections/connection.ts';
import { fail, invalid } from '../errors.ts';
import type { ClientKey } from '../ids.ts';
import { DEVICE_NAME_CHARS } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { PageRequest, Scan } from '../page.ts';

/** What a device says about itself. `actions`: patterns of the actions that it may advertise; null: any actions. */
export type DeviceClaims = {
  readonly name: string;
  readonly clientType: ClientType;
  readonly actions: readonly string[] | null;
};

/** An enrolment about which no person has decided yet. Times are epoch milliseconds. */
export type OpenEnrolment = DeviceClaims & {
  /** The keyed digest of the code. The code itself is not stored. */
  readonly codeHash: string;
  /** The thumbprint of the device's public key. */
  readonly keyId: string;
  /** The network from which the device asked to be enrolled. */
  readonly network: string;
  readonly at: number;
  readonly expiresAt: number;
};

/** A device that a person has confirmed. It is the client `clientId` of the user. */
export type Device = DeviceClaims &
  ClientKey & {
    readonly keyId: string;
    /** When the device was confirmed, and by whom (`subjectOf` the person). */
    readonly at: number;
    readonly by: string;
    /** When the device last got a token; null if it never did. */
    readonly usedAt: number | null;
  };

/**
 * A person's confirmation of a device. `clientId`: the client id that the person chose; null: the store takes the first
 * id in `proposed` that no other device of the user has.
 */
export type Confirmation = {
  readonly userId: string;
  readonly clientId: string | null;
  readonly proposed: readonly string[];
  readonly at: number;
  readonly by: string;
};

export type Decided =
  | { readonly kind: 'confirmed'; readonly device: Device }
  | { readonly kind: 'denied' }
  /** No open enrolment has this code: a person has already decided, the enrolment has expired, or there was none. */
  | { readonly kind: 'absent' }
  /** Another device of the user has this client id. The enrolment stays open. */
  | { readonly kind: 'taken' }
  /** The store has no room for more devices, in total or of this user. The enrolment stays open. */
  | { readonly kind: 'full' };

/** What the store knows about a key: its device, its open enrolment, or that its enrolment was denied. */
type KeyHolder =
  | { readonly kind: 'device'; readonly device: Device }
  | { readonly kind: 'open'; readonly enrolment: OpenEnrolment }
  | { readonly kind: 'denied' };

/**
 * Stores devices, and open enrolments until they expire. Each act is atomic. Devices are as durable as the store. Open
 * enrolments may be lost when the process ends that holds them. Throws `not_supported` if the store cannot store
 * devices.
 */
export interface DeviceStore {
  /**
   * Opens an enrolment. If the same key already has an open one, replaces it. `taken`: an open enrolment of another key
   * has this code. `full`: there are too many open enrolments, in total or from this network.
   */
  begin(enrolment: OpenEnrolment): MaybePromise<'begun' | 'taken' | 'full'>;
  /** Returns the open enrolment with this code; null if there is none. */
  find(codeHash: string): MaybePromise<OpenEnrolment | null>;
  /**
   * Decides about an enrolment, once. `confirmation`: null if it is denied. The confirmed device replaces an earlier
   * device of the same key.
   */
  decide(codeHash: string, confirmation: Confirmation | null): MaybePromise<Decided>;
  /** Returns what the store knows about a key; null if it knows nothing. */
  ofKey(keyId: string): MaybePromise<KeyHolder | null>;
  /** Returns a device; null if there is no such device. */
  get(key: ClientKey): MaybePromise<Device | null>;
  /** Notes that a device gets a token. If the key no longer has a device, notes nothing and returns false. */
  use(keyId: string, at: number): MaybePromise<boolean>;
  /** Lists devices, ordered by user and client. `userId` null: the devices of all users. */
  list(userId: string | null, page: PageRequest): MaybePromise<Scan<Device>>;
  /** Renames a device and returns it; null if there is no such device. */
  rename(key: ClientKey, name: string): MaybePromise<Device | null>;
  /** Removes a device and returns it; null if there is no such device. */
  remove(key: ClientKey): MaybePromise<Device | null>;
}

/**
 * The content of a proof, by which a device shows that it has the private key. A proof is valid once and for one
 * purpose.
 */
export type DeviceProof = {
  readonly keyId: string;
  /** The id of the proof, by which a second use is recognised. */
  readonly proofId: string;
  readonly purpose: ProofPurpose;
};
export type ProofPurpose = 'enrol' | 'token';

/** Checks the proofs of devices and signs their tokens. */
export interface DeviceCredentials {
  /** How long a proof is valid, in milliseconds. */
  readonly proofMs: number;
  /** Checks a proof. Throws `unauthenticated` if it is invalid, too old, or from the future. */
  readProof(proof: string): Promise<DeviceProof>;
  /**
   * Signs a token for a device. Its only scope is `connect`. `now`: the time of issue, in epoch milliseconds. Throws
   * `not_supported` if the relay has no secret.
   */
  sign(device: Device, now: number): Promise<{ readonly token: string; readonly expiresAt: number }>;
}

const noCredentials = (): never => fail('not_supported', 'This relay enrols no devices.');

export const NO_DEVICE_CREDENTIALS: DeviceCredentials = { proofMs: 0, readProof: noCredentials, sign: noCredentials };

/**
 * Returns the principal that a device's token stands for. The time of issue is the time at which the device was
 * confirmed.
 */
export function principalOfDevice({ userId, clientId, clientType, actions, at }: Device): UserPrincipal {
  const device = { clientId, clientType, actions };
  return {
    kind: 'user',
    userId,
    scopes: new Set(['connect']),
    expiresAt: null,
    token: { id: null, issuedAt: at },
    device,
  };
}

/** The characters of codes: consonants that are not easily confused. Without vowels, codes do not form words. */
export const CODE_CHARS = 'BCDFGHJKLMNPQRSTVWXZ';
export const CODE_LENGTH = 8;

const HALF = `[${CODE_CHARS}${CODE_CHARS.toLowerCase()}]{${CODE_LENGTH / 2}}`;
/** The pattern of a code as people enter it. */
export const CODE_PATTERN = `^${HALF}[ -]?${HALF}$`;
const CODE_FORM = new RegExp(CODE_PATTERN);

/**
 * Letters and digits of many scripts. Invisible characters, and characters that change the direction of text, are not
 * included.
 */
const NAME_CHARS = 'A-Za-z0-9\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3';
/** The pattern of a device's name. People decide by the name, so it must not be able to mislead them. */
export const DEVICE_NAME_PATTERN = `^[${NAME_CHARS}][${NAME_CHARS} ._-]{0,${DEVICE_NAME_CHARS - 1}}$`;
/** The pattern of an action pattern of a device. */
export const ACTION_PATTERN = '^[A-Za-z0-9_.:*-]{1,128}$';

/**
 * Returns a code in the form in which codes are compared: in capitals, without a separator. Throws `invalid_argument`.
 */
export function readCode(given: string): string {
  if (!CODE_FORM.test(given)) invalid('code', `expected ${CODE_LENGTH} letters, such as WDJB-MJHT`);
  return given.toUpperCase().replace(/[ -]/, '');
}

/**
 * Throws `forbidden` if a device's token is used for another client, or for another client type. `clientType`: null if
 * it was already checked.
 */
export function requireDevice(principal: Principal, clientId: string | null, clientType: string | null): void {
  const device = principal.kind === 'user' ? principal.device : undefined;
  if (device === undefined) return;
  if (clientId !== device.clientId) fail('forbidden', `The token is that of the device ${device.clientId}.`);
  if (clientType !== null && clientType !== device.clientType)
    fail('forbidden', `The device was enrolled with the client type ${device.clientType}.`);
}

/** Throws `forbidden` if a device advertises an action for which it was not enrolled. */
export function requireAdvertised(principal: Principal, actions: readonly { readonly name: string }[]): void {
  const limit = (principal.kind === 'user' && principal.device?.actions) || null;
  const refused = limit && actions.find(({ name }) => !matchesAny(limit, name));
  if (refused) fail('forbidden', `The device was enrolled without the action ${refused.name}.`);
}

/** Returns a code as people read it: two halves with a hyphen. */
export function showCode(code: string): string {
  return `${code.slice(0, CODE_LENGTH / 2)}-${code.slice(CODE_LENGTH / 2)}`;
}

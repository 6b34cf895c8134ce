/** Devices that a person has enrolled: their rows, the codes that they show before, and the port that keeps both. */
import { matchesAny } from '../auth/patterns.ts';
import type { Principal, UserPrincipal } from '../auth/principal.ts';
import type { ClientType } from '../connections/connection.ts';
import { fail, invalid } from '../errors.ts';
import type { ClientKey } from '../ids.ts';
import { DEVICE_NAME_CHARS } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { PageRequest, Scan } from '../page.ts';

/** What a device says of itself. `actions`: patterns of the only actions that it may advertise; null: any. */
export type DeviceClaims = {
  readonly name: string;
  readonly clientType: ClientType;
  readonly actions: readonly string[] | null;
};

/** An enrolment that no person has decided. Times are epoch milliseconds. */
export type OpenEnrolment = DeviceClaims & {
  /** The keyed digest of the code, which itself is not kept. */
  readonly codeHash: string;
  /** The thumbprint of the device's public key. */
  readonly keyId: string;
  /** The network from which the device asked. */
  readonly network: string;
  readonly at: number;
  readonly expiresAt: number;
};

/** A device that a person has confirmed: the client `clientId` of the user. */
export type Device = DeviceClaims &
  ClientKey & {
    readonly keyId: string;
    /** When it was confirmed, and by whom: `subjectOf` the person. */
    readonly at: number;
    readonly by: string;
    /** When it last got a token; null: never. */
    readonly usedAt: number | null;
  };

/** What a person decides. `clientId` null: the store takes the first of `proposed` that no device of the user has. */
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
  /** No open enrolment has this code: it was decided, has expired, or never was. */
  | { readonly kind: 'absent' }
  /** Another device of the user has the client id. The enrolment stays open. */
  | { readonly kind: 'taken' }
  /** The store keeps no more devices, or no more of this user. The enrolment stays open. */
  | { readonly kind: 'full' };

/** What is known of the holder of a key. */
type KeyHolder =
  | { readonly kind: 'device'; readonly device: Device }
  | { readonly kind: 'open'; readonly enrolment: OpenEnrolment }
  | { readonly kind: 'denied' };

/**
 * Keeps devices, and open enrolments until they expire. Each act is atomic. Devices are as durable as the store; open
 * enrolments may end early, with the process that keeps them. Throws `not_supported` if the store keeps no devices.
 */
export interface DeviceStore {
  /**
   * Opens an enrolment, in place of an open one of the same key. `taken`: an open enrolment of another key has this
   * code. `full`: there are as many as the store keeps, in all or of this network.
   */
  begin(enrolment: OpenEnrolment): MaybePromise<'begun' | 'taken' | 'full'>;
  /** Returns the open enrolment with this code; null if there is none. */
  find(codeHash: string): MaybePromise<OpenEnrolment | null>;
  /**
   * Decides an enrolment, once. `confirmation` null: it is denied. A confirmed device replaces one that the same key had.
   */
  decide(codeHash: string, confirmation: Confirmation | null): MaybePromise<Decided>;
  /** Returns the holder of a key; null if nothing is known of it. */
  ofKey(keyId: string): MaybePromise<KeyHolder | null>;
  /** Returns a device; null if there is none. */
  get(key: ClientKey): MaybePromise<Device | null>;
  /** Notes that a device gets a token. Returns false, and notes nothing, if the key has no device any more. */
  use(keyId: string, at: number): MaybePromise<boolean>;
  /** Lists devices by user and client; `userId` null: those of all users. */
  list(userId: string | null, page: PageRequest): MaybePromise<Scan<Device>>;
  /** Gives a device another name, and returns it; null if there is none. */
  rename(key: ClientKey, name: string): MaybePromise<Device | null>;
  /** Removes a device, and returns it; null if there is none. */
  remove(key: ClientKey): MaybePromise<Device | null>;
}

/** What a device proves: that it holds this key, once, and for which purpose. */
export type DeviceProof = {
  readonly keyId: string;
  /** The id of the proof. A proof counts once. */
  readonly proofId: string;
  readonly purpose: ProofPurpose;
};
export type ProofPurpose = 'enrol' | 'token';

/** The port that checks proofs of devices and signs their tokens. */
export interface DeviceCredentials {
  /** How long a proof may be accepted, in milliseconds. */
  readonly proofMs: number;
  /** Checks a proof. Throws `unauthenticated` if it is wrong, too old, or of the future. */
  readProof(proof: string): Promise<DeviceProof>;
  /**
   * Signs the token of a device, with the scope `connect` alone. `now`: its time of issue, in epoch milliseconds. Throws
   * `not_supported` if the relay has no secret.
   */
  sign(device: Device, now: number): Promise<{ readonly token: string; readonly expiresAt: number }>;
}

const noCredentials = (): never => fail('not_supported', 'This relay enrols no devices.');

export const NO_DEVICE_CREDENTIALS: DeviceCredentials = { proofMs: 0, readProof: noCredentials, sign: noCredentials };

/** Returns the principal of a device, as its token has it. A token counts as issued when the device was confirmed. */
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

/** The characters of codes: letters that look like no other one, without vowels, which would make words. */
export const CODE_CHARS = 'BCDFGHJKLMNPQRSTVWXZ';
export const CODE_LENGTH = 8;

const HALF = `[${CODE_CHARS}${CODE_CHARS.toLowerCase()}]{${CODE_LENGTH / 2}}`;
/** The form of a code as people enter it. */
export const CODE_PATTERN = `^${HALF}[ -]?${HALF}$`;
const CODE_FORM = new RegExp(CODE_PATTERN);

/** Letters and digits of many scripts, without those that look like nothing, or turn the direction of a text. */
const NAME_CHARS = 'A-Za-z0-9\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3';
/** The form of the name of a device. A person decides by it, so it must be what it looks like. */
export const DEVICE_NAME_PATTERN = `^[${NAME_CHARS}][${NAME_CHARS} ._-]{0,${DEVICE_NAME_CHARS - 1}}$`;
/** The form of a pattern of actions that a device may advertise. */
export const ACTION_PATTERN = '^[A-Za-z0-9_.:*-]{1,128}$';

/** Returns a code as it is compared: in capitals, and without what is between its halves. Throws `invalid_argument`. */
export function readCode(given: string): string {
  if (!CODE_FORM.test(given)) invalid('code', `expected ${CODE_LENGTH} letters, such as WDJB-MJHT`);
  return given.toUpperCase().replace(/[ -]/, '');
}

/** Throws `forbidden` if the token of a device is used for another client. `clientType` null: it is known already. */
export function requireDevice(principal: Principal, clientId: string | null, clientType: string | null): void {
  const device = principal.kind === 'user' ? principal.device : undefined;
  if (device === undefined) return;
  if (clientId !== device.clientId) fail('forbidden', `The token is that of the device ${device.clientId}.`);
  if (clientType !== null && clientType !== device.clientType)
    fail('forbidden', `The device was enrolled with the client type ${device.clientType}.`);
}

/** Throws `forbidden` if a device advertises what it was not enrolled for. */
export function requireAdvertised(principal: Principal, actions: readonly { readonly name: string }[]): void {
  const limit = (principal.kind === 'user' && principal.device?.actions) || null;
  const refused = limit && actions.find(({ name }) => !matchesAny(limit, name));
  if (refused) fail('forbidden', `The device was enrolled without the action ${refused.name}.`);
}

/** Returns a code as people read it: two halves. */
export function showCode(code: string): string {
  return `${code.slice(0, CODE_LENGTH / 2)}-${code.slice(CODE_LENGTH / 2)}`;
}

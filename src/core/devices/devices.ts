/** Enrols devices, issues tokens for proofs of their keys, and lists, renames and removes devices. */
import { requireScope, subjectOf, type CallingPrincipal, type Requester } from '../auth/principal.ts';
import { knownUser, readScope, seenActions, withoutLimit } from '../auth/sight.ts';
import { checkReason } from '../commands/operator-actions.ts';
import { listingOf, type PageArgs } from '../cursors.ts';
import type { Deps } from '../deps.ts';
import { fail, invalid, notFound } from '../errors.ts';
import { id, type ClientKey } from '../ids.ts';
import {
  CODE_TRIES,
  DEVICE_ACTIONS,
  DEVICE_NAME_CHARS,
  DEVICE_TOKENS,
  ENROLMENTS_BEGUN,
  ENROLMENTS_BEGUN_OF_NETWORK,
  ENROLMENT_MS,
} from '../limits.ts';
import { thenDo, type MaybePromise } from '../maybe-promise.ts';
import type { Page } from '../page.ts';
import { RateTable, SlidingWindow } from '../rates.ts';
import type { RevocationReceipt, Revocations } from '../revocations/revocations.ts';
import {
  ACTION_PATTERN,
  CODE_CHARS,
  CODE_LENGTH,
  DEVICE_NAME_PATTERN,
  principalOfDevice,
  readCode,
  showCode,
  type Device,
  type DeviceClaims,
  type DeviceCredentials,
  type DeviceProof,
  type OpenEnrolment,
  type ProofPurpose,
} from './device.ts';

/** How long a device should wait before it asks again whether it was confirmed, in milliseconds. */
const POLL_MS = 5_000;
/** How often a new code is tried if another enrolment already has the code. */
const CODE_ATTEMPTS = 5;
/** How many people (for wrong codes), networks (for enrolments) and devices (for tokens) the rate limits remember. */
const REMEMBERED = 10_000;
/**
 * How many random characters are appended to a device's name in its client id, if another device already has this name.
 */
const SUFFIX_CHARS = 4;
const NAME_FORM = new RegExp(DEVICE_NAME_PATTERN);
const ACTION_FORM = new RegExp(ACTION_PATTERN);
const NO_ENROLMENT = 'No open enrolment has this code.';

/** A device's request to be enrolled. `proof`: a proof with the purpose `enrol`. */
type EnrolRequest = Omit<DeviceClaims, 'actions'> & {
  readonly actions?: readonly string[] | null | undefined;
  readonly proof: string;
};

/** The code that the device shows. `now`: the relay's time, which the device uses for its next proofs. */
export type ShownCode = {
  readonly userCode: string;
  readonly expiresAt: number;
  readonly pollMs: number;
  readonly now: number;
};

/** The answer to a device that proves its key: a token, or how soon to ask again because no person has decided yet. */
export type DeviceAnswer = {
  readonly state: 'open' | 'confirmed';
  readonly device: Device | null;
  readonly token: string | null;
  readonly tokenExpiresAt: number | null;
  readonly pollMs: number;
  readonly now: number;
};

type DecideRequest = {
  readonly code: string;
  readonly decision: 'confirm' | 'deny';
  readonly userId?: string | null | undefined;
  readonly clientId?: string | null | undefined;
};

/** A device, and whether a revocation covers it. A revoked device gets no more tokens. */
export type DeviceView = Device & { readonly revoked: boolean };

type DevicesOptions = {
  readonly deps: Deps;
  readonly credentials: DeviceCredentials;
  readonly revocations: Pick<Revocations, 'revoke' | 'find' | 'loaded'>;
};

export type Devices = ReturnType<typeof createDevices>;

export function createDevices({ deps, credentials, revocations }: DevicesOptions) {
  const { backend, clock, crypto, cursors, log } = deps;
  const { devices: store, tickets } = backend;
  const tries = new RateTable(REMEMBERED, () => new SlidingWindow(clock, CODE_TRIES));
  const perNetwork = { most: ENROLMENTS_BEGUN_OF_NETWORK, ms: ENROLMENT_MS };
  const begunOf = new RateTable(REMEMBERED, () => new SlidingWindow(clock, perNetwork));
  const begunInAll = new SlidingWindow(clock, { most: ENROLMENTS_BEGUN, ms: ENROLMENT_MS });
  const perDevice = { most: DEVICE_TOKENS, ms: ENROLMENT_MS };
  const tokensOf = new RateTable(REMEMBERED, () => new SlidingWindow(clock, perDevice));
  // The digest uses a key, because codes are so short that a digest without a key could be reversed by trying all
  // codes.
  const hashOf = (code: string): string => crypto.sign(`enrolment ${code}`);
  const viewOf = (device: Device): DeviceView => ({
    ...device,
    revoked: revocations.find(principalOfDevice(device)) !== null,
  });

  const read = async (proof: string, purpose: ProofPurpose): Promise<DeviceProof> => {
    const found = await credentials.readProof(proof);
    return found.purpose === purpose ? found : fail('unauthenticated', 'The proof is for another purpose.');
  };
  /**
   * Marks a proof as used. Anyone can make proofs, so `rates` limit how many are remembered; a proof that is refused by
   * a rate is not remembered.
   */
  const useUp = async ({ keyId, proofId }: DeviceProof, rates: readonly SlidingWindow[]): Promise<void> => {
    const retryAfterMs = Math.max(...rates.map((rate) => rate.waitMs));
    if (retryAfterMs > 0) fail('rate_limited', 'There were too many proofs of devices.', { retryAfterMs });
    for (const rate of rates) rate.take();
    if (!(await tickets.take(crypto.sha256(`${keyId} ${proofId}`).slice(0, 32), credentials.proofMs)))
      fail('unauthenticated', 'The proof was used before.');
  };

  /**
   * Runs `use` for a code that a person entered. The attempt is counted as a wrong code before the look-up, and taken
   * back if the code is right.
   */
  const withCode = async <T>(
    person: CallingPrincipal,
    given: string,
    use: (codeHash: string) => MaybePromise<T | null>,
  ): Promise<T> => {
    const code = readCode(given);
    const window = tries.of(subjectOf(person));
    const retryAfterMs = window.take();
    if (retryAfterMs > 0) fail('rate_limited', 'Too many wrong codes.', { retryAfterMs });
    const found = await use(hashOf(code));
    if (found === null) return fail('not_found', NO_ENROLMENT);
    window.giveBack();
    return found;
  };

  return {
    /** Opens an enrolment, and returns the code that the device shows. Needs no token. */
    async begin(request: EnrolRequest, network: string): Promise<ShownCode> {
      const claims = readClaims(request);
      const proof = await read(request.proof, 'enrol');
      await useUp(proof, [begunOf.of(network), begunInAll]);
      const { keyId } = proof;
      const now = clock.now();
      const expiresAt = now + ENROLMENT_MS;
      for (let attempt = 0; attempt < CODE_ATTEMPTS; attempt++) {
        const code = randomChars(crypto, CODE_LENGTH);
        const begun = await store.begin({ ...claims, codeHash: hashOf(code), keyId, network, at: now, expiresAt });
        if (begun === 'begun') return { userCode: showCode(code), expiresAt, pollMs: POLL_MS, now };
        if (begun === 'full')
          fail('capacity_exceeded', 'Too many devices wait to be enrolled.', { retryAfterMs: ENROLMENT_MS / 10 });
      }
      return fail('capacity_exceeded', 'There are too few codes for so many enrolments.', { retryAfterMs: POLL_MS });
    },

    /** Returns what the device with this code says about itself, for the person who decides about it. */
    lookUp(requester: Requester, code: string): Promise<OpenEnrolment> {
      return withCode(requirePerson(requester), code, (hash) => store.find(hash));
    },

    /**
     * Confirms or denies the device that shows a code. The first decision is final. Returns null if the device was
     * denied.
     */
    async decide(requester: Requester, request: DecideRequest, requestId?: string | null): Promise<DeviceView | null> {
      const person = requirePerson(requester);
      // A device gets the scope `connect`, so only a person who has this scope may confirm one.
      requireScope(requester, 'connect');
      const { decision } = request;
      const code = readCode(request.code);
      const clientId =
        request.clientId === undefined || request.clientId === null ? null : id('client_id', request.clientId);
      const userId = userOf(person, request);
      // The code is looked up first, so that wrong codes make no audit rows.
      const { name } = await withCode(person, code, (hash) => store.find(hash));
      const act =
        person.kind === 'admin'
          ? await deps.audit.record(person, {
              action: 'enrol',
              subject: userId === '' ? {} : { userId },
              reason: decision,
              requestId,
            })
          : null;
      const by = subjectOf(person);
      const proposed = clientIdsOf(name, randomChars(crypto, SUFFIX_CHARS));
      const confirmation = decision === 'deny' ? null : { userId, clientId, proposed, at: clock.now(), by };
      const decided = await store.decide(hashOf(code), confirmation);
      await act?.end(decided.kind);
      if (decided.kind === 'absent') return fail('not_found', NO_ENROLMENT);
      if (decided.kind === 'taken') return invalid('client_id', 'another device of the user has it');
      if (decided.kind === 'full') return fail('capacity_exceeded', 'The relay keeps no more devices of this user.');
      if (decided.kind === 'denied') {
        log.info({ by }, 'a device was denied');
        return null;
      }
      const { device } = decided;
      log.info({ by, userId: device.userId, clientId: device.clientId }, 'a device was enrolled');
      return viewOf(device);
    },

    /**
     * Answers a device that proves its key. If a person has confirmed the device, the answer contains a token. Throws
     * `not_found` if the key is unknown, and `forbidden` if the device was denied or revoked. Needs no token.
     */
    async token(given: string): Promise<DeviceAnswer> {
      const proof = await read(given, 'token');
      const { keyId } = proof;
      const holder = await store.ofKey(keyId);
      const now = clock.now();
      if (holder === null) return fail('not_found', 'No device has this key.');
      if (holder.kind === 'denied') return fail('forbidden', 'The device was denied.');
      if (holder.kind === 'open')
        return { state: 'open', device: null, token: null, tokenExpiresAt: null, pollMs: POLL_MS, now };
      const { device } = holder;
      await revocations.loaded();
      if (revocations.find(principalOfDevice(device))) return fail('forbidden', 'The device was revoked.');
      await useUp(proof, [tokensOf.of(keyId)]);
      const { token, expiresAt } = await credentials.sign(device, now);
      // The device may have been removed since it was read. The revocation covers its tokens, even those that were
      // signed later.
      if (!(await store.use(keyId, now))) return fail('not_found', 'No device has this key.');
      return { state: 'confirmed', device, token, tokenExpiresAt: expiresAt, pollMs: POLL_MS, now };
    },

    /**
     * Lists devices, ordered by user and client. A user gets its own devices, and an administrator those of one user or
     * of all.
     */
    list(requester: Requester, given: string | null | undefined, args: PageArgs): MaybePromise<Page<DeviceView>> {
      const userId = readScope(requester, given);
      const listing = listingOf('devices', requester, userId);
      return thenDo(store.list(userId, cursors.request(listing, args)), (scan) =>
        cursors.page(listing, scan, ['devices', clock.now()], viewOf),
      );
    },

    /** Renames a device. */
    async rename(requester: Requester, key: ClientKey, name: string, requestId?: string | null): Promise<DeviceView> {
      const person = requirePerson(requester);
      const own = keyIn(person, key);
      const newName = readName(name);
      const act =
        person.kind === 'admin' ? await deps.audit.record(person, { action: 'rename', subject: own, requestId }) : null;
      const renamed = await store.rename(own, newName);
      await act?.end(renamed ? 'renamed' : 'absent');
      return renamed ? viewOf(renamed) : notFound();
    },

    /** Removes a device and revokes its tokens and links: see `Revocations.revoke`. */
    async remove(
      requester: Requester,
      { userId, clientId, reason }: ClientKey & { readonly reason: string },
      requestId?: string | null,
    ): Promise<RevocationReceipt> {
      const own = keyIn(requirePerson(requester), { userId, clientId });
      checkReason(reason);
      if ((await store.get(own)) === null) return notFound();
      // The revocation is stored first. If it fails, the device is still there and can be removed again.
      const receipt = await revocations.revoke(requester, { ...own, reason }, requestId);
      await store.remove(own);
      return receipt;
    },
  };
}

/**
 * Returns the requester if it may manage devices: no agent, no device, and no token that is limited to some actions.
 */
function requirePerson(requester: Requester): CallingPrincipal {
  const person = requireScope(requester, 'invoke');
  withoutLimit(seenActions(person));
  return person;
}

/** Returns the user to whom the device will belong. */
function userOf(person: CallingPrincipal, { userId, decision }: DecideRequest): string {
  if (userId === undefined || userId === null) {
    if (person.kind === 'user') return person.userId;
    return decision === 'deny'
      ? ''
      : fail('forbidden', 'An administrator names the user to whom the device shall belong.');
  }
  return knownUser(person, userId) ?? notFound();
}

function keyIn(person: CallingPrincipal, { userId, clientId }: ClientKey): ClientKey {
  return { userId: knownUser(person, userId) ?? notFound(), clientId: id('client_id', clientId) };
}

function readClaims({ name, clientType, actions = null }: EnrolRequest): DeviceClaims {
  if (actions !== null && (actions.length === 0 || actions.length > DEVICE_ACTIONS))
    invalid('actions', `expected 1 to ${DEVICE_ACTIONS} patterns`);
  if (actions?.some((pattern) => !ACTION_FORM.test(pattern)))
    invalid('actions', 'expected patterns of action names, such as "receipt.*"');
  return { name: readName(name), clientType, actions };
}

function readName(name: string): string {
  return NAME_FORM.test(name)
    ? name.trimEnd()
    : invalid('name', `expected 1 to ${DEVICE_NAME_CHARS} letters, digits, spaces and ". _ -"`);
}

/** Returns the client ids that a device with this name may get, in order of preference. */
function clientIdsOf(name: string, suffix: string): readonly string[] {
  const plain = name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replaceAll(/^[^a-z0-9]+|-+$/g, '');
  const base = plain === '' ? 'device' : plain;
  return [base, `${base}-${suffix.toLowerCase()}`];
}

function randomChars(crypto: Deps['crypto'], count: number): string {
  return Array.from({ length: count }, () => CODE_CHARS.charAt(crypto.randomInt(CODE_CHARS.length))).join('');
}

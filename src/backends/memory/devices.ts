/** Core's DeviceStore in memory: the enrolled devices and the open enrolments. */
import type { Confirmation, Decided, Device, DeviceStore, OpenEnrolment } from '../../core/devices/device.ts';
import { BoundedMap } from '../../core/collections.ts';
import { clientKeyText, type ClientKey } from '../../core/ids.ts';
import { DEVICES_MAX, DEVICES_OF_USER, ENROLMENTS_OF_NETWORK, ENROLMENTS_OPEN } from '../../core/limits.ts';
import { scanSorted, type Position } from '../../core/page.ts';
import type { Clock } from '../../core/ports.ts';
import { createSortedMap } from './sorted-map.ts';

/**
 * The sort key of a device in listings. A line feed separates the two ids, because it sorts before every character of
 * an id.
 */
const placeOf = ({ userId, clientId }: ClientKey): string => `${userId}\n${clientId}`;

/**
 * Core's DeviceStore in memory: the devices, the open enrolments, and the enrolments that were denied a short time ago.
 */
export class MemoryDevices implements DeviceStore {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #devices = createSortedMap<Device>();
  readonly #ofUsers = new Map<string, number>();
  readonly #byKey = new Map<string, Device>();
  /** The open enrolments by the digest of their codes, in the order in which the enrolments expire. */
  readonly #open = new Map<string, OpenEnrolment>();
  /** The keys that were denied last. The value is the expiry of the denied enrolment, in epoch milliseconds. */
  readonly #denied = new BoundedMap<string, number>({ most: ENROLMENTS_OPEN });

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  readonly begin: DeviceStore['begin'] = (enrolment) => {
    this.#expire();
    const known = this.#open.get(enrolment.codeHash);
    if (known && known.keyId !== enrolment.keyId) return 'taken';
    const others = [...this.#open.values()].filter(({ keyId }) => keyId !== enrolment.keyId);
    const ofNetwork = others.filter(({ network }) => network === enrolment.network);
    if (others.length >= ENROLMENTS_OPEN || ofNetwork.length >= ENROLMENTS_OF_NETWORK) return 'full';
    this.#close(enrolment.keyId);
    this.#denied.delete(enrolment.keyId);
    this.#open.set(enrolment.codeHash, enrolment);
    return 'begun';
  };

  readonly find: DeviceStore['find'] = (codeHash) => {
    this.#expire();
    return this.#open.get(codeHash) ?? null;
  };

  readonly decide = (codeHash: string, confirmation: Confirmation | null): Decided => {
    this.#expire();
    const enrolment = this.#open.get(codeHash);
    if (!enrolment) return { kind: 'absent' };
    if (confirmation === null) {
      this.#open.delete(codeHash);
      this.#denied.set(enrolment.keyId, enrolment.expiresAt);
      return { kind: 'denied' };
    }
    const { userId, proposed, at, by } = confirmation;
    const before = this.#byKey.get(enrolment.keyId);
    const isFree = (clientId: string): boolean => {
      const holder = this.#devices.get(placeOf({ userId, clientId }));
      return holder === undefined || holder === before;
    };
    const clientId = (confirmation.clientId === null ? proposed : [confirmation.clientId]).find(isFree);
    if (clientId === undefined) return { kind: 'taken' };
    if (this.#devices.size >= DEVICES_MAX || (this.#ofUsers.get(userId) ?? 0) >= DEVICES_OF_USER)
      return { kind: 'full' };
    const { name, clientType, actions, keyId } = enrolment;
    const device: Device = { userId, clientId, name, clientType, actions, keyId, at, by, usedAt: null };
    this.#open.delete(codeHash);
    this.put(device);
    return { kind: 'confirmed', device };
  };

  readonly ofKey: DeviceStore['ofKey'] = (keyId) => {
    this.#expire();
    const device = this.#byKey.get(keyId);
    const enrolment = this.#open.values().find((one) => one.keyId === keyId);
    if (enrolment) return { kind: 'open', enrolment };
    if ((this.#denied.get(keyId) ?? 0) > this.#clock.now()) return { kind: 'denied' };
    return device ? { kind: 'device', device } : null;
  };

  readonly get = (key: ClientKey): Device | null => this.#devices.get(placeOf(key)) ?? null;

  readonly use = (keyId: string, at: number): boolean => this.note(keyId, at) !== null;

  readonly list: DeviceStore['list'] = (userId, page) => {
    const after = page.after === null ? null : placeOfPosition(page.after);
    const from = userId === null ? null : placeOf({ userId, clientId: '' });
    const rows = this.#devices.values({ after, from });
    const ofUser = userId === null ? rows : takeWhile(rows, (device) => device.userId === userId);
    return scanSorted(ofUser, page, ({ userId: user, clientId }) => [user, clientId]);
  };

  readonly rename = (key: ClientKey, name: string): Device | null => {
    const device = this.get(key);
    if (device) this.put({ ...device, name });
    return this.get(key);
  };

  readonly remove = (key: ClientKey): Device | null => {
    const device = this.get(key);
    if (!device) return null;
    this.#devices.delete(placeOf(key));
    this.#byKey.delete(device.keyId);
    const left = (this.#ofUsers.get(key.userId) ?? 0) - 1;
    if (left > 0) this.#ofUsers.set(key.userId, left);
    else this.#ofUsers.delete(key.userId);
    return device;
  };

  /** Records the time at which a device gets a token, and returns the device; null if no device has this key. */
  note(keyId: string, at: number): Device | null {
    const device = this.#byKey.get(keyId);
    if (!device) return null;
    const used = { ...device, usedAt: at };
    this.put(used);
    return used;
  }

  /** Stores a device. It replaces the device that has the same key and the device that has the same client id. */
  put(device: Device): void {
    const before = this.#byKey.get(device.keyId);
    if (before && clientKeyText(before) !== clientKeyText(device)) this.remove(before);
    const { userId } = device;
    const replaced = this.get(device);
    if (replaced) this.#byKey.delete(replaced.keyId);
    else this.#ofUsers.set(userId, (this.#ofUsers.get(userId) ?? 0) + 1);
    this.#devices.set(placeOf(device), device);
    this.#byKey.set(device.keyId, device);
  }

  all(): IteratorObject<Device> {
    return this.#devices.values();
  }

  #close(keyId: string): void {
    for (const [codeHash, one] of this.#open) if (one.keyId === keyId) this.#open.delete(codeHash);
  }

  #expire(): void {
    const now = this.#clock.now();
    for (const [codeHash, { expiresAt }] of this.#open) {
      if (expiresAt > now) break;
      this.#open.delete(codeHash);
    }
  }
}

function placeOfPosition([userId = '', clientId = '']: Position): string {
  return placeOf({ userId, clientId });
}

function* takeWhile<T>(rows: Iterable<T>, keep: (row: T) => boolean): Generator<T> {
  for (const row of rows) {
    if (!keep(row)) return;
    yield row;
  }
}

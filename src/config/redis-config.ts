/** Reads the settings of the Redis that the nodes of a deployment share. */
import { createSecureContext } from 'node:tls';
import type { InputError } from '../core/errors.ts';
import type { SettingName, SettingValues } from '../settings.ts';
import { textOf, type SettingText } from './setting-texts.ts';

/** The certificate authorities for Redis' certificate, and the relay's own certificate and key, as PEM texts. */
export type RedisCertificates = { readonly ca?: string; readonly cert?: string; readonly key?: string };

export type RedisConfig = {
  /** The URL of Redis. It may contain a password, so it must never be logged or printed. */
  readonly url: string;
  /**
   * Where the store decides. `owned`: in the relays, each for the users that it owns; Redis stores their logs. `redis`:
   * in Redis, by scripts. Absent: `owned`.
   */
  readonly store?: 'owned' | 'redis';
  readonly partitions: number;
  /**
   * The durability of the store, as the operator declares it. Null: the relay uses what Redis reports, and requires
   * that Redis writes to disk.
   */
  readonly durability: 'memory' | 'aof_everysec' | 'aof_always' | null;
  readonly namespace: string;
  readonly strictMigration: boolean;
  /** The certificates for TLS. Absent: the authorities that Node trusts. */
  readonly certificates?: RedisCertificates;
  /** The keys that an earlier system uses in the same Redis. */
  readonly legacy: { readonly commandStream: string | null; readonly pending: string | null };
};

export function redisOf(settings: SettingValues): RedisConfig | null {
  if (settings.REDIS_URL === undefined) return null;
  return {
    url: settings.REDIS_URL,
    store: settings.STORE,
    partitions: settings.PARTITIONS,
    durability: settings.DURABILITY ?? null,
    namespace: settings.NAMESPACE,
    strictMigration: settings.STRICT_MIGRATION,
    legacy: { commandStream: settings.LEGACY_COMMAND_STREAM ?? null, pending: settings.LEGACY_PENDING ?? null },
  };
}

/** Returns the texts of the files of REDIS_TLS_CA, REDIS_TLS_CERT and REDIS_TLS_KEY. Adds faults to `faults`. */
export function redisCertificatesOf(
  given: ReadonlyMap<SettingName, SettingText>,
  faults: InputError[],
): RedisCertificates {
  const textIn = (name: SettingName): string | null => {
    const at = given.get(name);
    return at ? textOf(at, faults) : null;
  };
  const [certFile, keyFile] = [given.get('REDIS_TLS_CERT'), given.get('REDIS_TLS_KEY')];
  const alone = certFile && keyFile ? undefined : (certFile ?? keyFile);
  if (alone) faults.push({ parameter: alone.shownAs, detail: `needs REDIS_TLS_${certFile ? 'KEY' : 'CERT'} too` });
  const [ca, cert, key] = [textIn('REDIS_TLS_CA'), textIn('REDIS_TLS_CERT'), textIn('REDIS_TLS_KEY')];
  const texts = { ...(ca !== null && { ca }), ...(cert !== null && { cert }), ...(key !== null && { key }) };
  try {
    createSecureContext(texts);
  } catch {
    // OpenSSL's error is not shown, because it may quote the key.
    const at = given.get('REDIS_TLS_CERT') ?? given.get('REDIS_TLS_CA');
    if (at)
      faults.push({
        parameter: at.shownAs,
        detail: 'the certificates and the key are not PEM texts that fit together',
      });
  }
  return texts;
}

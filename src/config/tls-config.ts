/** Reads the certificate and the key with which the relay serves TLS. */
import { createSecureContext } from 'node:tls';
import type { InputError } from '../core/errors.ts';
import type { SettingName } from '../settings.ts';
import { textOf, type SettingText } from './setting-texts.ts';

/** A certificate and its key, as PEM texts. The chain may follow the certificate. */
export type TlsConfig = { readonly cert: string; readonly key: string };

/**
 * Returns the texts of the files that TLS_CERT and TLS_KEY name; null if neither is set. If there is a fault, adds it
 * to `faults` and returns null.
 */
export function tlsOf(given: ReadonlyMap<SettingName, SettingText>, faults: InputError[]): TlsConfig | null {
  const [certFile, keyFile] = [given.get('TLS_CERT'), given.get('TLS_KEY')];
  if (!certFile || !keyFile) {
    const alone = certFile ?? keyFile;
    const missing = certFile ? 'TLS_KEY' : 'TLS_CERT';
    if (alone) faults.push({ parameter: alone.shownAs, detail: `needs ${missing} too` });
    return null;
  }
  const cert = textOf(certFile, faults);
  const key = textOf(keyFile, faults);
  if (cert === null || key === null) return null;
  try {
    createSecureContext({ cert, key });
    return { cert, key };
  } catch {
    // OpenSSL's error is not shown, because it may quote the key.
    faults.push({
      parameter: certFile.shownAs,
      detail: 'the certificate and the key are not PEM texts that fit together',
    });
    return null;
  }
}

/**
 * Keeps the token of this tab in memory and in session storage, which lasts as long as the tab. A token must never be
 * in a cookie, a URL or local storage.
 */
import { signal } from '@preact/signals';
import { RELAY_PATH } from './base.ts';
import { textMember } from './json-member.ts';
import { recall, keep } from './browser-storage.ts';
import { LEFT, tabs } from './tab-channel.ts';

const KEY = 'callboard:token';

/**
 * Why the tab is not signed in. `none`: it has had no token yet, or the user signed out. `expired`: its token expired,
 * or the relay rejected it. `refused`: a sign-in link did not work, for the reason in `message`.
 */
type SignedOut = { readonly why: 'none' | 'expired' | 'refused'; readonly message: string | null };

const stored = recall('session', KEY);

export const token = signal<string | null>(stored);

/** Why the tab is signed out; null while it is signed in. */
export const signedOut = signal<SignedOut | null>(stored === null ? { why: 'none', message: null } : null);

/** The number of sign-ins so far. Pages watch it in order to repeat failed requests. */
export const signIns = signal(0);

export function signIn(given: string): void {
  token.value = given;
  signedOut.value = null;
  signIns.value += 1;
  keep('session', KEY, given);
  keep('session', LEFT, null);
}

/** Shows the sign-in form in front of the page. Does nothing if the tab already has another token than `refused`. */
export function signOutOf(refused: string, why: SignedOut['why'], message: string | null): void {
  if (token.value !== refused) return;
  token.value = null;
  signedOut.value = { why, message };
  keep('session', KEY, null);
}

/** Signs out this tab and all tabs of this browser that have the same token, and revokes the token. */
export function signOut(): void {
  const given = token.value;
  leave();
  if (given === null) return;
  tabs?.postMessage({ kind: 'sign-out', token: given });
  revoke(given);
}

/**
 * Revokes a token by its id. Does nothing if the token has no id, as a configured token. The answer is ignored: the tab
 * has already forgotten the token, and some stores cannot store revocations.
 */
function revoke(given: string): void {
  const tokenId = tokenIdOf(given);
  if (tokenId === null) return;
  void fetch(`${RELAY_PATH}/revocations`, {
    method: 'POST',
    // The request must survive if the user leaves the page now.
    keepalive: true,
    headers: { authorization: `Bearer ${given}`, 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ token_id: tokenId, reason: 'Signed out of the console.' }),
  }).catch(() => {});
}

/** Reads the id (`jti`) of a signed token; null if the token has none. */
export function tokenIdOf(given: string): string | null {
  try {
    const claims: unknown = JSON.parse(atob((given.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/')));
    return textMember(claims, 'jti');
  } catch {
    return null;
  }
}

export function leave(): void {
  token.value = null;
  signedOut.value = { why: 'none', message: null };
  keep('session', KEY, null);
  keep('session', LEFT, 'yes');
}

/**
 * Keeps the token of this tab in memory and in session storage, which ends with the tab; never in a cookie, in a URL or
 * in local storage.
 */
import { signal } from '@preact/signals';
import { recall, keep } from './kept-texts.ts';
import { LEFT, tabs } from './tab-channel.ts';

const KEY = 'callboard:token';

/**
 * The reason why the tab is not signed in. `none`: it has had no token yet, or the user signed out. `expired`: its
 * token expired, or the relay rejected it. `refused`: a sign-in link did not work; `message` says why.
 */
type SignedOut = { readonly why: 'none' | 'expired' | 'refused'; readonly message: string | null };

const stored = recall('session', KEY);

export const token = signal<string | null>(stored);

/** The reason why the tab is signed out; null while it is signed in. */
export const signedOut = signal<SignedOut | null>(stored === null ? { why: 'none', message: null } : null);

/** The number of sign-ins. Pages watch it to repeat requests that failed. */
export const signIns = signal(0);

export function signIn(given: string): void {
  token.value = given;
  signedOut.value = null;
  signIns.value += 1;
  keep('session', KEY, given);
  keep('session', LEFT, null);
}

/** Shows the sign-in form in front of the page. Does nothing if the tab already has a token other than `refused`. */
export function signOutOf(refused: string, why: SignedOut['why'], message: string | null): void {
  if (token.value !== refused) return;
  token.value = null;
  signedOut.value = { why, message };
  keep('session', KEY, null);
}

/** Signs this tab out, and the other tabs of this browser that have the same token. */
export function signOut(): void {
  const given = token.value;
  leave();
  if (given !== null) tabs?.postMessage({ kind: 'sign-out', token: given });
}

export function leave(): void {
  token.value = null;
  signedOut.value = { why: 'none', message: null };
  keep('session', KEY, null);
  keep('session', LEFT, 'yes');
}

/**
 * Keeps the token of this tab in memory and in session storage, which ends with the tab; never in a cookie, in a URL or
 * in local storage. Also redeems the code of a sign-in link, and keeps texts in the browser's storage.
 */
import { signal } from '@preact/signals';
import { RELAY_PATH } from './base.ts';

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
}

/** Shows the sign-in form in front of the page. Does nothing if the tab already has a token other than `refused`. */
export function signOutOf(refused: string, why: SignedOut['why'], message: string | null): void {
  if (token.value !== refused) return;
  token.value = null;
  signedOut.value = { why, message };
  keep('session', KEY, null);
}

export function signOut(): void {
  token.value = null;
  signedOut.value = { why: 'none', message: null };
  keep('session', KEY, null);
}

/** Shows a message about an unusable link on the sign-in form. Does nothing if the tab is signed in. */
function explainSignIn(message: string): void {
  if (token.value === null) signedOut.value = { why: 'refused', message };
}

// Signs the tab in with the one-time code of a link: `<base>/console/#code=...`. Browsers do not send fragments to
// servers.

/**
 * Exchanges the code in the URL's fragment for a token, and removes the code from the URL. Does nothing without a code.
 * If the relay refuses the code, the sign-in form says so. Never rejects.
 */
export async function redeemTicketOfUrl(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get('code');
  if (code === null) return;
  history.replaceState(history.state, '', location.pathname + location.search);
  try {
    const answer = await fetch(`${RELAY_PATH}/sign-in`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ code }),
    });
    const body: unknown = await answer.json();
    const given = answer.ok ? textMember(body, 'token') : null;
    if (given !== null) return signIn(given);
    explainSignIn(textMember(body, 'detail') ?? 'The relay did not accept the link. Paste a token instead.');
  } catch {
    explainSignIn('The relay could not be reached, so the link was not used. Load the page again, or paste a token.');
  }
}

function textMember(body: unknown, name: string): string | null {
  if (typeof body !== 'object' || body === null) return null;
  const value: unknown = Object.entries(body).find(([key]) => key === name)?.[1];
  return typeof value === 'string' ? value : null;
}

// Keeps texts in the browser: for as long as the tab, or for good. Browsers may block that, and then a text lasts as
// long as the page.

type Keeper = 'session' | 'local';

export function recall(keeper: Keeper, key: string): string | null {
  try {
    return storageOf(keeper).getItem(key);
  } catch {
    return null;
  }
}

/** Keeps the text; null removes it. */
export function keep(keeper: Keeper, key: string, value: string | null): void {
  try {
    if (value === null) storageOf(keeper).removeItem(key);
    else storageOf(keeper).setItem(key, value);
  } catch {
    // The browser blocks storage.
  }
}

function storageOf(keeper: Keeper): Storage {
  return keeper === 'session' ? sessionStorage : localStorage;
}

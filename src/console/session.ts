/**
 * Keeps the token of this tab in memory and in session storage, which ends with the tab; never in a cookie, in a URL or
 * in local storage. Also hands the token to another tab of this browser, redeems the code of a sign-in link, and keeps
 * texts in the browser's storage.
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
  keep('session', LEFT, null);
}

/** Shows the sign-in form in front of the page. Does nothing if the tab already has a token other than `refused`. */
export function signOutOf(refused: string, why: SignedOut['why'], message: string | null): void {
  if (token.value !== refused) return;
  token.value = null;
  signedOut.value = { why, message };
  keep('session', KEY, null);
}

/** Signs this tab out, and the other tabs of this browser that have the same token, and revokes the token. */
export function signOut(): void {
  const given = token.value;
  leave();
  if (given === null) return;
  tabs?.postMessage({ kind: 'sign-out', token: given });
  revoke(given);
}

/**
 * Revokes a token by its id. Does nothing for a token without one, such as a configured one. Nobody waits for the answer:
 * the tab has forgotten the token, and a store may keep no revocations.
 */
function revoke(given: string): void {
  const tokenId = tokenIdOf(given);
  if (tokenId === null) return;
  void fetch(`${RELAY_PATH}/revocations`, {
    method: 'POST',
    // The page may be left at once.
    keepalive: true,
    headers: { authorization: `Bearer ${given}`, 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ token_id: tokenId, reason: 'Signed out of the console.' }),
  }).catch(() => {});
}

/** Reads the id (`jti`) of a signed token; null if it has none. */
function tokenIdOf(given: string): string | null {
  try {
    const claims: unknown = JSON.parse(atob((given.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/')));
    return textMember(claims, 'jti');
  } catch {
    return null;
  }
}

function leave(): void {
  token.value = null;
  signedOut.value = { why: 'none', message: null };
  keep('session', KEY, null);
  keep('session', LEFT, 'yes');
}

/** Shows a message about an unusable link on the sign-in form. Does nothing if the tab is signed in. */
function explainSignIn(message: string): void {
  if (token.value === null) signedOut.value = { why: 'refused', message };
}

// Hands the token to another tab of this browser, so that a page can be opened in a second tab. Every script of the
// origin can read the channel, so tabs share a token only if the relay has its origin to itself: without a base path.

/** In session storage: the user signed this tab out, so it takes no token of another tab. */
const LEFT = 'callboard:signed-out';
/**
 * The time for which a tab shows no sign-in form while it waits for answers of other tabs, and the time in which answers
 * count: a later one may be for another tab. Milliseconds.
 */
const FIRST_MS = 250;
const LATEST_MS = 10_000;

const tabs: BroadcastChannel | null =
  RELAY_PATH === '' && 'BroadcastChannel' in globalThis ? new BroadcastChannel('callboard:session') : null;

/** When the user did something in this tab last, in epoch milliseconds. */
let usedAt = Date.now();
/** Whether the user pressed a key or a button in this tab. */
let isUsed = false;
for (const name of ['pointerdown', 'keydown']) addEventListener(name, () => (usedAt = Date.now()), true);
// The focus of the window alone: the page itself moves the focus between its elements.
addEventListener('focus', () => (usedAt = Date.now()));
for (const name of ['pointerdown', 'keydown']) addEventListener(name, () => (isUsed = true), true);

tabs?.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
  const given = token.value;
  if (given === null) return;
  const kind = textMember(data, 'kind');
  if (kind === 'ask') tabs.postMessage({ kind: 'answer', token: given, usedAt });
  if (kind === 'sign-out' && textMember(data, 'token') === given) leave();
});

/**
 * Signs this tab in with the token of the tab that was used last. Does nothing if this tab is signed in, if the user
 * signed it out, or if no other tab answers. Resolves with the first answer, or after FIRST_MS. A later answer of a tab
 * that was used more recently replaces the token, until LATEST_MS or until the user does something here. Never rejects.
 */
export async function takeTokenOfOtherTab(): Promise<void> {
  if (tabs === null || !isWithoutToken()) return;
  const first = Promise.withResolvers<void>();
  let taken: { readonly token: string; readonly usedAt: number } | null = null;
  const listen = ({ data }: MessageEvent<unknown>): void => {
    const offered = textMember(data, 'kind') === 'answer' ? textMember(data, 'token') : null;
    const at = Number(memberOf(data, 'usedAt'));
    if (offered === null || at <= (taken?.usedAt ?? -Infinity)) return;
    if (taken ? token.value !== taken.token || isUsed : !isWithoutToken()) return;
    taken = { token: offered, usedAt: at };
    if (offered !== token.value) signIn(offered);
    first.resolve();
  };
  tabs.addEventListener('message', listen);
  tabs.postMessage({ kind: 'ask' });
  setTimeout(() => tabs.removeEventListener('message', listen), LATEST_MS);
  await Promise.race([first.promise, pause(FIRST_MS)]);
}

/** Whether this tab is not signed in, and the user has not signed it out. */
function isWithoutToken(): boolean {
  return token.value === null && recall('session', LEFT) === null;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

// Signs the tab in with the one-time code of a link, `<base>/console/#code=...`, whose fragment no server gets.

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
  const value = memberOf(body, name);
  return typeof value === 'string' ? value : null;
}

function memberOf(body: unknown, name: string): unknown {
  if (typeof body !== 'object' || body === null) return undefined;
  return Object.entries(body).find(([key]) => key === name)?.[1];
}

// Keeps texts in the browser. If the browser blocks that, a text lasts as long as the page.

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

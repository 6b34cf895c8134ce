/**
 * Passes the token to other tabs of this browser, so that a page can be opened in a second tab. All scripts of the
 * origin can read the channel, so tabs share a token only if the relay does not share its origin, which means that it
 * has no base path.
 */
import { recall } from './browser-storage.ts';
import { token, leave, signIn } from './session.ts';
import { textMember, memberOf } from './json-member.ts';
import { tabs, LEFT } from './tab-channel.ts';

const channel = tabs;

/**
 * `FIRST_MS`: how long a tab waits for an answer before it shows the sign-in form. `LATEST_MS`: how long an answer
 * counts, because a later one may be meant for another tab. Milliseconds.
 */
const FIRST_MS = 250;
const LATEST_MS = 10_000;

/** The time of the user's last activity in this tab, in epoch milliseconds. */
let usedAt = Date.now();
/** Whether the user has pressed a key or a mouse button in this tab. */
let isUsed = false;
for (const name of ['pointerdown', 'keydown']) addEventListener(name, () => (usedAt = Date.now()), true);
// Counts only the focus of the window, because the page itself moves the focus between its elements.
addEventListener('focus', () => (usedAt = Date.now()));
for (const name of ['pointerdown', 'keydown']) addEventListener(name, () => (isUsed = true), true);

channel?.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
  const given = token.value;
  if (given === null) return;
  const kind = textMember(data, 'kind');
  if (kind === 'ask') channel.postMessage({ kind: 'answer', token: given, usedAt });
  if (kind === 'sign-out' && textMember(data, 'token') === given) leave();
});

/**
 * Signs this tab in with the token of the tab that was used last. Does nothing if this tab is signed in, if the user
 * signed it out, or if no other tab answers. Resolves at the first answer, or after FIRST_MS. A later answer replaces
 * the token if it comes from a tab that was used more recently, until LATEST_MS have passed or the user does something
 * in this tab. Never rejects.
 */
export async function takeTokenOfOtherTab(): Promise<void> {
  if (channel === null || !isWithoutToken()) return;
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
  channel.addEventListener('message', listen);
  channel.postMessage({ kind: 'ask' });
  setTimeout(() => channel.removeEventListener('message', listen), LATEST_MS);
  await Promise.race([first.promise, pause(FIRST_MS)]);
}

/** Whether this tab is not signed in, and the user has not signed it out. */
function isWithoutToken(): boolean {
  return token.value === null && recall('session', LEFT) === null;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

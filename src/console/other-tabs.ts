/**
 * Hands the token to another tab of this browser, so that a page can be opened in a second tab. Every script of the
 * origin can read the channel, so tabs share a token only if the relay has its origin to itself: without a base path.
 */
import { recall } from './kept-texts.ts';
import { token, leave, signIn } from './session.ts';
import { textMember, memberOf } from './json-member.ts';
import { tabs, LEFT } from './tab-channel.ts';

const channel = tabs;

/**
 * The time for which a tab shows no sign-in form while it waits for answers of other tabs, and the time in which answers
 * count: a later one may be for another tab. Milliseconds.
 */
const FIRST_MS = 250;
const LATEST_MS = 10_000;

/** When the user did something in this tab last, in epoch milliseconds. */
let usedAt = Date.now();
/** Whether the user pressed a key or a button in this tab. */
let isUsed = false;
for (const name of ['pointerdown', 'keydown']) addEventListener(name, () => (usedAt = Date.now()), true);
// The focus of the window alone: the page itself moves the focus between its elements.
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
 * signed it out, or if no other tab answers. Resolves with the first answer, or after FIRST_MS. A later answer of a tab
 * that was used more recently replaces the token, until LATEST_MS or until the user does something here. Never rejects.
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

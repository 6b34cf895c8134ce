/**
 * Signs the tab in with the one-time code of a link, `<base>/console/#code=...`. The code is in the fragment, which
 * browsers send to no server.
 */
import { RELAY_PATH } from './base.ts';
import { textMember } from './json-member.ts';
import { token, signedOut, signIn } from './session.ts';

/** Shows on the sign-in form why a link cannot be used. Does nothing if the tab is signed in. */
function explainSignIn(message: string): void {
  if (token.value === null) signedOut.value = { why: 'refused', message };
}

/**
 * Exchanges the code in the URL's fragment for a token, and removes the code from the URL. Does nothing if there is no
 * code. If the relay refuses the code, the sign-in form says so. Never rejects.
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

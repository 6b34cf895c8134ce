/** Shows the form that asks for a token: as a page of its own, or in front of the page whose token has expired. */
import { useState } from 'preact/hooks';
import { ViewerDocument } from '../../../generated/console.ts';
import { RequestError } from '../api/request.ts';
import { RELAY_PATH } from '../base.ts';
import { signIn, signedOut, type SignedOut } from '../session.ts';
import { Dialog } from '../ui/dialogs.tsx';
import { Mark, Icon } from '../ui/values.tsx';

/** Shows the sign-in page, before anybody has signed in. */
export function SignInPage() {
  return (
    <main class="signin-page">
      <p class="brand">
        <Mark />
        <span>Callboard</span>
      </p>
      <h1>Sign in</h1>
      <SignInForm />
    </main>
  );
}

/** Shows the sign-in form in front of the page, which stays as it is. */
export function SignInAgain() {
  return (
    <Dialog title="Sign in again to go on" onClose={() => undefined}>
      <p class="soft">Your token is no longer valid. This page and its filters stay as they are.</p>
      <SignInForm />
    </Dialog>
  );
}

function SignInForm() {
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const shown = problem ?? messageOf(signedOut.value);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const given = String(new FormData(event.currentTarget).get('token') ?? '').trim();
    if (given === '' || busy) return;
    setBusy(true);
    check(given).then(
      () => signIn(given),
      (error: unknown) => {
        setProblem(error instanceof RequestError ? error.message : String(error));
        setBusy(false);
      },
    );
  };
  return (
    <form class="signin" onSubmit={submit}>
      <div class="field">
        <label for="token">Token</label>
        <input
          class="in"
          id="token"
          name="token"
          type="password"
          autocomplete="off"
          required
          autofocus
          aria-invalid={shown !== null}
          aria-describedby="token-hint"
        />
        {shown !== null && (
          <p class="err" role="alert">
            <Icon name="warn" />
            {shown}
          </p>
        )}
        <p class="hint" id="token-hint">
          An administrator’s token, or a user’s. Or run <code>callboard console</code> and open the link that it prints.
          The token is kept until this tab is closed.
        </p>
      </div>
      <button class="btn btn-primary" type="submit">
        {busy ? 'Signing in…' : 'Sign in'}
      </button>
    </form>
  );
}

function messageOf(state: SignedOut | null): string | null {
  return state?.why === 'refused' ? state.message : null;
}

/** Asks the relay whether it accepts the token. Rejects with RequestError if it does not. */
async function check(given: string): Promise<void> {
  const answer = await fetch(`${RELAY_PATH}/graphql`, {
    method: 'POST',
    headers: { authorization: `Bearer ${given}`, 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ query: ViewerDocument.toString() }),
  }).catch(() => null);
  if (answer === null) throw new RequestError('unreachable', 'The relay does not answer. Try again in a moment.');
  const text = await answer.text();
  if (answer.ok && !text.includes('"errors"')) return;
  throw answer.status === 429
    ? new RequestError('rate_limited', 'Too many wrong tokens came from here. Wait a minute, then try again.')
    : new RequestError('unauthenticated', 'The relay does not accept this token.');
}

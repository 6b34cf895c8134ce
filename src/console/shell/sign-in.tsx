/** Shows the form that asks for a token, as a page of its own or in front of a page whose token has expired. */
import { useState } from 'preact/hooks';
import { ViewerDocument } from '../../../generated/console.ts';
import { RequestError, errorOf } from '../api/request.ts';
import { RELAY_PATH } from '../base.ts';
import { signIn, signedOut } from '../session.ts';
import { Dialog } from '../ui/dialogs.tsx';
import { Fault } from '../ui/payload.tsx';
import { Mark } from '../ui/shapes.tsx';

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
  const out = signedOut.value;
  const shown = problem ?? (out?.why === 'refused' ? out.message : null);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const given = String(new FormData(event.currentTarget).get('token') ?? '').trim();
    if (given === '' || busy) return;
    setBusy(true);
    check(given).then(
      () => signIn(given),
      (error: unknown) => {
        setProblem(errorOf(error).message);
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
        {shown !== null && <Fault text={shown} />}
        <p class="hint" id="token-hint">
          An administrator’s token, or a user’s. Or run <code>npm run callboard console</code> in the relay’s clone,{' '}
          <code>npx callboard console</code> elsewhere, and open the link that it prints. The token is kept until this
          tab is closed.
        </p>
      </div>
      <button class="btn btn-primary" type="submit">
        {busy ? 'Signing in…' : 'Sign in'}
      </button>
    </form>
  );
}

/** Checks with the relay whether it accepts the token. Rejects with RequestError if it does not. */
async function check(given: string): Promise<void> {
  const answer = await fetch(`${RELAY_PATH}/graphql`, {
    method: 'POST',
    headers: { authorization: `Bearer ${given}`, 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ query: ViewerDocument.toString() }),
  }).catch(() => null);
  if (answer === null) throw new RequestError('unreachable', 'The relay does not answer. Try again in a moment.');
  const text = await answer.text();
  if (answer.ok && !text.includes('"errors"')) return;
  if (answer.status === 429)
    throw new RequestError('rate_limited', 'Too many wrong tokens came from here. Wait a minute, then try again.');
  throw text.includes('"forbidden"')
    ? new RequestError('forbidden', 'This token may not read anything: a user’s token needs the scope “invoke”.')
    : new RequestError('unauthenticated', 'The relay does not accept this token.');
}

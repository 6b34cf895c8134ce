/**
 * An app with React: shows a user's clients, and adds a note at one of them. A call that is running survives a reload of
 * the page: it is found again by its handle, and runs once.
 */
import { createHttpCaller, type Handle } from 'callboard-client/caller';
import { createLive } from 'callboard-client/live';
import { CallboardProvider, useAction, useCommand, useConnections, type CallState } from 'callboard-client/react';
import { StrictMode, useEffect, useState, type SubmitEvent } from 'react';
import { createRoot } from 'react-dom/client';

type Result = { readonly count: number };
type Progress = { readonly done: number; readonly of: number };

// The page's own server says where the relay is, and issues tokens of the signed-in user with the scope `invoke`.
const { relay, userId } = await (await fetch('/settings')).json();
const token = async (): Promise<string> => (await fetch('/token')).text();
const clients = {
  caller: createHttpCaller({ url: relay, token }),
  live: createLive({ url: relay, token }),
};

createRoot(document.getElementById('root') ?? document.body).render(
  <StrictMode>
    <CallboardProvider {...clients}>
      <App />
    </CallboardProvider>
  </StrictMode>,
);

function App() {
  const { connections, complete, status, error } = useConnections({ userId });
  const [chosen, choose] = useState<string | null>(null);
  const clientId = chosen ?? connections[0]?.clientId;
  return (
    <main>
      <h1>Clients</h1>
      <p id="live">{error ? `Refused: ${error.message}` : status}</p>
      <ul>
        {connections.map((row) => (
          <li key={row.id}>
            <button onClick={() => choose(row.clientId)}>{row.clientId}</button> {row.status.toLowerCase()}
          </li>
        ))}
      </ul>
      {!complete && status === 'live' && <p>There are more clients than these.</p>}
      {clientId !== undefined && <Notes key={clientId} clientId={clientId} />}
    </main>
  );
}

function Notes({ clientId }: { readonly clientId: string }) {
  const add = useAction<{ text: string }, Result>({ userId, clientId, action: 'notes.add' }, { progress: true });
  const [kept, keep] = useKept(clientId);
  const earlier = useCommand<Result>(add.handle ? null : kept, { progress: true });
  const call = add.handle ? add : earlier;
  useEffect(() => {
    if (add.handle) keep(add.handle);
  }, [add.handle]);
  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault();
    void add.invoke({ text: String(new FormData(event.currentTarget).get('text')) });
  };
  return (
    <form onSubmit={submit}>
      <h2>{clientId}</h2>
      <input name="text" aria-label="Note" defaultValue="milk" />
      <button disabled={call.status === 'running'}>Add</button>
      {call.status === 'running' && (
        <button type="button" onClick={() => void call.cancel()}>
          Cancel
        </button>
      )}
      <output>{sentenceOf(call)}</output>
    </form>
  );
}

/** Returns what a person reads about a call. Only what is known is claimed. */
function sentenceOf(call: CallState<Result>): string {
  if (call.status === 'idle') return 'Nothing was sent.';
  if (call.status === 'running') {
    const progress = call.progress as Progress | undefined;
    return progress ? `${progress.done} of ${progress.of} done` : 'Sent.';
  }
  if (call.status === 'error')
    return call.error.code === 'unreachable'
      ? 'The relay does not answer. The note may have been added.'
      : `Refused: ${call.error.message}`;
  const { invocation } = call;
  switch (invocation.outcome) {
    case 'completed':
      return `Added: ${invocation.result.count} notes.`;
    case 'cancelled':
      return 'Cancelled.';
    case 'outcome_unknown':
      return 'It is not known whether the note was added.';
    default:
      return `Not added: ${invocation.error.message}`;
  }
}

/** Keeps the handle of the latest call at a client, so that a reload finds the call. */
function useKept(clientId: string): readonly [Handle | null, (handle: Handle) => void] {
  const name = `call-at-${clientId}`;
  const [handle] = useState<Handle | null>(() => JSON.parse(sessionStorage.getItem(name) ?? 'null'));
  return [handle, (latest) => sessionStorage.setItem(name, JSON.stringify(latest))];
}

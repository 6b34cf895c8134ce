/** Shows the dialog that drains a node after the operator has typed its name. */
import { useState } from 'preact/hooks';
import { DrainNodeDocument } from '../../generated/console.ts';
import { errorOf, type RequestError } from '../api/errors.ts';
import { request } from '../api/request.ts';
import { Dialog } from '../ui/dialog.tsx';
import { plural } from '../ui/format.ts';
import { ActError } from '../ui/notice.tsx';
import type { NodeRow } from './types.ts';

/** How long the node waits for running commands to end, in milliseconds. */
const WITHIN_MS = 10_000;

type DrainProps = { readonly node: NodeRow; readonly onClose: () => void; readonly onDone: () => void };

export function DrainDialog({ node, onClose, onDone }: DrainProps) {
  const { nodeId, links, unfinishedCommands } = node;
  const [typed, setTyped] = useState('');
  const [error, setError] = useState<RequestError | null>(null);
  const [busy, setBusy] = useState(false);
  const ready = typed === nodeId && !busy;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (!ready) return;
    setBusy(true);
    request(DrainNodeDocument, { nodeId, withinMs: WITHIN_MS }).then(
      () => (onClose(), onDone()),
      (cause: unknown) => {
        setError(errorOf(cause));
        setBusy(false);
      },
    );
  };
  return (
    <Dialog title={`Drain ${nodeId}`} onClose={onClose}>
      <form onSubmit={submit}>
        <p class="soft">
          It admits nothing more, gives commands in flight {WITHIN_MS / 1000} seconds, and closes its{' '}
          {plural(links, 'link')}. Clients connect to another node. {unfinishedText(unfinishedCommands)}
        </p>
        {error && (
          <ActError title="It was not drained." code={error.code}>
            {error.message}
          </ActError>
        )}
        <div class="field">
          <label for="drain-name">Type {nodeId} to drain it</label>
          <input
            class="in"
            id="drain-name"
            autocomplete="off"
            spellcheck={false}
            autofocus
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </div>
        <div class="dialog-acts">
          <button class="btn" type="button" onClick={onClose}>
            Keep it
          </button>
          <button class="btn btn-danger" type="submit" aria-disabled={!ready}>
            {busy ? `Draining ${nodeId}…` : `Drain ${nodeId}`}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function unfinishedText(count: number): string {
  return count === 0
    ? 'No command is unfinished.'
    : `${plural(count, 'command')} unfinished; none is cancelled by this.`;
}

/** Shows the fields that choose the client and the action of a call. */
import { useState } from 'preact/hooks';
import { ClientsDocument } from '../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { isAdmin } from '../shell/facts.tsx';
import { Loading } from '../ui/empty.tsx';
import { CutNotice, ErrorNotice } from '../ui/notice.tsx';
import { ConnectionMark } from '../ui/status.tsx';
import type { InvokeClient } from './target.ts';

/** The maximum number of clients to choose from. The text in the field narrows the choice. */
const CHOICES = 50;

type ChooseClientProps = {
  readonly userId: string;
  readonly onChoose: (userId: string, clientId: string) => void;
};

export function ChooseClient({ userId, onChoose }: ChooseClientProps) {
  const [user, setUser] = useState(userId);
  const [asked, setAsked] = useState(userId);
  const [client, setClient] = useState('');
  const variables = { userId: asked === '' ? null : asked, first: CHOICES };
  const query = useQuery(ClientsDocument, variables);
  const list = query.data?.connections;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (user.trim() !== '' && client.trim() !== '') onChoose(user.trim(), client.trim());
    else setAsked(user.trim());
  };
  return (
    <>
      <form class="pair" onSubmit={submit}>
        {isAdmin.value && (
          <div class="field">
            <label for="invoke-user">User</label>
            <input
              class="in"
              id="invoke-user"
              autocomplete="off"
              value={user}
              onInput={(event) => setUser(event.currentTarget.value)}
            />
          </div>
        )}
        <div class="field">
          <label for="invoke-client">Client</label>
          <input
            class="in"
            id="invoke-client"
            autocomplete="off"
            value={client}
            onInput={(event) => setClient(event.currentTarget.value)}
          />
          <p class="hint">Write both ids, or choose below. Enter takes them.</p>
        </div>
        <button class="sr" type="submit" tabIndex={-1}>
          Go on
        </button>
      </form>
      <ErrorNotice query={query} what="clients" />
      <CutNotice completeness={list?.completeness} />
      {!list && query.loading && <Loading what="clients" />}
      <ul class="choices">
        {list?.nodes.map((row) => (
          <li key={`${row.userId}/${row.clientId}`}>
            <button type="button" onClick={() => onChoose(row.userId, row.clientId)}>
              <b>
                {row.userId}
                <span class="who-of"> / </span>
                {row.clientId}
              </b>
              <ConnectionMark status={row.status} recorded={false} />
              <span class="quiet">{row.actionNames.slice(0, 4).join(', ')}</span>
            </button>
          </li>
        ))}
      </ul>
      {list?.nodes.length === 0 && <p class="soft">No client is connected. Write the ids of one that may connect.</p>}
    </>
  );
}

type ChooseActionProps = {
  /** The client with its actions. Null: the client is not connected, so its actions are unknown. */
  readonly target: InvokeClient | null;
  readonly onChoose: (action: string) => void;
  readonly onBack: () => void;
};

export function ChooseAction({ target, onChoose, onBack }: ChooseActionProps) {
  const [name, setName] = useState('');
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (name.trim() !== '') onChoose(name.trim());
  };
  return (
    <>
      <p class="after-table">
        <button class="btn btn-s" type="button" onClick={onBack}>
          Another client
        </button>
      </p>
      <ul class="choices">
        {target?.actions.items.map((action) => (
          <li key={action.name}>
            <button type="button" onClick={() => onChoose(action.name)}>
              <b>{action.name}</b>
              <span class="quiet">{action.summary}</span>
            </button>
          </li>
        ))}
      </ul>
      {!target?.actions.items.length && (
        <form onSubmit={submit}>
          <div class="field">
            <label for="invoke-action">Action</label>
            <input
              class="in"
              id="invoke-action"
              autocomplete="off"
              value={name}
              onInput={(event) => setName(event.currentTarget.value)}
            />
            <p class="hint">The client does not advertise its actions now, so write the exact name.</p>
          </div>
          <button class="btn btn-primary" type="submit">
            Go on
          </button>
        </form>
      )}
    </>
  );
}

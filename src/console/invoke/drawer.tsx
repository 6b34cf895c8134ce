/** Shows the drawer that invokes an action: the form at the left, what the relay says of the call at the right. */
import { useState } from 'preact/hooks';
import { InvokeTargetDocument } from '../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { viewer } from '../shell/facts.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Icon } from '../ui/icon.tsx';
import { ErrorNotice } from '../ui/notice.tsx';
import { CallForm } from './call-form.tsx';
import type { InvokeStart } from './target.ts';
import { ChooseAction, ChooseClient } from './choose.tsx';

type DrawerProps = { readonly start: InvokeStart; readonly onClose: () => void };

export function Drawer({ start, onClose }: DrawerProps) {
  const own = viewer.value?.userId ?? '';
  const [userId, setUserId] = useState(start.userId ?? own);
  const [clientId, setClientId] = useState(start.clientId ?? '');
  const [actionName, setActionName] = useState(start.action ?? '');
  const known = userId !== '' && clientId !== '';
  const query = useQuery(InvokeTargetDocument, { userId, clientId }, { skip: !known });
  const target = known ? (query.data?.connection ?? null) : null;
  const action = target?.actions.items.find(({ name }) => name === actionName) ?? null;
  const chooseClient = (user: string, client: string): void => {
    setUserId(user);
    setClientId(client);
    if (client === '') setActionName('');
  };
  const away = known && query.data !== null && target === null;
  return (
    <Dialog
      title={actionName === '' ? 'Invoke an action' : `Invoke ${actionName}`}
      class="drawer"
      ownTitle
      onClose={onClose}
    >
      <header class="drawer-head">
        <div>
          <h1>{actionName === '' ? 'Invoke an action' : `Invoke ${actionName}`}</h1>
          <p class="soft">{action?.summary ?? aboutOf({ known, away, userId, clientId })}</p>
        </div>
        <button class="btn btn-icon btn-quiet" type="button" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      {known && actionName !== '' && (target || away) ? (
        <CallForm
          key={`${userId}/${clientId}/${actionName}`}
          {...{ userId, clientId, actionName, action }}
          onBack={() => setActionName('')}
        />
      ) : (
        <div class="drawer-choose">
          <ErrorNotice query={query} what="this client" />
          {!known && <ChooseClient userId={userId} onChoose={chooseClient} />}
          {(target || away) && (
            <ChooseAction target={target} onChoose={setActionName} onBack={() => chooseClient(own, '')} />
          )}
        </div>
      )}
    </Dialog>
  );
}

type About = { readonly known: boolean; readonly away: boolean; readonly userId: string; readonly clientId: string };

function aboutOf({ known, away, userId, clientId }: About): string {
  if (!known) return 'First choose the client that runs it.';
  if (away) return `${userId} / ${clientId} is not connected. A call can wait for it.`;
  return `On ${userId} / ${clientId}.`;
}

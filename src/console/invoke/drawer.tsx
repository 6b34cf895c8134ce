/**
 * Shows the drawer that invokes an action: first the choice of client and action, then the form at the left, and what
 * the relay says of the call at the right.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ClientsDocument, InvokeTargetDocument, type InvokeTargetQuery } from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { DrainNotice, isAdmin, viewer } from '../shell/facts.tsx';
import { Dialog, TextField } from '../ui/dialogs.tsx';
import { CutNotice, ErrorNotice, Loading } from '../ui/page.tsx';
import { ConnectionMark, CopyAction, Icon } from '../ui/values.tsx';
import { plural, shortId } from '../ui/words.ts';
import { ArgumentsEditor, NOTHING_FOUND, useCheck } from './arguments.tsx';
import type { ParamsFault } from './checker.ts';
import { commandLine, curlLine } from './command-line.ts';
import { Budgets, DEFAULT_BUDGETS, Preflight, type BudgetValues } from './preflight.tsx';
import { SentCalls, createCommandId, sendCall, type Sent } from './sent.tsx';

type InvokeClient = NonNullable<InvokeTargetQuery['connection']>;
type TargetAction = InvokeClient['actions']['items'][number];

export type InvokeStart = {
  readonly userId?: string;
  readonly clientId?: string;
  readonly action?: string;
};

export type DrawerProps = { readonly start: InvokeStart; readonly onClose: () => void };

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
  const title = actionName === '' ? 'Invoke an action' : `Invoke ${actionName}`;
  return (
    <Dialog title={title} class="drawer" ownTitle onClose={onClose}>
      <header class="drawer-head">
        <div>
          <h1>{title}</h1>
          {known && (
            <p>
              on{' '}
              <b>
                {userId} / {clientId}
              </b>
              {away && ', which is not connected. A call can wait for it.'}
            </p>
          )}
          <p class="soft">{known ? action?.summary : 'First choose the client that runs it.'}</p>
        </div>
        {known && actionName !== '' && (
          <button class="btn btn-s" type="button" onClick={() => setActionName('')}>
            Another action
          </button>
        )}
        <button class="btn btn-icon btn-quiet" type="button" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      {known && actionName !== '' && (target || away) ? (
        <CallForm
          key={`${userId}/${clientId}/${actionName}`}
          {...{ userId, clientId, actionName, action }}
          onLeave={onClose}
        />
      ) : (
        <div class="drawer-choose">
          <DrainNotice />
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

// Shows the fields that choose the client and the action of a call.

/** The maximum number of clients to choose from. Enter in the field of the user lists that user's clients only. */
const CHOICES = 50;

type ChooseClientProps = { readonly userId: string; readonly onChoose: (userId: string, clientId: string) => void };

function ChooseClient({ userId, onChoose }: ChooseClientProps) {
  const [user, setUser] = useState(userId);
  const [asked, setAsked] = useState(userId);
  const [client, setClient] = useState('');
  const query = useQuery(ClientsDocument, { userId: asked === '' ? null : asked, first: CHOICES });
  const list = query.data?.connections;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (user.trim() !== '' && client.trim() !== '') onChoose(user.trim(), client.trim());
    else setAsked(user.trim());
  };
  return (
    <>
      <form class="pair" onSubmit={submit}>
        {isAdmin.value && <TextField label="User" id="invoke-user" value={user} onText={setUser} />}
        <TextField
          label="Client"
          id="invoke-client"
          value={client}
          onText={setClient}
          hint="Write both ids, or choose below. Enter takes them."
        />
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

function ChooseAction({ target, onChoose, onBack }: ChooseActionProps) {
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
          <TextField
            label="Action"
            id="invoke-action"
            value={name}
            onText={setName}
            hint="The client does not advertise its actions now, so write the exact name."
          />
          <button class="btn btn-primary" type="submit">
            Go on
          </button>
        </form>
      )}
    </>
  );
}

type CallFormProps = {
  readonly userId: string;
  readonly clientId: string;
  readonly actionName: string;
  /** The action to invoke. Null: the client does not advertise it at present. */
  readonly action: TargetAction | null;
  /** Called when a link of the drawer leads to another page. */
  readonly onLeave: () => void;
};

function CallForm({ userId, clientId, actionName, action, onLeave }: CallFormProps) {
  const [params, setParams] = useState('{}');
  const [budgets, setBudgets] = useState<BudgetValues>(DEFAULT_BUDGETS);
  const [commandId, setCommandId] = useState(() => createCommandId(Date.now()));
  const [sent, setSent] = useState<readonly Sent[]>([]);
  const body = useRef<HTMLDivElement>(null);
  const schema = action?.schema ?? null;
  const checked = useCheck(schema, params);
  const { faults, unchecked } = checked;
  const isFit = schema !== null && checked !== NOTHING_FOUND && unchecked === null && faults.length === 0;
  const isSending = sent[0]?.state === 'sending';
  const isReady = !isSending && !faults.some(({ syntax }) => syntax);
  const call = { userId, clientId, action: actionName, commandId, ...budgets };
  // The result is at the top, and the button may have been pressed at the end of a long form.
  useEffect(() => body.current?.scrollTo({ top: 0 }), [sent.length]);
  const submit = (): void => {
    if (!isReady) return;
    // `call` keeps the id that it was made with. The new id is for the next call.
    setCommandId(createCommandId(Date.now()));
    void sendCall(call, params, (latest) =>
      setSent((was) => [latest, ...was.filter((other) => other.commandId !== latest.commandId)]),
    );
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    submit();
  };
  return (
    <>
      <div class="drawer-body" ref={body} onKeyDown={onKeyDown}>
        {sent.length > 0 && (
          <div class="drawer-sent">
            <SentCalls sent={sent} onLeave={onLeave} />
          </div>
        )}
        <div class="drawer-form">
          <DrainNotice />
          <ArgumentsEditor schema={schema} text={params} faults={faults} unchecked={unchecked} onChange={setParams} />
          <Budgets values={budgets} onChange={setBudgets} />
        </div>
        <div class="drawer-side">
          <Preflight input={call} params={params} faults={faults} isFit={isFit}>
            <CopyAction isSmall text={() => curlLine({ ...call, params })}>
              Copy as curl
            </CopyAction>
            <CopyAction isSmall text={() => commandLine({ ...call, params })}>
              Copy as command line
            </CopyAction>
          </Preflight>
        </div>
      </div>
      <footer class="drawer-foot">
        <p>
          {faultsText(faults)}
          Its id will be <code>{shortId(commandId)}</code>: if the answer is lost, it is awaited, not sent again.
        </p>
        <button class="btn btn-primary" type="button" onClick={submit} aria-disabled={!isReady}>
          {isSending ? 'Waiting for the answer…' : sendLabel(faults, sent.length > 0)}
        </button>
      </footer>
    </>
  );
}

/**
 * Returns the label of the button. Arguments that do not fit the schema may be sent, because the client decides. Text
 * that is not JSON cannot be sent.
 */
function sendLabel(faults: readonly ParamsFault[], wasSent: boolean): string {
  if (faults.some(({ syntax }) => syntax)) return 'Correct the JSON to invoke';
  if (faults.length > 0) return 'Invoke anyway';
  return wasSent ? 'Invoke again' : 'Invoke';
}

function faultsText(faults: readonly ParamsFault[]) {
  const places = new Set(faults.map(({ at }) => at)).size;
  if (places === 0 || faults.some(({ syntax }) => syntax)) return null;
  return (
    <>
      <b>Correct {plural(places, 'field')} to invoke, or send it anyway</b>: the client decides.
      <br />
    </>
  );
}

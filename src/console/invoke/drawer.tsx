/**
 * Shows the drawer that invokes an action. First the user chooses client and action. Then the form of the arguments is
 * at the left, and the relay's answers about the call are at the right.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ClientsDocument, InvokeTargetDocument, type InvokeTargetQuery } from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { DrainNotice } from '../shell/relay-notices.tsx';
import { isAdmin, viewer } from '../shell/facts.tsx';
import { Dialog, Select, TextField } from '../ui/dialogs.tsx';
import { CutNotice, ErrorNotice, Loading } from '../ui/notices.tsx';
import { whyNoActs } from '../ui/page.tsx';
import { Icon } from '../ui/icons.tsx';
import { Button, ConnectionMark, CopyAction } from '../ui/values.tsx';
import { plural, shortId } from '../ui/text-format.ts';
import { ArgumentsEditor, useCheck } from './arguments.tsx';
import { type ParamsFault } from './checker.ts';
import { commandLine, curlLine } from './command-line.ts';
import { Budgets, DEFAULT_BUDGETS, Preflight, useRested, type BudgetValues } from './preflight.tsx';
import { SentCalls, createCommandId, sendCall, type Sent } from './sent.tsx';

type InvokeClient = NonNullable<InvokeTargetQuery['connection']>;
type TargetAction = InvokeClient['actions']['items'][number];
type Place = InvokeClient['contexts']['nodes'][number];

export type InvokeStart = { readonly userId?: string; readonly clientId?: string; readonly action?: string };

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
  const choosing = useRef<HTMLDivElement>(null);
  const step = known && (target || away) ? 'action' : 'client';
  // The element that had the focus in the previous step was removed, so the focus is set anew.
  useEffect(
    () => choosing.current?.querySelector<HTMLElement>('#invoke-client, .choices button')?.focus(),
    [step, actionName],
  );
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
        {known && actionName !== '' && <Button look="btn-s" text="Another action" onClick={() => setActionName('')} />}
        <button class="btn btn-icon btn-quiet" type="button" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      {known && actionName !== '' && (target || away) ? (
        <CallForm
          key={`${userId}/${clientId}/${actionName}`}
          userId={userId}
          clientId={clientId}
          actionName={actionName}
          action={action}
          places={target?.knowsPlaces ? target.contexts.nodes : []}
          onLeave={onClose}
        />
      ) : (
        <div class="drawer-choose" ref={choosing}>
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

/** The maximum number of clients to choose from. */
const CHOICES = 50;
/** How long the fields must stay unchanged before the list is requested again, in milliseconds. */
const REST_MS = 250;

type ChooseClientProps = { readonly userId: string; readonly onChoose: (userId: string, clientId: string) => void };

function ChooseClient({ userId, onChoose }: ChooseClientProps) {
  const [user, setUser] = useState(userId);
  const [client, setClient] = useState('');
  const asked = useRested({ userId: user.trim() || null, text: client.trim() || null }, false, REST_MS);
  const query = useQuery(ClientsDocument, { ...asked, first: CHOICES });
  const list = query.data?.connections;
  const isCurrent = asked.userId === (user.trim() || null) && asked.text === (client.trim() || null) && !query.loading;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const [only, ...others] = list?.nodes ?? [];
    if (user.trim() !== '' && client.trim() !== '') onChoose(user.trim(), client.trim());
    else if (only && others.length === 0 && isCurrent) onChoose(only.userId, only.clientId);
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
          hint={
            isAdmin.value
              ? 'The list has the clients with this text in an id or a label. Enter takes the only one, or both ids as written.'
              : 'The list has your clients with this text in the id or a label. Enter takes the text as the id.'
          }
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
      {list?.nodes.length === 0 && (
        <p class="soft">
          {asked.userId === null && asked.text === null
            ? 'No client is connected. Write the ids of one that may connect.'
            : 'No such client is connected. With both ids, Enter goes on with one that may connect.'}
        </p>
      )}
      {list?.pageInfo.hasNextPage && <p class="quiet">Only the first {CHOICES} are listed. Write a part of the id.</p>}
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
        <Button look="btn-s" text="Another client" onClick={onBack} />
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
          <Button look="btn-primary" text="Go on" type="submit" />
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
  /** The contexts that the client reports. Empty if a call to it cannot name a context. */
  readonly places: readonly Place[];
  /** Called when a link of the drawer leads to another page. */
  readonly onLeave: () => void;
};

function CallForm({ userId, clientId, actionName, action, places, onLeave }: CallFormProps) {
  const [params, setParams] = useState('{}');
  const [budgets, setBudgets] = useState<BudgetValues>(DEFAULT_BUDGETS);
  const [contextId, setContextId] = useState<string | null>(null);
  const [commandId, setCommandId] = useState(() => createCommandId(Date.now()));
  const [sent, setSent] = useState<readonly Sent[]>([]);
  const body = useRef<HTMLDivElement>(null);
  const schema = action?.schema ?? null;
  const checked = useCheck(schema, params);
  const { faults, unchecked } = checked;
  const isFit = schema !== null && checked.isCurrent && unchecked === null && faults.length === 0;
  const isSending = sent[0]?.state === 'sending';
  const isReady = !isSending && !faults.some(({ syntax }) => syntax) && whyNoActs() === undefined;
  const quiet = useQuiet();
  const shown = faults.filter(quiet.isShown);
  const change = (text: string, asJson: boolean): void => {
    setParams(text);
    setIsAsked(false);
    if (asJson) quiet.showAll();
  };
  const call = { userId, clientId, action: actionName, commandId, contextId, ...budgets };
  // Scrolls to the result, which is at the top. The user may have pressed the button at the end of a long form.
  useEffect(() => body.current?.scrollTo({ top: 0 }), [sent.length]);
  const [isAsked, setIsAsked] = useState(false);
  const submit = (anyway: boolean): void => {
    quiet.showAll();
    if (!isReady) return;
    // The latest input may not have been checked yet. After the check, the call is sent or its faults are shown.
    if (!anyway && !checked.isCurrent) return setIsAsked(true);
    if (faults.length > 0 && !anyway) return;
    // `call` still has the previous id. The new id is for the next call.
    setCommandId(createCommandId(Date.now()));
    void sendCall(call, params, (latest) =>
      setSent((was) => [latest, ...was.filter((other) => other.commandId !== latest.commandId)]),
    );
  };
  useEffect(() => {
    if (!isAsked || !checked.isCurrent) return;
    setIsAsked(false);
    submit(false);
  }, [isAsked, checked.isCurrent]);
  useSendKey(body, () => submit(false));
  return (
    <>
      <div class="drawer-body" ref={body}>
        {sent.length > 0 && (
          <div class="drawer-sent">
            <SentCalls sent={sent} onLeave={onLeave} />
          </div>
        )}
        <div class="drawer-form" onFocusOut={quiet.onFocusOut}>
          <DrainNotice />
          <ArgumentsEditor schema={schema} text={params} faults={shown} unchecked={unchecked} onChange={change} />
          <PlaceField places={places} value={contextId} onChange={setContextId} />
          <Budgets values={budgets} onChange={setBudgets} />
        </div>
        <div class="drawer-side">
          <Preflight input={call} params={params} faults={shown} isFit={isFit}>
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
          {faultsText(shown)}
          Its id will be <code>{shortId(commandId)}</code>: if the answer is lost, it is awaited, not sent again.
        </p>
        <kbd aria-hidden="true">Ctrl Enter</kbd>
        {shown.length > 0 && !shown.some(({ syntax }) => syntax) && (
          <Button text="Invoke anyway" onClick={() => submit(true)} aria-disabled={!isReady} />
        )}
        <Button
          look="btn-primary"
          text={isSending ? 'Waiting for the answer…' : sendLabel(shown, sent.length > 0)}
          onClick={() => submit(false)}
          title={whyNoActs()}
          aria-disabled={!isReady || shown.length > 0}
          aria-keyshortcuts="Control+Enter"
        />
      </footer>
    </>
  );
}

type PlaceProps = {
  readonly places: readonly Place[];
  /** The context that the call names; null if it names none. */
  readonly value: string | null;
  readonly onChange: (contextId: string | null) => void;
};

/** Shows the choice of the context in which the command is to run. Shows nothing if the client reports no contexts. */
function PlaceField({ places, value, onChange }: PlaceProps) {
  const open = places.filter(({ contextId, status }) => status !== 'CLOSED' || contextId === value);
  if (open.length === 0) return null;
  return (
    <div class="field">
      <label for="invoke-place">Runs in</label>
      <Select
        id="invoke-place"
        value={value ?? ''}
        choices={[{ value: '', text: 'wherever the client chooses' }, ...open.map(choiceOf)]}
        onChoose={(contextId) => onChange(contextId || null)}
      />
    </div>
  );
}

function choiceOf({ contextId, title }: Place) {
  return { value: contextId, text: title === null ? contextId : `${title} (${shortId(contextId)})` };
}

/** How long after a field lost the focus its fault is still hidden, in milliseconds. */
const QUIET_MS = 200;

/**
 * Decides which faults are shown. The fault of a field is shown after the field lost the focus. All faults are shown
 * after JSON was edited or the user tried to send the call.
 */
function useQuiet() {
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const [all, setAll] = useState(false);
  return {
    showAll: () => setAll(true),
    onFocusOut: ({ target }: FocusEvent): void => {
      if (!(target instanceof HTMLElement) || !target.id.startsWith('argument')) return;
      // Delayed, because a fault that appears at once would move the button that is being clicked.
      setTimeout(() => setLeft((was) => new Set([...was, target.id])), QUIET_MS);
    },
    isShown: ({ at, syntax }: ParamsFault): boolean => all || syntax || left.has(`argument_${at.replaceAll('.', '_')}`),
  };
}

/** Calls `send` when Ctrl+Enter is pressed anywhere in the dialog that contains the element. */
function useSendKey(inside: { readonly current: HTMLElement | null }, send: () => void): void {
  const latest = useRef(send);
  latest.current = send;
  useEffect(() => {
    const dialog = inside.current?.closest('dialog');
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      latest.current();
    };
    dialog?.addEventListener('keydown', onKeyDown);
    return () => dialog?.removeEventListener('keydown', onKeyDown);
  }, []);
}

/** Returns the label of the button that sends the call. Text that is not JSON cannot be sent. */
function sendLabel(faults: readonly ParamsFault[], wasSent: boolean): string {
  if (faults.some(({ syntax }) => syntax)) return 'Correct the JSON to invoke';
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

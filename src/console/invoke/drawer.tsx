/**
 * Shows the drawer that invokes an action: first the choice of client and action, then the form of the arguments at
 * the left, and what the relay says of the call at the right.
 */
import { useEffect, useRef, useState, useMemo } from 'preact/hooks';
import { ClientsDocument, InvokeTargetDocument, type InvokeTargetQuery } from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { DrainNotice, isAdmin, viewer } from '../shell/facts.tsx';
import { Dialog, TextField, focusFirstField } from '../ui/dialogs.tsx';
import { CutNotice, ErrorNotice, Loading, LoadFault, loaded } from '../ui/page.tsx';
import { ConnectionMark, CopyAction, Icon } from '../ui/values.tsx';
import { plural, shortId } from '../ui/words.ts';
import {
  type ParamsFault,
  createChecker,
  syntaxFault,
  type CheckEvents,
  type CheckWorker,
  type Checked,
  type Checker,
} from './checker.ts';
import { commandLine, curlLine } from './command-line.ts';
import { Budgets, DEFAULT_BUDGETS, Preflight, useRested, type BudgetValues } from './preflight.tsx';
import { SentCalls, createCommandId, sendCall, type Sent } from './sent.tsx';
import { ErrorBoundary } from 'preact-iso';
import { formSchemaOf, valueFault } from '../form/form-schema.ts';
import workerUrl from './check-worker.ts?worker&url';

type InvokeClient = NonNullable<InvokeTargetQuery['connection']>;
type TargetAction = InvokeClient['actions']['items'][number];
type Place = InvokeClient['contexts']['nodes'][number];

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
  const choosing = useRef<HTMLDivElement>(null);
  const step = known && (target || away) ? 'action' : 'client';
  // What was used in the step before is gone, and with it the focus.
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
/** The time for which the fields must stay unchanged before the list follows them, in milliseconds. */
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
  /** The contexts that the client reports. Empty if a call cannot name one. */
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
  const isFit = schema !== null && checked !== NOTHING_FOUND && unchecked === null && faults.length === 0;
  const isSending = sent[0]?.state === 'sending';
  const isReady = !isSending && !faults.some(({ syntax }) => syntax);
  const call = { userId, clientId, action: actionName, commandId, contextId, ...budgets };
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
  useSendKey(body, submit);
  return (
    <>
      <div class="drawer-body" ref={body}>
        {sent.length > 0 && (
          <div class="drawer-sent">
            <SentCalls sent={sent} onLeave={onLeave} />
          </div>
        )}
        <div class="drawer-form">
          <DrainNotice />
          <ArgumentsEditor schema={schema} text={params} faults={faults} unchecked={unchecked} onChange={setParams} />
          <PlaceField places={places} value={contextId} onChange={setContextId} />
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
        <kbd aria-hidden="true">Ctrl Enter</kbd>
        <button
          class="btn btn-primary"
          type="button"
          onClick={submit}
          aria-disabled={!isReady}
          aria-keyshortcuts="Control+Enter"
        >
          {isSending ? 'Waiting for the answer…' : sendLabel(faults, sent.length > 0)}
        </button>
      </footer>
    </>
  );
}

type PlaceProps = {
  readonly places: readonly Place[];
  /** The context that the call names; null: none. */
  readonly value: string | null;
  readonly onChange: (contextId: string | null) => void;
};

/** Shows the choice of the context in which the command may run. Shows nothing if the client reports none. */
function PlaceField({ places, value, onChange }: PlaceProps) {
  const open = places.filter(({ contextId, status }) => status !== 'CLOSED' || contextId === value);
  if (open.length === 0) return null;
  return (
    <div class="field">
      <label for="invoke-place">Runs in</label>
      <select
        class="in"
        id="invoke-place"
        value={value ?? ''}
        onChange={({ currentTarget }) => onChange(currentTarget.value || null)}
      >
        <option value="">wherever the client chooses</option>
        {open.map(({ contextId, title }) => (
          <option key={contextId} value={contextId}>
            {title === null ? contextId : `${title} (${shortId(contextId)})`}
          </option>
        ))}
      </select>
    </div>
  );
}

/** Calls `send` when Ctrl and Enter are pressed anywhere in the dialog around the element. */
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

const SchemaForm = loaded(
  () => import('../form/form.tsx'),
  (room) => room.SchemaForm,
  () => <LoadFault what="The form" />,
);

type ArgumentsProps = {
  /** The schema of the action. Null: the action has none, so there is no form. */
  readonly schema: unknown;
  /** The arguments of the call, as JSON text. */
  readonly text: string;
  readonly faults: readonly ParamsFault[];
  /** Why the arguments were not checked here. Null: they were. */
  readonly unchecked: string | null;
  readonly onChange: (text: string) => void;
};

export function ArgumentsEditor({ schema, text, faults, unchecked, onChange }: ArgumentsProps) {
  const hasSchema = typeof schema === 'object' && schema !== null;
  const made = useMemo(() => (hasSchema ? formSchemaOf(schema) : null), [schema]);
  const form = made !== null && made.why === null ? made : null;
  const [asJson, setAsJson] = useState(false);
  const broken = faults.some(({ syntax }) => syntax);
  const why = made?.why ?? (form && !broken ? valueFault(form, JSON.parse(text)) : null);
  const withForm = form !== null && why === null;
  const shownAsJson = asJson || !withForm || broken;
  return (
    <>
      <div class="sec-head">
        <h2>Arguments</h2>
        {withForm && (
          <div class="switch" role="radiogroup" aria-label="Show as">
            <label>
              <input
                type="radio"
                name="arguments-as"
                checked={!shownAsJson}
                disabled={broken}
                onChange={() => setAsJson(false)}
              />
              Form
            </label>
            <label>
              <input type="radio" name="arguments-as" checked={shownAsJson} onChange={() => setAsJson(true)} />
              JSON
            </label>
          </div>
        )}
      </div>
      {why !== null && <p class="hint hint-above">The arguments are written as JSON: {why}.</p>}
      {unchecked !== null && (
        <p class="hint hint-above" role="status">
          {unchecked}
        </p>
      )}
      {shownAsJson ? (
        <JsonField text={text} faults={faults} hasSchema={hasSchema} onChange={onChange} />
      ) : (
        <ErrorBoundary>
          <SchemaForm form={form} text={text} faults={faults} onChange={onChange} />
        </ErrorBoundary>
      )}
    </>
  );
}

type JsonFieldProps = Pick<ArgumentsProps, 'text' | 'faults' | 'onChange'> & { readonly hasSchema: boolean };

function JsonField({ text, faults, hasSchema, onChange }: JsonFieldProps) {
  const field = useRef<HTMLDivElement>(null);
  useEffect(() => focusFirstField(field.current), []);
  return (
    <div class="field" ref={field}>
      <label for="params">{hasSchema ? 'As JSON' : 'As JSON: the action has no schema'}</label>
      <textarea
        class="in code"
        id="params"
        rows={12}
        spellcheck={false}
        value={text}
        aria-invalid={faults.length > 0}
        aria-describedby={faults.length > 0 ? 'params-faults' : undefined}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      {faults.length > 0 && (
        <ul id="params-faults">
          {faults.map(({ at, text: fault }) => (
            <li key={`${at} ${fault}`} class="err">
              <Icon name="warn" />
              <span>{at === '' ? fault : `${at}: ${fault}`}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** What is known before the first check. */
export const NOTHING_FOUND: Checked = { faults: [], unchecked: null };

/**
 * Returns the result of checking the arguments, given as JSON text. The fault of a text that is not JSON is returned at
 * once. The result for any other text comes from the worker; until then, the previous result is returned.
 */
export function useCheck(schema: unknown, text: string): Checked {
  const [checked, setChecked] = useState<Checked>(NOTHING_FOUND);
  const checker = useRef<Checker | null>(null);
  const fault = syntaxFault(text);
  const hasSchema = schema !== null;
  useEffect(() => {
    if (!hasSchema) return undefined;
    const started = createChecker({ schema, startWorker, after, onChecked: setChecked });
    checker.current = started;
    return () => started.close();
  }, [schema]);
  useEffect(() => {
    if (fault === null && hasSchema) checker.current?.check(text);
  }, [schema, text]);
  if (fault !== null) return { faults: [fault], unchecked: null };
  return hasSchema ? checked : NOTHING_FOUND;
}

function after(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}

type Policies = {
  createPolicy(
    name: string,
    rules: { readonly createScriptURL: (url: string) => string },
  ): {
    createScriptURL(url: string): string;
  };
};

/**
 * Starts the worker. The page's content security policy requires Trusted Types and allows one policy, by its name. That
 * policy accepts the address of this worker only.
 */
function startWorker({ onMessage, onError }: CheckEvents): CheckWorker {
  const worker = new Worker((trusted ??= trustedUrl()));
  worker.onmessage = ({ data }) => onMessage(data);
  worker.onerror = onError;
  return { send: (message) => worker.postMessage(message), end: () => worker.terminate() };
}

let trusted: string | undefined;

function trustedUrl(): string {
  const policies: Policies | undefined = Reflect.get(globalThis, 'trustedTypes');
  if (!policies) return workerUrl;
  const createScriptURL = (url: string): string => {
    if (url === workerUrl) return url;
    throw new TypeError(`The console starts no worker from ${url}.`);
  };
  return policies.createPolicy('callboard-worker', { createScriptURL }).createScriptURL(workerUrl);
}

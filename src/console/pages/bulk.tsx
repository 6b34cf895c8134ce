/**
 * Shows dialogs for operations on many objects: cancelling all commands that wait, and disconnecting all clients of a
 * node. A dialog counts the objects, asks for a reason, processes one object after the other, and shows each object's
 * answer.
 */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import * as gql from '../../../generated/console.ts';
import { accepted, errorOf, isAbort, request, type RequestError } from '../api/request.ts';
import { Dialog, TextField } from '../ui/dialogs.tsx';
import { ActError } from '../ui/notices.tsx';
import { Button } from '../ui/values.tsx';
import { whole } from '../ui/amounts.ts';
import { plural } from '../ui/text-format.ts';

/** The maximum number of objects of one operation, and of pages that are read to find them. */
const BULK_MAX = 500;
const PAGES_MAX = 40;
/** The maximum number of objects that are named for each answer. Any further ones are only counted. */
const NAMED = 5;

type Found<Item> = {
  readonly items: readonly Item[];
  /** Whether there may be more objects than were found. */
  readonly isCut: boolean;
};

type BulkProps<Item> = {
  readonly title: string;
  /** Describes what the operation does. */
  readonly children: ComponentChildren;
  /** The singular noun for the objects, and the verb for the operation. */
  readonly one: string;
  readonly verb: string;
  readonly find: (signal: AbortSignal) => Promise<Found<Item>>;
  readonly nameOf: (item: Item) => string;
  /**
   * Performs the operation on one object. Resolves with a text for the result. Rejects with RequestError if the relay
   * refused it.
   */
  readonly act: (item: Item, reason: string | null) => Promise<string>;
  readonly onClose: () => void;
  /** Called when the operation is over or was stopped. */
  readonly onDone: () => void;
};

/** The names of the objects, by the text of their result. */
type Answers = ReadonlyMap<string, readonly string[]>;

type State<Item> =
  | { readonly step: 'counting' }
  | { readonly step: 'failed'; readonly error: RequestError }
  | { readonly step: 'ready'; readonly found: Found<Item> }
  | { readonly step: 'acting' | 'over'; readonly found: Found<Item>; readonly answers: Answers; readonly done: number };

function BulkDialog<Item>(props: BulkProps<Item>) {
  const { title, children, one, verb, find, nameOf, act, onClose, onDone } = props;
  const [state, setState] = useState<State<Item>>({ step: 'counting' });
  const isStopped = useRef(false);
  useEffect(() => {
    const stop = new AbortController();
    find(stop.signal).then(
      (found) => setState({ step: 'ready', found }),
      (cause: unknown) => !isAbort(cause) && setState({ step: 'failed', error: errorOf(cause) }),
    );
    return () => {
      stop.abort();
      isStopped.current = true;
    };
  }, []);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (state.step !== 'ready' || !(event.currentTarget instanceof HTMLFormElement)) return;
    const reason = String(new FormData(event.currentTarget).get('reason') ?? '').trim() || null;
    const { found } = state;
    const { items } = found;
    const run = { items, nameOf, act: (item: Item) => act(item, reason), isStopped: () => isStopped.current };
    void runAll(run, (answers, done) => setState({ step: 'acting', found, answers, done })).then((end) => {
      setState({ step: 'over', found, ...end });
      onDone();
    });
  };
  const count = 'found' in state ? state.found.items.length : 0;
  const isReady = state.step === 'ready' && count > 0;
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit}>
        <p class="soft">{children}</p>
        <p role="status">
          <Progress state={state} one={one} />
        </p>
        {state.step === 'failed' && <ActError title="They could not be counted." error={state.error} />}
        {'answers' in state && <AnswerList answers={state.answers} />}
        {isReady && (
          <TextField
            label="Reason"
            id="reason"
            name="reason"
            maxlength={256}
            hint={`For each ${one}, and for the audit log. At most 256 characters.`}
          />
        )}
        <div class="dialog-acts">
          {state.step === 'acting' ? (
            <Button text="Stop" onClick={() => (isStopped.current = true)} />
          ) : (
            <Button text={isReady ? 'Keep them' : 'Close'} onClick={onClose} />
          )}
          {isReady && (
            <button class="btn btn-danger" type="submit">
              {verb} {plural(count, one)}
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}

type BulkActProps<Item> = Omit<BulkProps<Item>, 'onClose'> & {
  /** The button that opens the dialog. False: no button is shown, but an open dialog stays open. */
  readonly button: false | Omit<Parameters<typeof Button>[0], 'onClick'>;
};

function BulkAct<Item>({ button, ...dialog }: BulkActProps<Item>) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      {button && <Button {...button} onClick={() => setOpen(true)} />}
      {isOpen && <BulkDialog {...dialog} onClose={() => setOpen(false)} />}
    </>
  );
}

function Progress<Item>({ state, one }: { readonly state: State<Item>; readonly one: string }) {
  if (state.step === 'counting') return <>Counting…</>;
  if (state.step === 'failed') return null;
  const { items, isCut } = state.found;
  if (state.step === 'ready') {
    const none = isCut ? 'None among those that were looked at.' : `There is no such ${one}.`;
    if (items.length === 0) return <b>{none}</b>;
    return (
      <>
        <b>{plural(items.length, one)}.</b>
        {isCut && ` There may be more: at most ${whole(BULK_MAX)} at a time.`}
      </>
    );
  }
  const whenOver = state.done < items.length ? 'Stopped after' : 'Done:';
  return (
    <b>
      {state.step === 'over' ? `${whenOver} ` : ''}
      {whole(state.done)} of {plural(items.length, one)}
      {state.step === 'over' ? '.' : '…'}
    </b>
  );
}

function AnswerList({ answers }: { readonly answers: Answers }) {
  return (
    <ul>
      {[...answers].map(([answer, names]) => (
        <li key={answer}>
          {whole(names.length)} {answer}
          <span class="quiet">
            : {names.slice(0, NAMED).join(', ')}
            {names.length > NAMED && ` and ${whole(names.length - NAMED)} more`}
          </span>
        </li>
      ))}
    </ul>
  );
}

type Run<Item> = Pick<BulkProps<Item>, 'nameOf'> & {
  readonly items: readonly Item[];
  readonly act: (item: Item) => Promise<string>;
  readonly isStopped: () => boolean;
};

/** The codes of errors that all remaining objects would get as well. */
const STOPPING: readonly string[] = [
  ...['unreachable', 'unauthenticated', 'forbidden', 'rate_limited', 'store_unavailable', 'audit_unavailable'],
];

/**
 * Processes one object after the other until all are done, the operation is stopped, or an error shows that the rest
 * would fail too.
 */
async function runAll<Item>(
  { items, nameOf, act, isStopped }: Run<Item>,
  onAnswer: (answers: Answers, done: number) => void,
): Promise<{ readonly answers: Answers; readonly done: number }> {
  const answers = new Map<string, readonly string[]>();
  let done = 0;
  onAnswer(answers, done);
  for (const item of items) {
    if (isStopped()) break;
    const answer = await act(item).catch(errorOf);
    const text = typeof answer === 'string' ? answer : `refused: ${answer.message} (${answer.code})`;
    answers.set(text, [...(answers.get(text) ?? []), nameOf(item)]);
    done += 1;
    onAnswer(new Map(answers), done);
    if (typeof answer !== 'string' && STOPPING.includes(answer.code)) break;
  }
  return { answers, done };
}

/** Reads pages until BULK_MAX objects were found or there are no further pages. */
async function readPages<Item>(
  pages: (after: string | null) => Promise<{
    readonly nodes: readonly Item[];
    readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
  }>,
): Promise<Found<Item>> {
  const items: Item[] = [];
  let after: string | null = null;
  for (let page = 0; page < PAGES_MAX && items.length <= BULK_MAX; page++) {
    const { nodes, pageInfo } = await pages(after);
    items.push(...nodes);
    if (!pageInfo.hasNextPage) return cutTo({ items, isCut: false });
    after = pageInfo.endCursor;
  }
  return cutTo({ items, isCut: true });
}

function cutTo<Item>({ items, isCut }: Found<Item>): Found<Item> {
  return { items: items.slice(0, BULK_MAX), isCut: isCut || items.length > BULK_MAX };
}

// Cancels all waiting commands of a filter. A command waits as long as it was not written to a client.

type WaitingCall = gql.BulkCallsQuery['commands']['nodes'][number];

const WAITING: readonly gql.Stage[] = ['ADMITTED', 'QUEUED'];

/** Whether a command was not written to a client yet. */
export const isWaiting = ({ stage }: { readonly stage: gql.Stage }): boolean => WAITING.includes(stage);

/** Whether a filter can select waiting commands. */
export const selectsWaiting = ({ stage, outcome, code }: gql.DeliveryFilter): boolean =>
  !outcome && !code && (!stage || WAITING.includes(stage));

const CANCELLED: Readonly<Record<gql.CancelState, string>> = {
  CANCELLED: 'cancelled, never written to the client',
  REQUESTED: 'asked to stop, may have run',
  TOO_LATE: 'had ended already',
};

type CancelProps = {
  /** What the commands have in common, as the end of a sentence: `for kiosk-1`. */
  readonly of: string;
  readonly filter: gql.DeliveryFilter;
  /** Whether there may be such commands. If not, no button is shown, but an open dialog stays open. */
  readonly isUseful: boolean;
  readonly onDone: () => void;
};

export function CancelWaiting({ of, filter, isUseful, onDone }: CancelProps) {
  return (
    <BulkAct<WaitingCall>
      button={isUseful && { text: 'Cancel waiting…' }}
      title={`Cancel the waiting commands ${of}`}
      one="command"
      verb="Cancel"
      find={(signal) => findWaiting(filter, signal)}
      nameOf={({ clientId, action }) => `${action} on ${clientId}`}
      act={cancel}
      onDone={onDone}
    >
      All commands {of} that wait for their client or for its link, of which nothing was written yet. One that is
      written in the meantime is asked to stop, and may have run.
    </BulkAct>
  );
}

async function findWaiting(filter: gql.DeliveryFilter, signal: AbortSignal): Promise<Found<WaitingCall>> {
  const stages = filter.stage ? [filter.stage] : WAITING;
  const found = await Promise.all(
    stages.map((stage) =>
      readPages(async (after) => {
        const variables = { filter: { ...filter, stage }, first: BULK_MAX, after };
        return (await request(gql.BulkCallsDocument, variables, signal)).commands;
      }),
    ),
  );
  return cutTo({ items: found.flatMap(({ items }) => items), isCut: found.some(({ isCut }) => isCut) });
}

async function cancel({ userId, clientId, commandId }: WaitingCall, reason: string | null): Promise<string> {
  const input = { userId, clientId, commandId, reason };
  return CANCELLED[accepted((await request(gql.CancelCallDocument, { input })).cancelCommand).state];
}

// Disconnects all clients of a node.

type NodeClient = gql.ClientNamesQuery['connections']['nodes'][number];

const DISCONNECTED: Readonly<Record<gql.DisconnectState, string>> = {
  CLOSED: 'closed',
  REQUESTED: 'asked to close, not confirmed yet',
};

type DisconnectProps = { readonly nodeId: string } & Pick<CancelProps, 'isUseful' | 'onDone'>;

export function DisconnectAll({ nodeId, isUseful, onDone }: DisconnectProps) {
  const button = { look: 'btn-s', text: 'Disconnect all…', 'aria-label': `Disconnect all of ${nodeId}…` };
  return (
    <BulkAct<NodeClient>
      button={isUseful && button}
      title={`Disconnect all clients of ${nodeId}`}
      one="client"
      verb="Disconnect"
      find={(signal) => findClients(nodeId, signal)}
      nameOf={({ userId, clientId }) => `${userId} / ${clientId}`}
      act={disconnect}
      onDone={onDone}
    >
      The relay closes the link of each client of {nodeId}. None of their calls is cancelled by this, and a client may
      connect again at once, to this node too. To keep clients away from it, drain it.
    </BulkAct>
  );
}

async function findClients(nodeId: string, signal: AbortSignal): Promise<Found<NodeClient>> {
  const found = await readPages(async (after) => {
    return (await request(gql.ClientNamesDocument, { nodeId, first: BULK_MAX, after }, signal)).connections;
  });
  return { ...found, items: found.items.filter(({ status }) => status !== 'DISCONNECTED') };
}

async function disconnect({ userId, clientId }: NodeClient, reason: string | null): Promise<string> {
  const answer = accepted((await request(gql.DisconnectClientDocument, { userId, clientId, reason })).disconnectClient);
  return DISCONNECTED[answer.state];
}

/**
 * Exports `callboard/react`: hooks of React 19 that invoke actions, follow commands and show connections. Contains no
 * connection of its own: the program gives a caller, and for connections an access of `callboard/live`.
 */

'use client';

import {
  createContext,
  createElement,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useRef,
  useState,
  type FunctionComponent,
  type ReactNode,
} from 'react';
import type { Caller, CallerError, Handle, Invocation, InvokeOptions, Receipt, Target } from '../caller/index.ts';
import type { WireStage } from '../../protocol/codes.ts';
import type { ActionSpecs, Params, ParamsIn, ResultOf } from '../link/actions.ts';
import { checkNames } from '../link/options.ts';
import { timeOrderedId } from '../link/ids.ts';
import type { ConnectionsOptions, ConnectionsView, Live, LiveError, LiveStatus } from '../live/index.ts';

/** What the hooks use. Create each once, outside of components. The program closes them. */
export type CallboardClients = {
  /** A caller over HTTP or over a link. */
  readonly caller: Pick<Caller, 'invoke' | 'await' | 'cancel'>;
  /** `useConnections` needs it; the hooks of calls do not. */
  readonly live?: Live;
};

const Clients = createContext<CallboardClients | null>(null);

/** Gives the clients to the hooks in the components below it. */
export const CallboardProvider: FunctionComponent<CallboardClients & { readonly children?: ReactNode }> = ({
  caller,
  live,
  children,
}) => {
  const value = useMemo(() => ({ caller, ...(live && { live }) }), [caller, live]);
  return createElement(Clients.Provider, { value }, children);
};

/** Returns the clients of the provider above. Throws if there is none. */
export function useCallboard(): CallboardClients {
  const clients = useContext(Clients);
  if (!clients) throw new Error('There is no CallboardProvider above this component.');
  return clients;
}

/**
 * The state of a call:
 *
 * - `idle`: nothing was invoked, or `useCommand` has no command.
 * - `running`: the command has not ended, as far as is known.
 * - `ended`: `invocation` says how the command ended. It may also have failed, or its outcome may be unknown.
 * - `error`: there is no answer. The relay refused the call, or was not reached: then (`unreachable`) the command may
 *   run, and `useCommand` with the same `handle` finds it.
 */
export type CallState<R = unknown> = {
  /** The command; null when idle. Keep it to find the command after a reload. */
  readonly handle: Handle | null;
  /** How far the command has come. Over HTTP it is null until the command has ended. */
  readonly stage: WireStage | null;
  /** The latest progress that the client reported; undefined without a report and without the option `progress`. */
  readonly progress: unknown;
} & (
  | { readonly status: 'idle'; readonly invocation: null; readonly error: null }
  | { readonly status: 'running'; readonly invocation: null; readonly error: null }
  | { readonly status: 'ended'; readonly invocation: EndedInvocation<R>; readonly error: null }
  | { readonly status: 'error'; readonly invocation: null; readonly error: CallerError }
);

export type EndedInvocation<R> = Exclude<Invocation<R>, { readonly outcome: 'pending' }>;

export type CallOptions = {
  /**
   * Whether `progress` follows the reports of the client. Over HTTP the answer to the call's request is then an event
   * stream. Default false.
   */
  readonly progress?: boolean;
};

/** Options of one invocation. The hook waits for the end of the command. */
export type ActionOptions = Omit<InvokeOptions, 'signal' | 'waitFor'>;

export type ActionCall<P, R> = CallState<R> & {
  /**
   * Invokes the action. Resolves with the state at the end of the command; never rejects. A later invocation takes this
   * one's place in the state. That cancels nothing, and neither does unmounting: the promise then resolves with null.
   */
  readonly invoke: (
    ...given: {} extends P ? [params?: P, options?: ActionOptions] : [params: P, options?: ActionOptions]
  ) => Promise<CallState<R> | null>;
  /** Asks the relay to cancel the command. Rejects with CallerError. */
  readonly cancel: (reason?: string) => Promise<Receipt>;
  /** Forgets the call. The command continues. */
  readonly reset: () => void;
};

/** Invokes one action of one client. `P` and `R`: its params and result, which nothing checks. */
export function useAction<P extends object = Params, R = unknown>(
  target: Target,
  options: CallOptions = {},
): ActionCall<P, R> {
  const { caller } = useCallboard();
  checkNames('target.', target, ['userId', 'clientId', 'action', 'instanceId']);
  const call = useCall<R>(options);
  const { userId, clientId, action, instanceId } = target;
  const { follow } = call;
  const invoke = useCallback(
    (params: object = {}, options: ActionOptions = {}) => {
      const commandId = options.commandId ?? timeOrderedId('c-', Date.now());
      const to = { userId, clientId, action, ...(instanceId !== undefined && { instanceId }) };
      return follow({ userId, clientId, commandId }, (waiting) =>
        caller.invoke<R>(to, params, { ...options, ...waiting, commandId }),
      );
    },
    [caller, follow, userId, clientId, action, instanceId],
  );
  return { ...call.state, invoke, cancel: call.cancel, reset: call.reset };
}

/** The hook `useAction` with the types of a contract: of what `defineActions` returned. */
export type UseActionOf<A extends ActionSpecs> = <N extends keyof A & string>(
  target: Omit<Target, 'action'> & { readonly action: N },
  options?: CallOptions,
) => ActionCall<ParamsIn<A[N]>, ResultOf<A[N]>>;

/**
 * Returns `useAction` with the types of a contract: `createUseAction<typeof actions>()`. Only the client checks them.
 */
export function createUseAction<A extends ActionSpecs>(): UseActionOf<A> {
  return (target, options) => useAction(target, options);
}

export type CommandState<R> = CallState<R> & Pick<ActionCall<Params, R>, 'cancel'>;

/**
 * Follows a command to its end, such as one that was invoked before a reload. Null: no command. Invokes nothing, so the
 * command runs once however often it is followed.
 */
export function useCommand<R = unknown>(handle: Handle | null, options: CallOptions = {}): CommandState<R> {
  const { caller } = useCallboard();
  const { state, follow, reset, cancel } = useCall<R>(options);
  const { userId, clientId, commandId } = handle ?? NO_HANDLE;
  useEffect(() => {
    if (commandId === '') return undefined;
    const command = { userId, clientId, commandId };
    void follow(command, (waiting) => caller.await<R>(command, waiting));
    return reset;
  }, [caller, follow, reset, userId, clientId, commandId]);
  return { ...state, cancel };
}

const NO_HANDLE = { userId: '', clientId: '', commandId: '' };

const IDLE = {
  status: 'idle',
  handle: null,
  stage: null,
  progress: undefined,
  invocation: null,
  error: null,
} as const;

type Waiting = Required<Pick<InvokeOptions, 'signal' | 'onStage'>> & Pick<InvokeOptions, 'onProgress'>;

/** Holds the state of the latest call of a component. */
function useCall<R>(options: CallOptions) {
  checkNames('options.', options, ['progress']);
  const { progress: showsProgress = false } = options;
  const { caller } = useCallboard();
  const [state, setState] = useState<CallState<R>>(IDLE);
  const latest = useRef<{ readonly stop: AbortController; readonly handle: Handle } | null>(null);

  const leave = useCallback(() => {
    latest.current?.stop.abort();
    latest.current = null;
  }, []);
  const reset = useCallback(() => {
    leave();
    setState(IDLE);
  }, [leave]);
  useEffect(() => leave, [leave]);

  const follow = useCallback(
    async (handle: Handle, send: (waiting: Waiting) => Promise<Invocation<R>>): Promise<CallState<R> | null> => {
      leave();
      const stop = new AbortController();
      const { signal } = stop;
      latest.current = { stop, handle };
      let shown: CallState<R> = { ...IDLE, status: 'running', handle };
      const show = (change: Partial<CallState<R>>): void => {
        if (signal.aborted) return;
        shown = { ...shown, ...change } as CallState<R>;
        setState(shown);
      };
      show({});
      const waiting: Waiting = {
        signal,
        onStage: (stage) => show({ stage }),
        ...(showsProgress && { onProgress: ({ value }) => show({ progress: value }) }),
      };
      try {
        const invocation = await endOf(send(waiting), () => caller.await<R>(handle, waiting));
        show({ status: 'ended', invocation, stage: invocation.stage });
      } catch (error) {
        show({ status: 'error', error: error as CallerError });
      }
      return signal.aborted ? null : shown;
    },
    [caller, leave, showsProgress],
  );
  const cancel = useCallback(
    async (reason?: string): Promise<Receipt> => {
      if (!latest.current) throw new Error('There is no command to cancel.');
      return caller.cancel(latest.current.handle, reason);
    },
    [caller],
  );
  return { state, follow, cancel, reset };
}

/** Waits again while the command has not ended. A wait ends early when it is too long, or its relay shuts down. */
async function endOf<R>(
  first: Promise<Invocation<R>>,
  again: () => Promise<Invocation<R>>,
): Promise<EndedInvocation<R>> {
  let answer = await first;
  while (answer.outcome === 'pending') answer = await again();
  return answer;
}

export type ShownConnections = ConnectionsView & {
  /** The state of the stream. While it is not `live`, the connections may be out of date. */
  readonly status: LiveStatus;
  /** Why the relay refused to show connections; then `status` does not change any more. */
  readonly error: LiveError | null;
};

const NO_CONNECTIONS: ShownConnections = { connections: [], complete: false, status: 'connecting', error: null };

/**
 * Shows the connections of clients, and keeps them up to date. Until they have been read, the list is empty and
 * `complete` is false. Needs `live` in the provider, otherwise it throws.
 */
export function useConnections(
  options: Pick<ConnectionsOptions, 'userId' | 'status' | 'limit'> = {},
): ShownConnections {
  checkNames('options.', options, ['userId', 'status', 'limit']);
  const { userId, status, limit } = options;
  const { live } = useCallboard();
  if (!live) throw new Error('useConnections needs the property `live` of CallboardProvider.');
  const [connections, setConnections] = useState(NO_CONNECTIONS);
  useEffect(() => {
    const stop = new AbortController();
    const { signal } = stop;
    const show = (change: Partial<ShownConnections>): void => {
      if (!signal.aborted) setConnections((was) => ({ ...was, ...change }));
    };
    const filter = {
      ...(userId !== undefined && { userId }),
      ...(status !== undefined && { status }),
      ...(limit !== undefined && { limit }),
    };
    show(NO_CONNECTIONS);
    live
      .connections({ ...filter, signal, onChange: show, onStatus: (now) => show({ status: now }) })
      .catch((error: LiveError) => show({ error }));
    return () => stop.abort();
  }, [live, userId, status, limit]);
  return connections;
}

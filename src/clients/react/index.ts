/**
 * Exports `callboard/react`: React 19 hooks that invoke actions, follow commands and show connections. The program
 * passes in a caller, and for connections an object of `callboard/live`.
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

/** The objects that the hooks use. Create each of them once, outside of components. The program must close them. */
export type CallboardClients = {
  /** A caller over HTTP or over a link. */
  readonly caller: Pick<Caller, 'invoke' | 'await' | 'cancel'>;
  /** Only `useConnections` needs this. */
  readonly live?: Live;
};

const Clients = createContext<CallboardClients | null>(null);

/** Passes the clients to the hooks in all components below it. */
export const CallboardProvider: FunctionComponent<CallboardClients & { readonly children?: ReactNode }> = ({
  caller,
  live,
  children,
}) => {
  const value = useMemo(() => ({ caller, ...(live && { live }) }), [caller, live]);
  return createElement(Clients.Provider, { value }, children);
};

/** Returns the clients of the nearest provider above. Throws if there is none. */
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
 * - `ended`: `invocation` says how the command ended. It may have completed or failed, or its outcome may be unknown.
 * - `error`: there is no answer. The relay refused the call or was not reached. If it was not reached (`unreachable`),
 * the command may run; `useCommand` with the same `handle` finds it.
 */
export type CallState<R = unknown> = {
  /** The command; null if idle. Store it to find the command again after a reload. */
  readonly handle: Handle | null;
  /** The stage that the command has reached. Over HTTP, null until the command has ended. */
  readonly stage: WireStage | null;
  /** The latest progress that the client reported; undefined if there is none, or without the option `progress`. */
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
   * Whether `progress` follows the client's reports. Over HTTP, the call's response is then an event stream. Default
   * false.
   */
  readonly progress?: boolean;
};

/** The options of one invocation, which waits for the end of the command. */
export type ActionOptions = Omit<InvokeOptions, 'signal' | 'waitFor'>;

export type ActionCall<P, R> = CallState<R> & {
  /**
   * Invokes the action. Resolves with the state at the end of the command. Never rejects. If another invocation begins,
   * or if the component is unmounted, this promise resolves with null, and the command continues.
   */
  readonly invoke: (
    ...given: {} extends P ? [params?: P, options?: ActionOptions] : [params: P, options?: ActionOptions]
  ) => Promise<CallState<R> | null>;
  /** Asks the relay to cancel the command. Rejects with CallerError. */
  readonly cancel: (reason?: string) => Promise<Receipt>;
  /** Resets the state to `idle`. The command continues. */
  readonly reset: () => void;
};

/** Invokes one action of one client. `P` and `R`: the types of the params and the result, which are not checked. */
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

/** The hook `useAction` with the types of a contract `A`, the type of what `defineActions` returned. */
export type UseActionOf<A extends ActionSpecs> = <N extends keyof A & string>(
  target: Omit<Target, 'action'> & { readonly action: N },
  options?: CallOptions,
) => ActionCall<ParamsIn<A[N]>, ResultOf<A[N]>>;

/**
 * Returns `useAction` with the types of a contract: `createUseAction<typeof actions>()`. Only the client checks values
 * against the contract.
 */
export function createUseAction<A extends ActionSpecs>(): UseActionOf<A> {
  return (target, options) => useAction(target, options);
}

export type CommandState<R> = CallState<R> & Pick<ActionCall<Params, R>, 'cancel'>;

/**
 * Follows a command until it ends, for example one that was invoked before a reload. `handle` null: there is no
 * command. This invokes nothing, so following a command several times does not run it again.
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

/** Manages the state of a component's latest call. */
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

/**
 * Waits until the command has ended. A wait may end earlier, at its time limit or when its relay shuts down; then it is
 * repeated.
 */
async function endOf<R>(
  first: Promise<Invocation<R>>,
  again: () => Promise<Invocation<R>>,
): Promise<EndedInvocation<R>> {
  let answer = await first;
  while (answer.outcome === 'pending') answer = await again();
  return answer;
}

export type ShownConnections = ConnectionsView & {
  /** The state of the stream. Unless it is `live`, the connections may be out of date. */
  readonly status: LiveStatus;
  /** Why the relay refused to list connections; null if it did not. After an error, `status` no longer changes. */
  readonly error: LiveError | null;
};

const NO_CONNECTIONS: ShownConnections = { connections: [], complete: false, status: 'connecting', error: null };

/**
 * Returns the connections of clients and keeps them up to date. Until they were read, the list is empty and `complete`
 * is false. Throws if the provider has no `live`.
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

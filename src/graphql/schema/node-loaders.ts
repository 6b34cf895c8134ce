/** Batches the reads of `node` and `nodes`: one call of core for each kind of row. */
import type { Requester } from '../../core/auth/principal.ts';
import type { ExecutionContext } from '../../core/contexts/context.ts';
import type { ContextKey, CountedWindow, WindowKey } from '../../core/contexts/store.ts';
import type { Core, UserView } from '../../core/core.ts';
import type { Command } from '../../core/delivery/command.ts';
import type { NodeView, ScopeView } from '../../core/delivery/observation.ts';
import { streamKey, type Message } from '../../core/history/message.ts';
import type { MessageKey, StreamKey, StreamSummary } from '../../core/history/store.ts';
import { clientKeyText, commandKeyText, type CommandKey } from '../../core/ids.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { SessionView, SiteView } from '../../core/sites/api.ts';
import { siteKeyText, type SiteKey } from '../../core/sites/site.ts';
import { loadingOf } from './loaders-batch.ts';

type Find<K, V> = (key: K) => MaybePromise<V | null>;

/**
 * Loads single rows by their keys, each kind in one batch. `user`, `session`, `dispatcherNode` and `scope` check the
 * access of the requester; for the other kinds the caller has checked it.
 */
export type NodeLoaders = {
  readonly user: Find<string, UserView>;
  readonly command: Find<CommandKey, Command>;
  readonly stream: Find<StreamKey, StreamSummary>;
  readonly message: Find<MessageKey, Message>;
  readonly context: Find<ContextKey, ExecutionContext>;
  readonly window: Find<WindowKey, CountedWindow>;
  readonly site: Find<SiteKey, SiteView>;
  readonly session: Find<string, SessionView>;
  readonly dispatcherNode: Find<string, NodeView>;
  readonly scope: Find<string, ScopeView>;
  readonly forget: () => void;
};

export function createNodeLoaders(core: Core, requester: Requester): NodeLoaders {
  const { single } = loadingOf(core);
  const user = single(itself, (ids: readonly string[]) => core.users.many(requester, ids));
  const command = single(commandKeyText, (keys: readonly CommandKey[]) => core.delivery.many(keys));
  const stream = single(
    ({ userId, suffix }: StreamKey) => streamKey(userId, suffix),
    (keys) => core.history.manyStreams(keys),
  );
  const message = single(
    ({ userId, suffix, seq }: MessageKey) => `${seq}/${streamKey(userId, suffix)}`,
    (keys) => core.history.manyMessages(requester, keys),
  );
  const context = single(
    (key: ContextKey) => `${clientKeyText(key)}/${key.contextId}`,
    (keys) => core.contexts.many(keys),
  );
  const window = single(
    (key: WindowKey) => `${clientKeyText(key)}/${key.windowId}`,
    (keys) => core.contexts.manyWindows(keys),
  );
  const site = single(siteKeyText, (keys: readonly SiteKey[]) => core.sites.many(keys));
  const session = single(itself, (ids: readonly string[]) =>
    Promise.all(ids.map((id) => core.sites.session(requester, id))),
  );
  const dispatcherNode = single(itself, (ids: readonly string[]) => core.delivery.nodesById(requester, ids));
  const scope = single(itself, (ids: readonly string[]) => core.delivery.tenantsById(requester, ids));
  const all = [user, command, stream, message, context, window, site, session, dispatcherNode, scope];
  return {
    user: user.load,
    command: command.load,
    stream: stream.load,
    message: message.load,
    context: context.load,
    window: window.load,
    site: site.load,
    session: session.load,
    dispatcherNode: dispatcherNode.load,
    scope: scope.load,
    forget: () => all.forEach((loader) => loader.forget()),
  };
}

const itself = (key: string): string => key;

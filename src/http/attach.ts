/**
 * Serves the relay's base path in an HTTP server that belongs to the program around it. Of that server's events it
 * takes those of requests below the base path, before any listener of the program; all else reaches the program as
 * before.
 */
import { IncomingMessage, ServerResponse, type Server } from 'node:http';
import { Server as HttpsServer } from 'node:https';
import { Socket } from 'node:net';
import { fail } from '../core/errors.ts';
import type { RequestHandler } from './request-handler.ts';
import { pathOf } from './request-info.ts';
import { holdingBack, type OnRecord } from './server.ts';

/** A server of `node:http` or `node:https`, listening or not. */
export type HostServer = Server | HttpsServer;

export type Attachment = {
  /** The URL of the base path; null while the server does not listen on a port. */
  readonly url: string | null;
  /** Takes no more requests, and gives responses in progress one second. The server goes on without the relay. */
  close(): Promise<void>;
  /** Takes no more requests, and destroys the sockets of those in progress. */
  abort(): void;
};

/** How long responses in progress may take after the relay starts to close, in milliseconds. */
const CLOSE_MS = 1_000;

/** Node 24.9 and later ask this member of a server whether to accept an upgrade. Its types do not have it. */
type AskedToUpgrade = { shouldUpgradeCallback?: (request: IncomingMessage) => boolean };

export type AttachHandlerOptions = {
  readonly handler: RequestHandler;
  /** The path below which requests and upgrades belong to the relay. */
  readonly basePath: string;
  /**
   * See `Backend.onRecord`. If it is set, a socket writes no byte before, from the first request of the relay on. That
   * includes later responses of the program over the same socket.
   */
  readonly onRecord?: OnRecord | undefined;
};

/**
 * Passes the requests and upgrades below `basePath` to the handler. Throws `invalid_argument` for a base path that is
 * the root or no path, and on a Node.js that cannot leave the upgrades of others alone.
 */
export function attachHandler(server: HostServer, { handler, basePath, onRecord }: AttachHandlerOptions): Attachment {
  if (!/^(\/[^/?#\s]+)+$/.test(basePath)) fail('invalid_argument', 'basePath: expected a path such as /relay.');
  const own = createOwnRequests(handler);
  const holdBack = onRecord && holdingBack(onRecord);
  const isOwn = (request: IncomingMessage): boolean => pathOf(request, basePath) !== null;
  const stopUpgrades = takeUpgrades(server, (request) => isOwn(request) && handler.shouldUpgrade(request));
  const stopRequests = interceptEvents(server, (event, [request, ...rest]) => {
    if (!(request instanceof IncomingMessage) || !isOwn(request)) return false;
    holdBack?.(request.socket);
    return own.take(event, request, rest);
  });
  const detach = (): void => {
    stopRequests();
    stopUpgrades();
  };
  return {
    get url() {
      const origin = originOf(server);
      return origin === null ? null : origin + basePath;
    },
    async close() {
      detach();
      await own.end(CLOSE_MS);
    },
    abort() {
      detach();
      own.destroy();
    },
  };
}

/**
 * Handles the requests of the relay. The program owns the sockets: one counts for the relay only while a request of the
 * relay is in progress over it, so the relay closes none that serves the program.
 */
function createOwnRequests(handler: RequestHandler) {
  const inProgress = new Map<ServerResponse, Socket>();
  const sockets = new Map<Socket, number>();

  const handle = (request: IncomingMessage, response: ServerResponse, run: RequestHandler['request']): void => {
    const { socket } = request;
    const before = sockets.get(socket) ?? 0;
    if (before === 0) handler.connection(socket);
    sockets.set(socket, before + 1);
    inProgress.set(response, socket);
    response.once('close', () => {
      inProgress.delete(response);
      const left = (sockets.get(socket) ?? 1) - 1;
      if (left > 0) return void sockets.set(socket, left);
      sockets.delete(socket);
      handler.released(socket);
    });
    run(request, response);
  };

  return {
    /** Handles an event of a request of the relay. Returns false for an event that the relay does not handle. */
    take(event: string, request: IncomingMessage, [second, head]: readonly unknown[]): boolean {
      if (event === 'upgrade' && second instanceof Socket && Buffer.isBuffer(head)) {
        handler.connection(second);
        handler.upgrade(request, second, head);
        return true;
      }
      if (!(second instanceof ServerResponse)) return false;
      if (event === 'checkExpectation') handle(request, second, handler.expectation);
      else if (event === 'request') handle(request, second, handler.request);
      else if (event === 'checkContinue') {
        second.writeContinue();
        handle(request, second, handler.request);
      } else return false;
      return true;
    },
    /** Resolves when no request is in progress. After `withinMs` milliseconds it destroys the sockets of the rest. */
    async end(withinMs: number): Promise<void> {
      const closed = [...inProgress.keys()].map(
        (response) => new Promise<void>((resolve) => response.once('close', () => resolve())),
      );
      const cut = setTimeout(() => this.destroy(), withinMs);
      await Promise.all(closed);
      clearTimeout(cut);
    },
    destroy(): void {
      for (const socket of inProgress.values()) socket.destroy();
    },
  };
}

/**
 * Offers each event of the server to `take` before its listeners, whenever they were added, and keeps those events from
 * them for which it returns true. Returns a function that ends this.
 */
function interceptEvents(server: HostServer, take: (event: string, values: readonly unknown[]) => boolean): () => void {
  const emit = server.emit;
  let active = true;
  const intercepted = function (this: HostServer, event: string, ...values: readonly unknown[]): boolean {
    if (active && take(event, values)) return true;
    return Reflect.apply(emit, this, [event, ...values]);
  };
  Object.assign(server, { emit: intercepted });
  return () => {
    active = false;
    // Another library may have replaced `emit` since. It calls this one, which then takes nothing.
    if (Object.is(server.emit, intercepted)) Object.assign(server, { emit });
  };
}

/**
 * Lets the server accept the upgrades of the relay, and those of the program as before. Returns a function that ends
 * it.
 */
function takeUpgrades(server: HostServer & AskedToUpgrade, isOwn: (request: IncomingMessage) => boolean): () => void {
  const asked = server.shouldUpgradeCallback;
  if (!asked) fail('invalid_argument', 'Use Node 24.9 or newer to attach a relay to a server.');
  // Node.js drops an upgrade for which the server has no listener.
  const listener = (): void => undefined;
  let active = true;
  const shouldUpgrade = (request: IncomingMessage): boolean => {
    if (active && isOwn(request)) return true;
    // By default a server accepts upgrades if it has a listener. The one above must not count as one of the program's.
    server.off('upgrade', listener);
    const accepted = asked.call(server, request);
    if (active) server.on('upgrade', listener);
    return accepted;
  };
  server.on('upgrade', listener);
  server.shouldUpgradeCallback = shouldUpgrade;
  return () => {
    active = false;
    server.off('upgrade', listener);
    if (server.shouldUpgradeCallback === shouldUpgrade) server.shouldUpgradeCallback = asked;
  };
}

function originOf(server: HostServer): string | null {
  const address = server.address();
  if (typeof address !== 'object' || address === null) return null;
  const everywhere = address.address === '::' || address.address === '0.0.0.0';
  const host = everywhere ? '127.0.0.1' : address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return `${server instanceof HttpsServer ? 'https' : 'http'}://${host}:${address.port}`;
}

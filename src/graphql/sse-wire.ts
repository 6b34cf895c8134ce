import type { ServerResponse } from 'node:http';
import type { ExecutionResult, GraphQLError } from 'graphql';
import type { Clock } from '../core/clock.ts';
import { SSE_STALL_MS } from '../core/limits.ts';

const PING = ':\n\n';

/**
 * One HTTP response as an event stream. Writers wait for `ready` before they take their next result, so a slow reader holds back its source
 * (whose queue is bounded and counts what it drops) and never this process's memory.
 */
export class Wire {
  readonly #res: ServerResponse;
  readonly #clock: Clock;
  readonly #onClose: () => void;
  #closed = false;
  /** Since when the reader takes nothing; null while it does. */
  #blockedAt: number | null = null;
  #drained: PromiseWithResolvers<void> | null = null;

  /** `onClose` is called once, whoever ends the stream. */
  constructor(res: ServerResponse, { clock, onClose }: { clock: Clock; onClose: () => void }) {
    this.#res = res;
    this.#clock = clock;
    this.#onClose = onClose;
    res.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    });
    res.on('drain', () => this.#unblock());
    res.once('close', () => this.#finish());
    // Some browsers hold the headers back until the first bytes of the body.
    this.send(PING);
  }

  get closed(): boolean {
    return this.#closed;
  }

  send(text: string): void {
    if (this.#closed) return;
    if (!this.#res.write(text)) this.#blockedAt ??= this.#clock.now();
  }

  /** Resolves when more may be written, or when nothing more will be. */
  async ready(): Promise<void> {
    if (this.#blockedAt === null || this.#closed) return;
    this.#drained ??= Promise.withResolvers();
    await this.#drained.promise;
  }

  /** A comment, which keeps proxies from cutting an idle stream. A reader that takes nothing for too long is cut instead. */
  ping(): void {
    if (this.#blockedAt === null) this.send(PING);
    else if (this.#clock.now() - this.#blockedAt >= SSE_STALL_MS) this.#res.destroy();
  }

  /** Ends the response. A client that saw no `complete` takes this for a lost connection and comes again. */
  end(): void {
    if (this.#closed) return;
    this.#res.end();
    this.#finish();
  }

  #unblock(): void {
    this.#blockedAt = null;
    this.#drained?.resolve();
    this.#drained = null;
  }

  #finish(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#unblock();
    this.#onClose();
  }
}

/** `id` names the operation on a stream that carries several; null: the stream is the operation's own. */
export function nextFrame(id: string | null, result: ExecutionResult): string {
  const shown = result.errors ? { ...result, errors: result.errors.map(showError) } : result;
  return `event: next\ndata: ${JSON.stringify(id === null ? shown : { id, payload: shown })}\n\n`;
}

export function completeFrame(id: string | null): string {
  return `event: complete\ndata:${id === null ? '' : ` ${JSON.stringify({ id })}`}\n\n`;
}

/** `extensions.http` is a word to the HTTP door and is not shown. */
function showError(error: GraphQLError): object {
  const { extensions = {}, ...shown } = error.toJSON();
  const { http: _http, ...rest } = extensions;
  return Object.keys(rest).length > 0 ? { ...shown, extensions: rest } : shown;
}

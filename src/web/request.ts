/**
 * What the relay uses of an HTTP request, of its response, and of the socket of both. Those of `node:http` have these
 * members; whoever answers requests without a server implements them.
 */
import type { IncomingHttpHeaders, OutgoingHttpHeader, OutgoingHttpHeaders } from 'node:http';

/** The socket over which a request arrived. */
export interface HttpSocket {
  /** The address of the peer; absent once the socket is destroyed. */
  readonly remoteAddress?: string | undefined;
  readonly bytesRead: number;
  readonly bytesWritten: number;
  /** The bytes that were written and that the peer has not taken yet. */
  readonly writableLength: number;
  readonly writableEnded: boolean;
  readonly destroyed: boolean;
  /** The error with which the socket was destroyed; null: none. */
  readonly errored: Error | null;
  /** Writes bytes after those of the response so far. Returns false if the writer should wait for `drain`. */
  write(bytes: Buffer): boolean;
  end(): unknown;
  /** Ends the socket once what was written has been taken. A response that closes its connection calls it. */
  destroySoon(): void;
  destroy(): unknown;
  on(event: 'close' | 'drain', listener: (this: HttpSocket) => void): unknown;
  once(event: 'close' | 'drain', listener: (this: HttpSocket) => void): unknown;
  once(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'close' | 'drain' | 'error', listener: (this: HttpSocket) => void): unknown;
}

export interface HttpRequest {
  readonly method?: string | undefined;
  /** The request target. */
  url?: string | undefined;
  /** The headers by their names in lower case. */
  headers: IncomingHttpHeaders;
  /** The names and values of the header lines, alternating, in their order. */
  rawHeaders: string[];
  readonly httpVersionMinor: number;
  readonly socket: HttpSocket;
  /** Whether the whole body has arrived. */
  readonly complete: boolean;
  pause(): unknown;
  on(event: 'data', listener: (chunk: Buffer) => void): this;
  on(event: 'end' | 'close', listener: () => void): this;
  off(event: 'data', listener: (chunk: Buffer) => void): this;
  off(event: 'end' | 'close', listener: () => void): this;
}

export interface HttpResponse {
  readonly req: HttpRequest;
  /** The socket; null once the response has ended. */
  readonly socket: HttpSocket | null;
  readonly statusCode: number;
  readonly headersSent: boolean;
  /** Whether the body is sent in chunks, because its length was not announced. */
  readonly chunkedEncoding: boolean;
  readonly writableLength: number;
  /** Whether everything was written, and the response has ended. */
  readonly writableFinished: boolean;
  /** Whether the response has closed: it was written whole, or the peer hung up. */
  readonly destroyed: boolean;
  getHeader(name: string): OutgoingHttpHeader | undefined;
  hasHeader(name: string): boolean;
  setHeader(name: string, value: OutgoingHttpHeader): unknown;
  writeHead(status: number, headers?: OutgoingHttpHeaders | OutgoingHttpHeader[]): this;
  writeContinue(): void;
  flushHeaders(): void;
  /** Collects what is written until the end of the response, so that it leaves together. */
  cork(): void;
  write(chunk: string | Buffer | Uint8Array): boolean;
  end(): unknown;
  end(text: string | Buffer, encoding?: BufferEncoding): unknown;
  destroy(): unknown;
  on(event: 'close' | 'drain' | 'finish', listener: () => void): unknown;
  once(event: 'close' | 'drain' | 'finish', listener: () => void): unknown;
}

/**
 * Defines the parts of an HTTP request, its response and their socket that the relay uses. The classes of `node:http`
 * have these members. A program that passes requests to the relay without a server must implement them.
 */
import type { IncomingHttpHeaders, OutgoingHttpHeader, OutgoingHttpHeaders } from 'node:http';

/** The socket over which a request arrived. */
export interface HttpSocket {
  /** The address of the peer; absent after the socket is destroyed. */
  readonly remoteAddress?: string | undefined;
  readonly bytesRead: number;
  readonly bytesWritten: number;
  /** The number of bytes that were written but that the peer has not read yet. */
  readonly writableLength: number;
  readonly writableEnded: boolean;
  readonly destroyed: boolean;
  /** The error that destroyed the socket; null if there was none. */
  readonly errored: Error | null;
  /**
   * Writes bytes after those that the response has written so far. Returns false if the writer should wait for `drain`.
   */
  write(bytes: Buffer): boolean;
  end(): unknown;
  /** Ends the socket after the peer has read all written bytes. Used by a response that closes its connection. */
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
  /** The headers. Their names are in lower case. */
  headers: IncomingHttpHeaders;
  /** The header lines in their order, as alternating names and values. */
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
  /** Whether the body is sent in chunks, which is so when its length was not announced. */
  readonly chunkedEncoding: boolean;
  readonly writableLength: number;
  /** Whether the response has ended and all of its bytes were written. */
  readonly writableFinished: boolean;
  /** Whether the response has closed, because it was completely written or because the peer disconnected. */
  readonly destroyed: boolean;
  getHeader(name: string): OutgoingHttpHeader | undefined;
  hasHeader(name: string): boolean;
  setHeader(name: string, value: OutgoingHttpHeader): unknown;
  writeHead(status: number, headers?: OutgoingHttpHeaders | OutgoingHttpHeader[]): this;
  writeContinue(): void;
  flushHeaders(): void;
  /** Collects all writes until the end of the response, so that they are sent together. */
  cork(): void;
  write(chunk: string | Buffer | Uint8Array): boolean;
  end(): unknown;
  end(text: string | Buffer, encoding?: BufferEncoding): unknown;
  destroy(): unknown;
  on(event: 'close' | 'drain' | 'finish', listener: () => void): unknown;
  once(event: 'close' | 'drain' | 'finish', listener: () => void): unknown;
}

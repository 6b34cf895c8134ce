/**
 * Is loaded into each relay of a fault run with pauses, before the relay itself. It logs when commands go to clients'
 * sockets, and when answers that began a pause have gone. All times come from one clock, so the judge knows their order
 * across relays. The log sees writes only after the relay has released them, because a relay holds bytes back until
 * they are recorded.
 */
import { Socket } from 'node:net';
import { isMainThread } from 'node:worker_threads';
import { openLog } from '../log/log.ts';

/** The environment variable with a `WriteLogOptions` as JSON. */
export const WRITE_LOG = 'FAULTS_WRITE_LOG';
export type WriteLogOptions = { readonly folder: string; readonly name: string; readonly boot: number };

/** Matches the header of a command. No other text from a relay to a client begins like this. */
const COMMAND = /\{"type":"command","command_id":"([^"]+)"/g;
/** Matches the answer that began a pause. Only this answer states how many running commands were asked to cancel. */
const PAUSE = /"pause_id":"([^"]+)".*"asked":/;

type Chunk = Uint8Array | string;

const given = process.env[WRITE_LOG];
if (given !== undefined && isMainThread) {
  const { folder, name, boot }: WriteLogOptions = JSON.parse(given);
  const log = openLog({ folder, proc: name, boot: `${boot}-${process.pid}-writes` });
  const { _write: write, _writev: writeMany } = Socket.prototype;

  /** Sends chunks, and logs around that: commands before they leave, and answers after they have left. */
  const observed = (socket: Socket, chunks: readonly Chunk[], send: () => void): void => {
    // Only sockets that a server has accepted lead to a client or a caller.
    const text = Reflect.get(socket, 'server') ? chunks.map(textOf).join('') : '';
    const commands = text
      .matchAll(COMMAND)
      .map(([, id]) => id ?? '')
      .toArray();
    if (commands.length > 0) log.write({ event: 'written', of: name, commands });
    send();
    const pauseId = text.startsWith('HTTP/') ? PAUSE.exec(text)?.[1] : undefined;
    if (pauseId !== undefined) log.write({ event: 'pause-written', of: name, pauseId });
  };

  Socket.prototype._write = function (this: Socket, chunk: Chunk, ...rest) {
    observed(this, [chunk], () => write.call(this, chunk, ...rest));
  };
  Socket.prototype._writev = function (this: Socket, chunks: { chunk: Chunk; encoding: BufferEncoding }[], done) {
    const texts = chunks.map(({ chunk }) => chunk);
    observed(this, texts, () => writeMany?.call(this, chunks, done));
  };
}

function textOf(chunk: Chunk): string {
  return typeof chunk === 'string'
    ? chunk
    : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1');
}

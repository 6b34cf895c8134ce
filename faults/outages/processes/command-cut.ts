/**
 * Determines the command at which a proxy breaks a connection to Redis, from the bytes that pass. It uses no socket
 * itself.
 */

/** A command that a connection sends. */
export type SentCommand = {
  /** The number of the command on its connection, from 1. */
  readonly number: number;
  /** The name of the command in upper case. */
  readonly name: string;
  /** The name that the connection set with CLIENT SETNAME; empty if it has none. */
  readonly connection: string;
};

/** The number of commands of a connection that are counted. Everything after them passes unread. */
const COUNTED = 200;
/** The commands whose replies are push messages. */
const ANSWERED_BY_PUSHES: ReadonlySet<string> = new Set(['SUBSCRIBE', 'UNSUBSCRIBE', 'SSUBSCRIBE', 'PSUBSCRIBE']);

/**
 * Reads the bytes that pass over one connection to Redis (RESP3). The command at which the connection breaks is
 * forwarded, so Redis may run it. All replies to earlier commands pass, but the reply to this command does not.
 */
export class CommandCounter {
  readonly #breaksAt: (command: SentCommand) => boolean;
  #up: Buffer = Buffer.alloc(0);
  #down: Buffer = Buffer.alloc(0);
  #commands = 0;
  #name = '';
  /** The numbers of replies, not counting push messages, that must pass and that have passed. */
  readonly #replies = { expected: 0, passed: 0 };
  #breaking = false;

  /** `breaksAt`: called once for each command, before the command is forwarded. */
  constructor(breaksAt: (command: SentCommand) => boolean) {
    this.#breaksAt = breaksAt;
  }

  /** Receives bytes of the client. Returns the bytes to forward. */
  up(bytes: Buffer): Buffer {
    if (this.#breaking) return Buffer.alloc(0);
    if (this.#commands >= COUNTED) return bytes;
    const all = Buffer.concat([this.#up, bytes]);
    const frames = framesOf(all);
    const commands = frames.map(({ from, to }) => wordsOf(all.subarray(from, to)));
    // All commands of a handshake arrive together, so the connection's name is known before its first command is
    // forwarded.
    for (const [name, kind, value] of commands)
      if (name === 'CLIENT' && kind?.toUpperCase() === 'SETNAME') this.#name = value ?? '';
    for (const [i, [name = '']] of commands.entries()) {
      const command = { number: ++this.#commands, name, connection: this.#name };
      if (this.#breaksAt(command)) {
        this.#breaking = true;
        return all.subarray(0, frames[i]?.to);
      }
      if (!ANSWERED_BY_PUSHES.has(name)) this.#replies.expected++;
    }
    const end = frames.at(-1)?.to ?? 0;
    const last = this.#commands >= COUNTED ? all.length : end;
    this.#up = all.subarray(last);
    return all.subarray(0, last);
  }

  /** Receives bytes of Redis. Returns the bytes to forward; null: the connection must break now. */
  down(bytes: Buffer): Buffer | null {
    if (!this.#breaking && this.#commands >= COUNTED) return this.#rest(bytes);
    const all = Buffer.concat([this.#down, bytes]);
    let end = 0;
    for (const { from, to } of framesOf(all)) {
      if (this.#breaking && this.#replies.passed >= this.#replies.expected) return null;
      if (all[from] !== PUSH) this.#replies.passed++;
      end = to;
    }
    this.#down = all.subarray(end);
    return all.subarray(0, end);
  }

  #rest(bytes: Buffer): Buffer {
    const all = this.#down.length === 0 ? bytes : Buffer.concat([this.#down, bytes]);
    this.#down = Buffer.alloc(0);
    return all;
  }
}

const PUSH = '>'.charCodeAt(0);
const CRLF = '\r\n';

type Frame = { readonly from: number; readonly to: number };

function framesOf(bytes: Buffer): readonly Frame[] {
  const frames: Frame[] = [];
  for (let from = 0; from < bytes.length;) {
    const to = endOf(bytes, from);
    if (to === null) break;
    frames.push({ from, to });
    from = to;
  }
  return frames;
}

/** Returns the end of the RESP value that begins at `from`; null if the end has not arrived yet. */
function endOf(bytes: Buffer, from: number): number | null {
  const line = bytes.indexOf(CRLF, from);
  if (line < 0) return null;
  const type = String.fromCharCode(bytes[from] ?? 0);
  const size = Number(bytes.toString('latin1', from + 1, line));
  let at = line + CRLF.length;
  if ('$=!'.includes(type)) {
    if (size >= 0) at += size + CRLF.length;
    return at <= bytes.length ? at : null;
  }
  const parts = '*~>'.includes(type) ? size : '%|'.includes(type) ? 2 * size : 0;
  // An attribute is followed by the value to which it belongs.
  for (let part = 0; part < parts + (type === '|' ? 1 : 0); part++) {
    const end = endOf(bytes, at);
    if (end === null) return null;
    at = end;
  }
  return at;
}

/** Returns the first three parts of a command: its name in upper case, and two arguments. */
function wordsOf(command: Buffer): readonly string[] {
  const words: string[] = [];
  for (let at = command.indexOf(CRLF) + CRLF.length; at < command.length && words.length < 3;) {
    const line = command.indexOf(CRLF, at);
    const size = Number(command.toString('latin1', at + 1, line));
    const from = line + CRLF.length;
    words.push(command.toString('utf8', from, from + size));
    at = from + size + CRLF.length;
  }
  const [name = '', ...rest] = words;
  return [name.toUpperCase(), ...rest];
}

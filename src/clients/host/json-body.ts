/** Reads the JSON body of a request to the control server, up to a size limit. */
import type { IncomingMessage } from 'node:http';
import { readMembers } from '../../protocol/json.ts';
import { RawJson } from '../link/raw-json.ts';
import { ProblemError } from './problems.ts';

const MAX_BODY_BYTES = 1024 * 1024;

/** The members of a body whose JSON text is sent on unchanged. */
const PASSED_ON: ReadonlySet<string> = new Set(['data']);
/** The most members of the object in a body. */
const MAX_MEMBERS = 100;

/**
 * Reads a body as a JSON object; `{}` if there is no body. The member `data` becomes a RawJson. The headers are checked
 * first, and `sendContinue` is called before the body is read. If this throws a ProblemError, the rest of the body is
 * not read.
 */
export async function readObject(request: IncomingMessage, sendContinue: () => void): Promise<Record<string, unknown>> {
  const { headers } = request;
  const length = Number(headers['content-length'] ?? 0);
  if (length === 0 && headers['transfer-encoding'] === undefined) return {};
  if (length > MAX_BODY_BYTES) throw tooLarge();
  if (!isJson(headers)) throw new ProblemError('unsupported_media_type', 'A body must be application/json in UTF-8.');
  sendContinue();
  return parse(await collect(request));
}

function isJson(headers: IncomingMessage['headers']): boolean {
  const [type = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';');
  const charset = parameters.map((text) => text.trim()).find((text) => text.startsWith('charset='));
  const utf8 = charset === undefined || /^charset="?utf-8"?$/.test(charset);
  return type.trim() === 'application/json' && utf8 && (headers['content-encoding'] ?? 'identity') === 'identity';
}

async function collect(request: IncomingMessage): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let size = 0;
  // `for await` would destroy the socket when it is left early, before the response is sent.
  await new Promise<void>((resolve, reject) => {
    const take = (chunk: Buffer): void => {
      size += chunk.length;
      chunks.push(chunk);
      if (size <= MAX_BODY_BYTES) return;
      request.off('data', take);
      request.pause();
      reject(tooLarge());
    };
    request.on('data', take);
    request.once('end', resolve);
    const broken = (): void =>
      reject(new ProblemError('invalid_argument', 'The body ended before its announced length.'));
    request.once('error', broken);
    request.once('close', broken);
  });
  return Buffer.concat(chunks);
}

function parse(bytes: Uint8Array): Record<string, unknown> {
  try {
    const members = readMembers(new TextDecoder('utf-8', { fatal: true }).decode(bytes), MAX_MEMBERS);
    if (members !== null && typeof members !== 'string')
      return Object.fromEntries(
        [...members].map(([name, json]) => [name, PASSED_ON.has(name) ? new RawJson(json) : JSON.parse(json)]),
      );
  } catch {
    // The text is not UTF-8 or not JSON. The ProblemError below reports both.
  }
  throw new ProblemError('invalid_argument', 'The body must be a JSON object.');
}

function tooLarge(): ProblemError {
  return new ProblemError('payload_too_large', `A body may have at most ${MAX_BODY_BYTES} bytes.`);
}

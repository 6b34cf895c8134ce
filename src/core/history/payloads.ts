/** Reads the payloads of messages, including those in the spill store. */
import type { Deps } from '../deps.ts';
import type { Message, ShownPayload } from './message.ts';
import type { SpillRead } from './spill.ts';

/** Objects of the spill store that one answer reads concurrently. */
const AT_ONCE = 16;

const SHOWN: Readonly<Record<SpillRead['state'], ShownPayload['state']>> = {
  present: 'spilled_included',
  expired: 'expired',
  unavailable: 'unavailable',
};

/**
 * One answer per message, in the order given. A large payload is read from the spill store, and is `expired` once its
 * time is over.
 */
export async function readPayloads(deps: Deps, messages: readonly Message[]): Promise<readonly ShownPayload[]> {
  const shown: ShownPayload[] = [];
  for (let from = 0; from < messages.length; from += AT_ONCE) {
    shown.push(...(await Promise.all(messages.slice(from, from + AT_ONCE).map((message) => readOne(deps, message)))));
  }
  return shown;
}

async function readOne(deps: Deps, { payload, spill }: Message): Promise<ShownPayload> {
  if (payload !== null) return { state: 'included', text: payload };
  if (spill === null) return { state: 'none', text: null };
  if (deps.clock.now() >= spill.expiresAt) return { state: 'expired', text: null };
  if (spill.name === null) return { state: 'unavailable', text: null };
  const read = await readSafely(deps, { ...spill, name: spill.name });
  return { state: SHOWN[read.state], text: read.state === 'present' ? read.text : null };
}

/** An operator's own store may throw, or return a text other than the one that was stored. */
async function readSafely({ spill, log, crypto }: Deps, ref: Parameters<typeof spill.read>[0]): Promise<SpillRead> {
  try {
    const read = await spill.read(ref);
    // A managed store has checked the digest already.
    const whole = read.state !== 'present' || spill.managed || crypto.sha256(read.text) === ref.sha256;
    if (whole) return read;
  } catch (error) {
    log.warn({ err: error }, 'a stored payload could not be read');
  }
  return { state: 'unavailable' };
}

/** Reads the payloads of messages, including those in the spill store. */
import type { Principal } from '../auth/principal.ts';
import type { Deps } from '../deps.ts';
import { holderOf } from '../shares/holder.ts';
import type { Message, ShownPayload, SpillRead } from './message.ts';

/**
 * How many payloads one answer reads at the same time, and the most bytes that these may have in the spill store. A
 * single object may have more.
 */
const AT_ONCE = { objects: 16, bytes: 1024 * 1024 } as const;

const SHOWN: Readonly<Record<SpillRead['state'], ShownPayload['state']>> = {
  present: 'spilled_included',
  expired: 'expired',
  unavailable: 'unavailable',
};

/**
 * Returns one payload per message, in the given order. A large payload is read from the spill store; it is `expired` if
 * its time is over. Between groups of reads, other work in the event loop runs. All reads of an answer use one turn of
 * `ReadTurns`: with one turn for each read, an answer would hold its first payloads in memory until its last turn.
 */
export async function readPayloads(
  deps: Deps,
  requester: Principal | null,
  messages: readonly Message[],
): Promise<readonly ShownPayload[]> {
  return deps.readTurns.run(holderOf(requester), async () => {
    const shown: ShownPayload[] = [];
    for (const group of groupsOf(messages)) {
      // The digest of each object is checked, which takes a millisecond for each MiB, so other work runs in between.
      if (shown.length > 0) await new Promise<void>((resolve) => deps.loop.afterOthers(resolve));
      shown.push(...(await Promise.all(group.map((message) => readOne(deps, message)))));
    }
    return shown;
  });
}

function* groupsOf(messages: readonly Message[]): Generator<readonly Message[]> {
  let group: Message[] = [];
  let bytes = 0;
  for (const message of messages) {
    const more = message.spill?.bytes ?? 0;
    if (group.length === AT_ONCE.objects || (group.length > 0 && bytes + more > AT_ONCE.bytes)) {
      yield group;
      group = [];
      bytes = 0;
    }
    group.push(message);
    bytes += more;
  }
  if (group.length > 0) yield group;
}

async function readOne(deps: Deps, { payload, spill }: Message): Promise<ShownPayload> {
  if (payload !== null) return { state: 'included', text: payload };
  if (spill === null) return { state: 'none', text: null };
  if (deps.clock.now() >= spill.expiresAt) return { state: 'expired', text: null };
  if (spill.name === null) return { state: 'unavailable', text: null };
  const read = await readSafely(deps, { ...spill, name: spill.name });
  return { state: SHOWN[read.state], text: read.state === 'present' ? read.text : null };
}

/**
 * Reads an object. Returns `unavailable` if this fails. A store of the operator may throw any error, or return a wrong
 * text.
 */
async function readSafely({ spill, log, crypto }: Deps, ref: Parameters<typeof spill.read>[0]): Promise<SpillRead> {
  try {
    const read = await spill.read(ref);
    // A managed store has already checked the digest.
    const whole = read.state !== 'present' || spill.managed || crypto.sha256(read.text) === ref.sha256;
    if (whole) return read;
  } catch (error) {
    log.warn({ err: error }, 'a stored payload could not be read');
  }
  return { state: 'unavailable' };
}

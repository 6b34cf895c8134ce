/** Kills the relay that has a certain role in a call in progress, if requested in the middle of an owner's work. */
import { ROLES, type Role } from '../log/events.ts';
import type { FaultLog } from '../log/log.ts';
import type { Fault } from '../plan/plan.ts';
import { ADMIN_TOKEN, type Relay } from '../processes/relays.ts';
import type { World } from '../world.ts';
import { given, until } from './act.ts';
import type { CallInProgress, Moment, OwnerWatch } from '../processes/owner-watch.ts';
import { restart } from './relay-acts.ts';

/** The maximum time that a kill waits for its moment, in milliseconds. */
const MOMENT_MS = 20_000;
/**
 * The maximum time that a kill without a moment waits for a call in progress, and the interval at which it checks, in
 * milliseconds.
 */
const CALL_MS = 5_000;
const CALL_LOOK_MS = 5;
/** The interval at which the relays of the clients' links are read, and the timeout of such a read, in milliseconds. */
const LINKS_MS = 250;
const LINKS_READ_MS = 3_000;
/** The steps of a handover at which the kills of a run hit, in turn. */
const STEPS = ['follow', 'ready', 'yours'] as const;

/** Kills a relay. Resolves right after the kill, with a promise that resolves when the relay runs again. */
export async function killAimed(
  world: World,
  fault: Fault,
  log: FaultLog,
): Promise<{ readonly healed: Promise<void> }> {
  const { id, kind, role = 'owner', work = null } = fault;
  const watch = given(world.owners);
  const step = STEPS[id % STEPS.length];
  const fits = (moment: Moment): boolean =>
    moment.work === work && (moment.step === null || moment.step === step) && isAlive(world, moment.by);
  await using links = await followLinks(world);
  const moment = work === null ? null : await watch.next(fits, MOMENT_MS);
  const choose = (): Victim | undefined => {
    const found = victimsOf(watch.calls, { role, moment, watch, links }).filter(({ node }) => isAlive(world, node));
    return found.find(({ foreign }) => foreign) ?? found[0];
  };
  let chosen = choose();
  if (!chosen && !moment) await until(async () => (chosen = choose()) !== undefined, CALL_MS, CALL_LOOK_MS);
  const relay = given(world.relays.find(({ name, proc }) => (chosen ? name === chosen.node : proc.alive)));
  log.write({ event: 'fault', id, kind, target: relay.name, wall: Date.now() });
  const killed = relay.proc.kill();
  const wasCut = (await moment?.wasCut(relay.name)) ?? false;
  log.write({ event: 'aimed', id, role: chosen ? role : null, work: wasCut ? work : null, step: moment?.step ?? null });
  const heal = async (): Promise<void> => {
    await killed;
    await restart(relay);
    log.write({ event: 'heal', id });
  };
  return { healed: heal() };
}

function isAlive({ relays }: World, node: string): boolean {
  return relays.some(({ name, proc }) => name === node && proc.alive);
}

type Victim = { readonly node: string; readonly foreign: boolean };
type Wanted = {
  readonly role: Role;
  readonly moment: Moment | null;
  readonly watch: OwnerWatch;
  readonly links: ClientLinks;
};

/**
 * Returns the relays that have the role in a call in progress. `foreign`: whether the relay has no other role in the
 * call.
 */
function victimsOf(calls: Iterable<CallInProgress>, { role, moment, watch, links }: Wanted): readonly Victim[] {
  if (role === 'owner' && moment) return [{ node: moment.by, foreign: true }];
  return [...calls].flatMap(({ user, client, relay }) => {
    const nodes = { owner: watch.ownerOf(user), caller: relay, client: links.of(user, client) };
    const node = nodes[role];
    const others = ROLES.filter((other) => other !== role).map((other) => nodes[other]);
    return node === null ? [] : [{ node, foreign: !others.includes(node) }];
  });
}

/** Knows to which relay each client has its link. */
type ClientLinks = AsyncDisposable & { of(user: string, client: string): string | null };

/** Repeatedly reads to which relay each client has its link, until it is disposed. */
async function followLinks(world: World): Promise<ClientLinks> {
  let nodes = new Map<string, string>();
  const read = async (): Promise<void> => {
    const relay = world.relays.find(({ proc }) => proc.alive);
    if (relay) nodes = await linksAt(relay);
  };
  // Ignored, because a relay that was killed during the read does not answer.
  await read().catch(() => {});
  const timer = setInterval(() => void read().catch(() => {}), LINKS_MS);
  return {
    of: (user, client) => nodes.get(`${user}/${client}`) ?? null,
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
    },
  };
}

async function linksAt({ url }: Pick<Relay, 'url'>): Promise<Map<string, string>> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, connection: 'close' };
  const answer = await fetch(`${url}/connections?limit=1000`, { headers, signal: AbortSignal.timeout(LINKS_READ_MS) });
  const { items }: { items: readonly Record<string, unknown>[] } = await answer.json();
  const linked = items.filter((row) => row['disconnected_at'] === null);
  return new Map(
    linked.map((row) => [`${String(row['user_id'])}/${String(row['client_id'])}`, String(row['node_id'])]),
  );
}

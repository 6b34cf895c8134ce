/**
 * The requirements of PROTOCOL.md for a client's links, each as a claim with a check: opening, reconnecting, staying
 * away and leaving.
 */
import { CLOSE, type CloseReason } from '../../protocol/codes.ts';
import { SUBPROTOCOL, type UpFrame } from '../../protocol/frames.ts';
import { isRecord } from '../../protocol/json.ts';
import { expectMany, faultInActions, sameValue, type ConformanceClaim } from './claims-commands.ts';
import { isEnd, ClaimFailure, NoVerdict, shown, type PeerLink, type SentCommand, type Trial } from './trial.ts';

/**
 * How long the answer to the first hello is delayed, in milliseconds. During this time the client must not send frames.
 */
export const HOLD_MS = 300;
/**
 * The reconnect delay that `bye` requests, in milliseconds. It is longer than the longest delay that a client would
 * choose itself.
 */
const AFTER_MS = 2_500;
/** The silence after which a client may drop its link, in milliseconds, in the claim about silence. */
const DEAD_MS = 2_500;
/** The `wait_ms` of a command that runs on while its client has no link. */
const RUNS_ON_MS = 1_500;

/** The claims about the first link of the client's first run. */
export const OPENING_CLAIMS: readonly ConformanceClaim[] = [
  {
    name: 'subprotocol',
    section: 1,
    says: `the client offers the subprotocol \`${SUBPROTOCOL}\``,
    async check({ peer }) {
      const offered = peer.requests[0]?.headers['sec-websocket-protocol'] ?? 'none';
      if (!offered.split(/, */).includes(SUBPROTOCOL))
        throw new ClaimFailure(`the subprotocol \`${SUBPROTOCOL}\``, offered);
    },
  },
  {
    name: 'token',
    section: 1,
    says: 'the token is sent in `hello` only',
    async check({ peer, link, options: { token } }) {
      if (link.hello.token !== token) throw new ClaimFailure('the token that was printed', 'another one');
      const { url = '', rawHeaders = [] } = peer.requests[0] ?? {};
      if (decodeURIComponent(url).includes(token)) throw new ClaimFailure('no token in the URL', 'one');
      if (rawHeaders.some((text) => text.includes(token)))
        throw new ClaimFailure('no token in a header of HTTP', 'one');
    },
  },
  {
    name: 'hello',
    section: 3,
    says: '`hello` is the first frame, says which client, instance and type this is, and is alone until `welcome`',
    async check({ peer, link }) {
      const { client_id, instance_id, client_type } = link.hello;
      const missing = Object.entries({ client_id, instance_id, client_type }).find(([, value]) => value === undefined);
      if (missing) throw new ClaimFailure('`client_id`, `instance_id` and `client_type`', `no \`${missing[0]}\``);
      const early = [...peer.beforeHello, ...link.frames.slice(0, link.early).map(shown)];
      if (early.length > 0) throw new ClaimFailure('no frame but `hello` before `welcome`', early.join(', '));
    },
  },
  {
    name: 'actions',
    section: 3,
    says: 'the action is advertised, and each name once',
    async check(trial) {
      const { peer, options } = trial;
      const found = await peer.until(() => (faultInActions(trial) === null ? true : undefined), options.withinMs);
      if (!found)
        throw new ClaimFailure(`the action \`${options.action}\`, and each name once`, faultInActions(trial) ?? '');
    },
  },
];

/**
 * What the claim `reconnect` passes to later claims: two commands that ended, one that still runs, and the lost link.
 */
type LostLink = { readonly ended: readonly SentCommand[]; readonly running: SentCommand; readonly first: PeerLink };

/** Returns the command ids in the list `received` of a hello; an empty list if there is none. */
function receivedIn(payload: string | null): readonly unknown[] {
  const value: unknown = payload === null ? null : JSON.parse(payload);
  return isRecord(value) && Array.isArray(value['received']) ? value['received'] : [];
}

/** Returns the claims about a client that loses its link and reconnects. Each claim depends on those before it. */
export function returnClaims(): readonly ConformanceClaim[] {
  let lost: LostLink | null = null;
  const known = (): LostLink => {
    if (!lost) throw new NoVerdict('not_run', 'the client did not come back after a lost link');
    return lost;
  };
  return [
    {
      name: 'reconnect',
      section: 9,
      says: 'a link that is lost without a close code is opened again, soon',
      async check(trial) {
        const { link } = trial;
        const running = trial.command({ value: 'runs on', wait_ms: RUNS_ON_MS });
        link.acknowledges = () => false;
        const ended: SentCommand[] = [];
        for (const value of ['first', 'second']) {
          const sent = trial.command({ value });
          await trial.endOf(sent, 'a `result`');
          ended.push(sent);
        }
        trial.peer.admission = { welcome: { frames_per_message: undefined } };
        link.drop();
        const next = await back(trial, 'another link after a lost socket');
        next.acknowledges = () => false;
        lost = { ended, running, first: link };
      },
    },
    {
      name: 'same_instance',
      section: 6,
      says: 'a run of the client keeps its `client_id`, `instance_id` and `client_type` when it reconnects',
      async check(trial) {
        const identity = ({ hello: { client_id, instance_id, client_type } }: PeerLink): string =>
          [client_id, instance_id, client_type].join(' ');
        const before = identity(known().first);
        if (identity(trial.link) !== before) throw new ClaimFailure(`a hello of ${before}`, identity(trial.link));
      },
    },
    {
      name: 'received',
      section: 3,
      says: 'each `hello` has a greater `link_attempt`, and names in `received` what arrived and has no `result_ack`',
      async check(trial) {
        const { first, ended, running } = known();
        const { link } = trial;
        const attempts = [first, link].map(({ hello }) => hello.link_attempt ?? 0);
        const [before = 0, now = 0] = attempts;
        if (before < 1 || now <= before)
          throw new ClaimFailure('a `link_attempt` from 1 that grows', attempts.map((it) => it || 'none').join(', '));
        const received = receivedIn(link.hello.payload);
        const missing = [running, ...ended].map(({ id }) => id).find((id) => !received.includes(id));
        if (missing !== undefined)
          throw new ClaimFailure(`${missing} in \`received\``, received.join(', ') || 'no such member, or none in it');
      },
    },
    {
      name: 'kept_ends',
      section: 5,
      says: 'ends without `result_ack` are sent again after `welcome`, oldest first',
      async check(trial) {
        const { ended } = known();
        const { link } = trial;
        const again = (): string[] => link.frames.filter(isEnd).flatMap(({ command_id }) => command_id);
        const ids = ended.map(({ id }) => id);
        const all = (): true | undefined => (ids.every((id) => again().includes(id)) ? true : undefined);
        await trial.peer.until(all, trial.options.withinMs);
        const repeated = again().filter((id) => ids.includes(id));
        if (repeated.join() !== ids.join())
          throw new ClaimFailure(
            `the ends of ${ids.join(' and ')} again, in this order`,
            repeated.join(', ') || 'none of them',
          );
      },
    },
    {
      name: 'runs_on',
      section: 6,
      says: 'handlers run on while there is no link, and their ends are reported over the next one',
      async check(trial) {
        const sent: SentCommand = { ...known().running, link: trial.link, from: 0 };
        const end = await trial.endOf(sent, 'the `result` of the command that ran on', RUNS_ON_MS);
        if (!sameValue(end, 'runs on')) throw new ClaimFailure('the `result` of the command that ran on', shown(end));
      },
    },
    {
      name: 'one_frame_per_message',
      section: 2,
      says: 'without `frames_per_message` in `welcome`, a message holds one frame',
      async check(trial) {
        known();
        await expectMany(trial);
        const { joined } = trial.link;
        if (joined > 1) throw new ClaimFailure('one frame in a message', `a message with ${joined}`);
      },
    },
    {
      name: 'draining',
      section: 9,
      says: 'after `bye` with `reconnect`, whatever its code, the client comes back, and not before `after_ms`',
      async check(trial) {
        // The second end that the client sends again is refused with `store_unavailable`, so the client must keep it.
        // All others are acknowledged.
        const [first, second] = known().ended;
        const { link, options } = trial;
        const others = (id: string): boolean => id !== second?.id;
        link.acknowledges = others;
        if (second) refuse(link, second.id, 'store_unavailable');
        if (first) link.acknowledge(first.id);
        for (const id of new Set(link.frames.filter(isEnd).map(({ command_id }) => command_id)))
          if (others(id)) link.acknowledge(id);
        await trial.settled();
        trial.peer.admission = { welcome: { dead_ms: DEAD_MS } };
        const soonest = options.clock.now() + AFTER_MS;
        link.bye('protocol_error', AFTER_MS);
        const next = await back(trial, `another link ${AFTER_MS} ms after \`bye\``, AFTER_MS);
        next.acknowledges = others;
        // The clocks for timers and for the time of day may differ by some milliseconds.
        const early = soonest - options.clock.now();
        if (early > 20)
          throw new ClaimFailure(`a wait of at least \`after_ms\` (${AFTER_MS})`, `a link ${early} ms earlier`);
      },
    },
    {
      name: 'acknowledged_ends',
      section: 5,
      says: 'an end that has its `result_ack` is not sent again',
      async check(trial) {
        const [first] = known().ended;
        await echoes(trial);
        const again = trial.link.frames.filter(isEnd).find(({ command_id }) => command_id === first?.id);
        if (again) throw new ClaimFailure(`no end of ${first?.id ?? ''}, which is acknowledged`, shown(again));
      },
    },
    {
      name: 'refused_ends',
      section: 5,
      says: 'an end is kept after `refused` with `store_unavailable`, and forgotten after `invalid_argument`',
      async check(trial) {
        const [, second] = known().ended;
        const { link, peer, options } = trial;
        const id = second?.id ?? '';
        const ofSecond = (): UpFrame | undefined =>
          link.frames.filter(isEnd).find(({ command_id }) => command_id === id);
        if (!(await peer.until(ofSecond, options.withinMs)))
          throw new ClaimFailure(`the end of ${id} again, which was refused with \`store_unavailable\``, 'none');
        refuse(link, id, 'invalid_argument');
        await trial.settled();
      },
    },
    {
      name: 'silence',
      section: 4,
      says: 'a link over which nothing comes for `dead_ms` is dropped and opened again',
      async check(trial) {
        const [, second] = known().ended;
        trial.link.silent = true;
        trial.peer.admission = {};
        const next = await back(trial, `another link after ${DEAD_MS} ms without a frame`, DEAD_MS);
        await echoes(trial);
        const again = next.frames.filter(isEnd).find(({ command_id }) => command_id === second?.id);
        if (again) throw new ClaimFailure('no end again that was refused with `invalid_argument`', shown(again));
      },
    },
  ];
}

/** The claims about a client that must not reconnect, or that leaves. Each begins with a new run of the client. */
export const ENDING_CLAIMS: readonly ConformanceClaim[] = [
  {
    name: 'replaced',
    section: 6,
    says: 'a client that was replaced stays away (`bye` 4409)',
    async check(trial) {
      // If nothing can start the client again, its only run ends with this claim.
      if (trial.options.start) await freshLink(trial);
      const { link } = trial;
      link.send({ type: 'replaced', instance_id: 'conformance-another' });
      link.bye('replaced');
      await expectAbsence(trial, 'replaced');
    },
  },
  {
    name: 'new_instance',
    section: 3,
    says: 'each start of the program has a new `instance_id`',
    async check(trial) {
      if (!trial.options.start) trial.start();
      if (trial.instances.length < 2) await freshLink(trial);
      const runs = trial.instances.map(([first]) => first);
      if (new Set(runs).size < runs.length) throw new ClaimFailure('a new `instance_id`', `${runs.at(-1) ?? ''} again`);
    },
  },
  ...(['unauthenticated', 'forbidden', 'protocol_error'] as const).map((reason): ConformanceClaim => ({
    name: reason,
    section: 9,
    says:
      reason === 'unauthenticated'
        ? 'a refused token is not shown again (`bye` 4401)'
        : `a client whose hello is refused with ${CLOSE[reason]}, and \`reconnect\` false, stays away`,
    async check(trial) {
      await trial.restart({ refuse: reason });
      if (!(await trial.nextLink(trial.options.withinMs))) throw new ClaimFailure('a `hello`', 'none');
      await expectAbsence(trial, reason);
    },
  })),
  {
    name: 'closing',
    section: 9,
    says: 'a client that leaves sends `closing`, ends what it received before `closed`, and closes with 1000',
    optional: true,
    check: leaves,
  },
];

/** The claim about the format of all frames in all runs. */
export const FRAMES_CLAIM: ConformanceClaim = {
  name: 'frames',
  section: 2,
  says: 'each frame is valid',
  async check({ peer }) {
    const [first] = peer.faults;
    if (first !== undefined)
      throw new ClaimFailure('valid frames only (frames.schema.json)', [...new Set(peer.faults)].join('; '));
  },
};

/**
 * Resolves with the client's next link after it has lost the present one. Throws ClaimFailure if there is none in time.
 */
async function back(trial: Trial, expected: string, extraMs = 0): Promise<PeerLink> {
  const withinMs = trial.returnsWithinMs() + extraMs;
  const next = await trial.nextLink(withinMs);
  trial.losses += 1;
  if (!next) throw new ClaimFailure(expected, `none within ${withinMs} ms`);
  return next;
}

/** Resolves after two echo commands over the present link. By then, a client has sent the ends that it kept. */
async function echoes(trial: Trial): Promise<void> {
  await trial.settled();
  await trial.settled();
}

function refuse(link: PeerLink, command_id: string, code: 'store_unavailable' | 'invalid_argument'): void {
  link.send({ type: 'refused', code, message: 'A refusal of the test.', frame: 'result', command_id });
}

/**
 * Starts the client again. Resolves when the client has sent its hello. Throws ClaimFailure if it does not do so in
 * time.
 */
async function freshLink(trial: Trial): Promise<PeerLink> {
  await trial.restart();
  const link = await trial.nextLink(trial.options.withinMs);
  if (!link) throw new ClaimFailure('a `hello` after the start of the program', 'none');
  return link;
}

async function expectAbsence(trial: Trial, reason: CloseReason): Promise<void> {
  const code = CLOSE[reason];
  if (!(await trial.staysAway()))
    throw new ClaimFailure(`no further connection after ${code} (\`${reason}\`)`, 'another one');
}

async function leaves(trial: Trial): Promise<void> {
  const { withinMs } = trial.options;
  const link = await freshLink(trial);
  const running = trial.command({ value: 1, wait_ms: HOLD_MS });
  await trial.peer.until(() => trial.framesOf(running)[0], HOLD_MS / 2);
  trial.program?.leave();
  const isClosing = ({ type }: UpFrame): boolean => type === 'closing';
  const gone = (): true | undefined => (link.closeCode === null ? undefined : true);
  await trial.peer.until(() => link.frames.find(isClosing) ?? gone(), withinMs);
  const at = link.frames.findIndex(isClosing);
  if (at < 0) throw new NoVerdict('unused', 'no `closing` came after SIGTERM');
  const last = gone() ? running : trial.command({ value: 2 });
  link.send({ type: 'closed' }, JSON.stringify({ commands: [running.id, last.id] }));
  for (const sent of [running, last])
    await trial.endOf(sent, 'the end of each command that came before `closed`', HOLD_MS);
  await trial.peer.until(gone, withinMs);
  const later = link.frames
    .slice(at)
    .find(({ type }) => type === 'actions' || type === 'report' || type === 'site' || type === 'pause');
  if (later) throw new ClaimFailure('no `actions`, `report`, `site` or `pause` after `closing`', shown(later));
  if (link.closeCode !== 1000)
    throw new ClaimFailure('a socket that is closed with 1000', String(link.closeCode ?? 'none'));
}

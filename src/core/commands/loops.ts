/**
 * Runs a node: its heartbeat, its mailbox, the reconciliation of commands, the handling of a lost epoch and of a
 * recovered lease, the drain, and the log of outages of the store. Also lets a node ask other nodes questions through
 * their mailboxes, lists the nodes to ask, and asks which commands still run on leaving links.
 */
import type { Connection } from '../connections/connection.ts';
import type { Deps, ServerInfo } from '../deps.ts';
import { isStoreUnavailable } from '../errors.ts';
import type { CommandKey } from '../ids.ts';
import {
  PAGE_MAX,
  DRAIN_CLOSE_DELAY_MS,
  DRAIN_SPREAD_LINK_MS,
  DRAIN_SPREAD_MS,
  LOOP_ALIVE_MS,
  NODE_BEAT_MS,
  RECONCILE_BATCH,
  RECONCILE_MS,
} from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { CounterName } from '../metrics.ts';
import type { Position, Scan } from '../page.ts';
import type { Cancel } from '../ports.ts';
import type { DeliveryActs } from './acts.ts';
import type { Command, Outcome, Reply } from './command.ts';
import type { Dispatcher } from './dispatcher.ts';
import { closeReplaced, isBusy, type LinkQueue } from './links.ts';
import { ANY_WAIT, type MailboxRow, type NodeListener, type NodeReport, type PendingWait } from './stores.ts';

// Lets a node ask other nodes questions through their mailboxes.

type QuestionRow = Extract<MailboxRow, { kind: 'question' | 'answer' }>;
/** What a question is about: each topic has one function that answers. */
type Topic = Extract<QuestionRow, { kind: 'question' }>['topic'];

/** A question for a node. `withinMs`: how long it may take to answer. */
type Question = { readonly topic: Topic; readonly text: string; readonly withinMs: number };
type NodeAnswer = { readonly kind: 'answer'; readonly text: string } | { readonly kind: 'gone' | 'silent' };

export class NodeQuestions {
  readonly #deps: Pick<Deps, 'nodeId' | 'backend' | 'clock' | 'crypto' | 'log'>;
  readonly #answerers = new Map<Topic, (question: string) => MaybePromise<string>>();
  readonly #open = new Map<string, (answer: string) => void>();

  constructor(deps: Pick<Deps, 'nodeId' | 'backend' | 'clock' | 'crypto' | 'log'>) {
    this.#deps = deps;
  }

  /**
   * Sets the function with which this node answers questions about a topic. What `answer` throws is logged, and the
   * question stays unanswered.
   */
  answerWith(topic: Topic, answer: (question: string) => MaybePromise<string>): void {
    this.#answerers.set(topic, answer);
  }

  /**
   * Asks a node once. Null: there is no such live node, it has not answered within this time, or the store is
   * unavailable.
   */
  async ask(nodeId: string, question: Question): Promise<string | null> {
    try {
      const answer = await this.askOrGone(nodeId, question);
      return answer.kind === 'answer' ? answer.text : null;
    } catch (error) {
      if (!isStoreUnavailable(error)) throw error;
      return null;
    }
  }

  /**
   * Asks a node once. `gone`: there is no such live node. `silent`: it has not answered within this time. Throws
   * `store_unavailable`.
   */
  async askOrGone(nodeId: string, { topic, text, withinMs }: Question): Promise<NodeAnswer> {
    const { backend, clock, crypto, nodeId: from } = this.#deps;
    const questionId = crypto.randomId();
    const { promise, resolve } = Promise.withResolvers<NodeAnswer>();
    this.#open.set(questionId, (answer) => resolve({ kind: 'answer', text: answer }));
    const cancel = clock.after(withinMs, () => resolve({ kind: 'silent' }));
    try {
      const posted = await backend.nodes.post(nodeId, { kind: 'question', questionId, from, topic, text });
      return posted ? await promise : { kind: 'gone' };
    } finally {
      cancel();
      this.#open.delete(questionId);
    }
  }

  /** Takes a row of this node's mailbox. */
  receive(row: QuestionRow): void {
    if (row.kind === 'answer') this.#open.get(row.questionId)?.(row.text);
    else void this.#answer(row);
  }

  async #answer({ questionId, from, topic, text }: Extract<QuestionRow, { kind: 'question' }>): Promise<void> {
    const { backend, log } = this.#deps;
    try {
      const answer = await this.#answerers.get(topic)?.(text);
      if (answer !== undefined) await backend.nodes.post(from, { kind: 'answer', questionId, text: answer });
    } catch (error) {
      log.warn({ err: error, topic, from }, 'a question of another node was not answered');
    }
  }
}

// Reads which other nodes there are, for answers that are merged from what each node knows.

/**
 * `others`: the ids of all other nodes in order, including silent ones. `silent`: the ids of the silent nodes. Answers
 * list them as gaps, and they are not asked.
 */
type OtherNodes = { readonly others: readonly string[]; readonly silent: ReadonlySet<string> };

export async function otherNodes({ backend, nodeId }: Pick<Deps, 'backend' | 'nodeId'>): Promise<OtherNodes> {
  const [silent, { rows }] = await Promise.all([
    backend.nodes.silent(),
    backend.nodes.list({ first: PAGE_MAX, after: null }),
  ]);
  const others = new Set([...rows.map(({ row }) => row.nodeId), ...silent]);
  others.delete(nodeId);
  return { others: [...others].sort(), silent: new Set(silent) };
}

// Finds out which commands still run on a link whose client is leaving, on this node or on another one.

/** How long another node may take to say whether commands still run on its leaving links. */
const ASK_MS = 1_000;

/** Commands of one client that another node is asked about. */
type LeavingQuestion = { readonly userId: string; readonly clientId: string; readonly commandIds: readonly string[] };

/** Makes this node answer the questions of `leavingElsewhere` from now on. */
export function answerLeaving({
  questions,
  dispatcher,
}: {
  readonly questions: NodeQuestions;
  readonly dispatcher: Pick<Dispatcher, 'isLeaving'>;
}): void {
  questions.answerWith('leaving', (text) => {
    const { userId, clientId, commandIds } = JSON.parse(text) as LeavingQuestion;
    const client = { userId, clientId };
    return JSON.stringify(commandIds.filter((commandId) => dispatcher.isLeaving({ ...client, commandId })));
  });
}

/**
 * Returns those of a client's commands that still run on a leaving link of another node. Each command is looked up on
 * the node that dispatched it. A node that does not answer within ASK_MS, or whose answer cannot be read, counts as one
 * that runs none. Never rejects.
 */
export async function leavingElsewhere(
  { deps, questions }: { readonly deps: Deps; readonly questions: NodeQuestions },
  commands: readonly Command[],
): Promise<readonly Command[]> {
  const nodes = Map.groupBy(commands, ({ nodeId }) => nodeId);
  const asked = [...nodes].map(async ([nodeId, some]) => {
    if (nodeId === null || nodeId === deps.nodeId) return [];
    try {
      const running = new Set(await askNode(questions, nodeId, some));
      return some.filter(({ commandId }) => running.has(commandId));
    } catch (error) {
      deps.log.warn({ err: error, node: nodeId }, 'could not ask a node for the commands of a leaving client');
      return [];
    }
  });
  return (await Promise.all(asked)).flat();
}

/** Asks the node which of these commands of one client still run on its leaving links. Returns their ids. */
async function askNode(questions: NodeQuestions, nodeId: string, commands: readonly Command[]): Promise<unknown[]> {
  const [first] = commands;
  if (!first) return [];
  const { userId, clientId } = first;
  const question: LeavingQuestion = { userId, clientId, commandIds: commands.map(({ commandId }) => commandId) };
  const text = JSON.stringify(question);
  const answer = await questions.ask(nodeId, { topic: 'leaving', text, withinMs: ASK_MS });
  const running: unknown = answer === null ? [] : JSON.parse(answer);
  if (!Array.isArray(running)) throw new TypeError('The answer is not a list.');
  return running;
}

// Runs the node.

export type LoopParts = ReportParts & {
  readonly acts: DeliveryActs;
  readonly onReply: (reply: Reply) => void;
  readonly questions: Pick<NodeQuestions, 'receive'>;
  readonly onDrain: (withinMs: number) => void;
  readonly onLost: NodeListener['lost'];
  /** Registers the waits again that concern these users. */
  readonly onMoved: (concerns: (userId: string) => boolean) => void;
};

/** Starts this node's mailbox listener, heartbeat and reconciliation. The returned function stops all three. */
export async function startLoops(parts: LoopParts): Promise<Cancel> {
  const { deps } = parts;
  const { clock, nodeId } = deps;
  const { nodes } = deps.backend;
  const times: LoopTimes = { heardAt: clock.now(), reconciledAt: clock.now() };
  const outage = createOutage(deps);
  const quietly = (what: string, run: () => Promise<void>) => (): void => void outage.run(what, run);
  const requeue = createRequeue(parts);
  const requeueNow = quietly('requeue', () => requeue.run());
  const beat = quietly('beat', async () => {
    await nodes.beat(nodeId, reportOf(parts, times));
    await nodes.post(nodeId, { kind: 'pulse' });
    if (requeue.isBehind) requeueNow();
  });
  const pass = (): Promise<void> =>
    outage.run('reconciliation', async () => {
      await reconcile(parts);
      times.reconciledAt = clock.now();
    });
  const detach = await nodes.attach(nodeId, {
    deliver(row) {
      if (row.kind === 'pulse') times.heardAt = clock.now();
      else take(parts, row);
      // The operator who requested the drain polls this node's report, so it is sent now.
      if (row.kind === 'drain') beat();
    },
    lost: parts.onLost,
    linksLost: (connections) => publishDisconnects(deps, connections),
    revived() {
      requeue.add();
      requeueNow();
    },
    moved(concerns) {
      requeue.add(concerns);
      requeueNow();
      parts.onMoved(concerns);
    },
  });
  beat();
  // Before the relay serves anything: after a restart, commands may be live whose deadlines passed while it was away.
  await pass();
  const cancels = [detach, clock.every(NODE_BEAT_MS, beat), clock.every(RECONCILE_MS, () => void pass())];
  return () => cancels.forEach((cancel) => cancel());
}

/**
 * Ends due commands, one batch at a time. Stops after a batch that is not full, or of which no command could be ended.
 * The next pass tries again.
 */
async function reconcile({ deps, acts }: Pick<LoopParts, 'deps' | 'acts'>): Promise<void> {
  for (;;) {
    const due = await deps.backend.nodes.due(RECONCILE_BATCH);
    let settled = 0;
    for (const key of due) if ((await acts.settle(key, { kind: 'expire' })).kind === 'settled') settled++;
    if (due.length < RECONCILE_BATCH || settled === 0) return;
  }
}

/** Publishes the disconnects of links that no node closed. */
function publishDisconnects({ backend, clock }: Deps, connections: readonly Connection[]): void {
  const change = 'disconnected';
  for (const connection of connections)
    backend.bus.publish('connections', { change, connection, cause: connection.disconnectCause, at: clock.now() });
}

function take(
  { dispatcher, questions, onReply, onDrain }: LoopParts,
  row: Exclude<MailboxRow, { kind: 'pulse' }>,
): void {
  switch (row.kind) {
    case 'command':
      return dispatcher.enqueue(row.key);
    case 'ended':
      return dispatcher.free(row.key);
    case 'cancel':
      return dispatcher.cancel(row.key, row.reason);
    case 'reply':
      return onReply(row.reply);
    case 'drain':
      return onDrain(row.withinMs);
    case 'question':
    case 'answer':
      return questions.receive(row);
    case 'kick': {
      const linkQueue = dispatcher.find(row.client);
      if (linkQueue?.binding.epoch !== row.epoch) return;
      if (row.cause === 'replaced') closeReplaced(linkQueue, row.instanceId);
      else linkQueue.link.close(row.cause, row.instanceId);
    }
  }
}

// Builds the report that a node sends with each heartbeat.

type ReportParts = {
  readonly deps: Deps;
  readonly dispatcher: Dispatcher;
  /** How many callers wait on this node. */
  readonly waiters: () => number;
  readonly isDraining: () => boolean;
  readonly server: Pick<ServerInfo, 'version' | 'startedAt'>;
};

/** When each loop last did its work, in epoch milliseconds. */
type LoopTimes = { heardAt: number; reconciledAt: number };

const OUTCOMES: Readonly<Record<Outcome, true>> = {
  completed: true,
  failed: true,
  cancelled: true,
  expired: true,
  outcome_unknown: true,
};
const COUNTED: readonly CounterName[] = [
  'commands_admitted',
  'commands_dispatched',
  'commands_acknowledged',
  'commands_recovered',
  'late_results',
  'fenced_results',
  'replies_dropped',
];
/**
 * The delivery counters with the value 0. They are shown from the start, so an event that never happened counts 0
 * instead of being absent.
 */
const ZEROS: ReadonlyMap<string, number> = new Map(
  [...COUNTED, ...Object.keys(OUTCOMES).map((outcome) => `commands_ended:${outcome}`)].map((name) => [name, 0]),
);

/** Returns this node's current report. */
function reportOf({ deps, dispatcher, waiters, isDraining, server }: ReportParts, times: LoopTimes): NodeReport {
  const now = deps.clock.now();
  const { inFlight, queued } = dispatcher.load;
  const { version, startedAt } = server;
  return {
    listenerAlive: now - times.heardAt < LOOP_ALIVE_MS,
    reconciliationAlive: now - times.reconciledAt < LOOP_ALIVE_MS,
    activeDrainers: dispatcher.draining,
    connectionWaiters: waiters(),
    links: dispatcher.links,
    unfinishedCommands: inFlight + queued,
    draining: isDraining(),
    counters: new Map([...ZEROS, ...deps.metrics.snapshot()]),
    process: { version, startedAt, ...deps.processMeter.take() },
    policy: deps.policy.report?.(),
  };
}

// Handles the loss of this node's epoch: closes its links and registers its waits again.

type NodeLossParts = {
  readonly deps: Deps;
  readonly dispatcher: Dispatcher;
  readonly acts: DeliveryActs;
  /** Registers the waits of this node's callers for the commands of these users again. */
  readonly reattach: (concerns: (userId: string) => boolean) => Promise<void>;
  /** The users whose links and commands are concerned. */
  readonly concerns?: ((userId: string) => boolean) | undefined;
};

/**
 * Handles the loss of this node's epoch. `fenced`: other nodes took over what it held. `store_lost`: the store forgot
 * something that it had confirmed. Then nothing is proven about the commands of the clients on this node's links,
 * whatever their records say, and each of them is given up. In both cases the links close, so that their clients
 * connect again under a new binding, and callers wait again. Never rejects.
 */
export async function handleNodeLoss(parts: NodeLossParts, cause: 'fenced' | 'store_lost'): Promise<void> {
  const { deps, dispatcher, concerns = () => true } = parts;
  deps.metrics.count('node_losses', cause);
  const linkQueues = [...dispatcher.linkQueues()].filter(({ client }) => concerns(client.userId));
  // Nothing more is written to these links, whatever the store still answers.
  for (const linkQueue of linkQueues) linkQueue.open = false;
  if (cause === 'store_lost') await Promise.all(linkQueues.map((linkQueue) => giveUp(parts, linkQueue)));
  for (const { link } of linkQueues) link.close('node_lost', null);
  await parts.reattach(concerns);
}

async function giveUp(parts: NodeLossParts, linkQueue: LinkQueue): Promise<void> {
  const { deps, acts } = parts;
  const keys = await doubtful(parts, linkQueue);
  await Promise.all(
    [...keys.values()].map((key) =>
      acts.settle(key, { kind: 'give_up', code: 'store_lost', instanceId: null }).catch((error: unknown) => {
        deps.log.warn({ err: error }, 'could not settle a command of a lost link; it ends at its deadline');
      }),
    ),
  );
}

/**
 * Returns the commands of the link's client that have not ended according to this node or according to the store. The
 * two may differ, because the store may have forgotten an end that it confirmed to this node.
 */
async function doubtful(
  { deps, dispatcher }: NodeLossParts,
  linkQueue: LinkQueue,
): Promise<ReadonlyMap<string, CommandKey>> {
  const { client, queue, window } = linkQueue;
  const keys = new Map<string, CommandKey>([...queue, ...window]);
  // Other commands of a leaving link's client are on its next link, perhaps on another node.
  if (dispatcher.find(client) !== linkQueue) return keys;
  try {
    for (const key of await deps.backend.commands.live(client)) keys.set(key.commandId, key);
  } catch (error) {
    deps.log.warn({ err: error }, 'could not read the unended commands of a lost link');
  }
  return keys;
}

// Queues the commands of this node's links again after the node's lease was lost and recovered.

/** How many links are processed at once. */
const AT_ONCE = 64;

interface Requeue {
  /** Whether commands of links are still to be queued again. */
  readonly isBehind: boolean;
  /** Notes the open links of these users, or all: the commands that wait for their clients are to be queued again. */
  add(concerns?: (userId: string) => boolean): void;
  /**
   * Queues these commands again. Commands that are already queued stay so: repeating the act changes nothing. Rejects if
   * the store refused it for a link; the next call tries that link again. Until then nothing is posted to this node for
   * the link's client, so each beat calls it. Does nothing while an earlier call runs.
   */
  run(): Promise<void>;
}

function createRequeue({ deps, dispatcher }: Pick<LoopParts, 'deps' | 'dispatcher'>): Requeue {
  const behind = new Set<LinkQueue>();
  let running = false;
  const isUp = (linkQueue: LinkQueue): boolean => dispatcher.has(linkQueue) && linkQueue.open && !linkQueue.quiet;
  const requeue = async (linkQueue: LinkQueue): Promise<void> => {
    const { client, binding } = linkQueue;
    behind.delete(linkQueue);
    if (!isUp(linkQueue)) return;
    try {
      await deps.backend.commands.rebind(client, binding, 'again');
    } catch (error) {
      behind.add(linkQueue);
      throw error;
    }
  };
  return {
    get isBehind() {
      return behind.size > 0;
    },
    add(concerns = () => true) {
      for (const linkQueue of dispatcher.linkQueues())
        if (isUp(linkQueue) && concerns(linkQueue.client.userId)) behind.add(linkQueue);
    },
    async run() {
      if (running) return;
      running = true;
      try {
        const linkQueues = [...behind];
        for (let at = 0; at < linkQueues.length; at += AT_ONCE) {
          const done = await Promise.allSettled(linkQueues.slice(at, at + AT_ONCE).map(requeue));
          const failed = done.find((one) => one.status === 'rejected');
          if (failed) throw failed.reason;
        }
      } finally {
        running = false;
      }
    },
  };
}

// Drains a node: lets live commands end, then closes the links.

/**
 * Closes this node's links one after another, each once it has nothing left to do. Links that are still busy after
 * `withinMs` are closed then. In shared mode other nodes still admit commands for these clients. Once the closing of a
 * link has begun, nothing more is dispatched on it, and its queued commands move on with the client. Resolves when all
 * links are closed.
 */
export async function drainLinks(parts: { deps: Deps; dispatcher: Dispatcher; withinMs: number }): Promise<void> {
  const { deps, dispatcher, withinMs } = parts;
  const linkQueues = [...dispatcher.linkQueues()];
  const cancels: Cancel[] = [];
  const after = (ms: number): Promise<void> => new Promise((done) => void cancels.push(deps.clock.after(ms, done)));
  const stepMs = Math.min(DRAIN_SPREAD_LINK_MS, Math.min(withinMs, DRAIN_SPREAD_MS) / linkQueues.length);
  const closeInTurn = async (linkQueue: LinkQueue, turn: number): Promise<void> => {
    if (turn > 0) await after(turn * stepMs);
    const up = (): boolean => dispatcher.has(linkQueue);
    linkQueue.quiet ||= deps.backend.capabilities.shared;
    while (up() && isBusy(linkQueue)) {
      await dispatcher.idle(linkQueue);
      // The acknowledgement of the client's last report must still be sent.
      await after(DRAIN_CLOSE_DELAY_MS);
    }
    if (up()) linkQueue.link.close('node_drained', null);
  };
  if (withinMs > 0) await Promise.race([Promise.all(linkQueues.map(closeInTurn)), after(withinMs)]);
  for (const cancel of cancels) cancel();
  for (const { link } of [...dispatcher.linkQueues()]) link.close('node_drained', null);
}

/**
 * Ends the commands that callers still wait for when this node shuts down in direct mode, where no command outlives the
 * node. Each command ends with what is proven, and its callers receive that end.
 */
export async function endWaits(parts: { deps: Deps; acts: DeliveryActs; waiting: number }): Promise<void> {
  const { deps, acts, waiting } = parts;
  if (waiting === 0) return;
  const filter = { ...ANY_WAIT, callerNodeId: deps.nodeId };
  let after: Position | null = null;
  do {
    const scan: Scan<PendingWait> = await deps.backend.waiters.list(filter, { first: PAGE_MAX, after });
    for (const { row } of scan.rows)
      await acts.settle(row.waiter, { kind: 'give_up', code: 'node_lost', instanceId: null });
    after = scan.next;
  } while (after !== null);
  // Replies are delivered through the mailbox in a microtask.
  await Promise.resolve();
}

/** Wraps a repeated task: logs once that the store is unavailable and once that it is back. */
interface Outage {
  /** Runs the task. Errors are logged, except further ones while the store is unavailable. Never rejects. */
  run(what: string, turn: () => Promise<void>): Promise<void>;
}

function createOutage({ clock, log }: Pick<Deps, 'clock' | 'log'>): Outage {
  let since: number | null = null;
  let backAt = -Infinity;
  return {
    async run(what, turn) {
      const began = clock.now();
      try {
        await turn();
        // A run that began before the outage does not prove that the outage ended. Likewise, a failed run that began
        // during an outage does not prove a new one.
        if (since === null || began < since) return;
        log.info({ awayMs: clock.now() - since }, 'the store is back');
        since = null;
        backAt = clock.now();
      } catch (error) {
        if (!isStoreUnavailable(error)) return log.error({ err: error }, `${what} failed`);
        if (began < backAt) return;
        if (since === null) log.error({ err: error }, 'the store is unavailable');
        since ??= clock.now();
      }
    },
  };
}

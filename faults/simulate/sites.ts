/**
 * A workload of cooperative sites: owners open sessions, share and end them, and the holders of grants and tickets
 * receive the events of a site and invoke its actions, which its host runs.
 */
import { between, pick } from '../lib/random.ts';
import { ADMIN_TOKEN, openEntry, userToken } from './entry.ts';
import { HttpNetwork, type Exchange, type HttpDoor } from './http-network.ts';
import { ask, createEventReader, get, memberAt, refusalOf, sending, type HttpAnswer } from './http-requests.ts';
import { LinkNetwork, type Door } from './link-network.ts';
import { CLIENT } from './programs.ts';
import { faultLog, type OpenRelay, type Relay, type Relays } from './relays.ts';
import { invokeFaults, isLasting, isOver, type Given, type SiteInvoke } from './session-ledger.ts';
import { OTHER_ACTION, SITE, SITE_ACTIONS, SITE_EVENTS, SiteHost } from './site-host.ts';
import { Viewer } from './site-viewer.ts';
import { HEAL_MS, type Workload } from './world.ts';

const USERS = ['user-0', 'user-1', 'user-2'] as const;
/** The most grants of a user that are in use, and viewers of each. */
const GRANTS = 6;
/** How long a session or grant lasts, in seconds. */
const TTL = { least: 5, most: 120 } as const;
/** How long an invocation may take, in milliseconds. */
const RESPOND_MS = 4_000;
const CONNECT_MS = 3_000;
const ASK_MS = RESPOND_MS + CONNECT_MS + 2_000;
/** Within what time a stream has ended after its session or grant, if nothing is wrong, in milliseconds. */
const ENDS_MS = 3_000;
/** The longest trouble of a request, in milliseconds. */
const TROUBLE_MS = 9_000;
/** Within what time programs have noticed what is over, in milliseconds. */
const NOTICED_MS = 40_000;

/** An event that a host sent. */
type Sent = { readonly userId: string; readonly name: string; readonly sentAt: number };
/** What somebody who holds a grant receives. */
type Seen = { readonly given: Given; readonly id: string; readonly at: number };

export class Sites implements Workload {
  readonly #relays: Relays;
  readonly #links: LinkNetwork;
  readonly #network: HttpNetwork;
  readonly #doors = new Set<Door & HttpDoor>();
  readonly #hosts: readonly SiteHost[];
  readonly #given: Given[] = [];
  /** The sessions by their ids: each as the grant of its owner, which ends with the session. */
  readonly #sessions = new Map<string, Pick<Given, 'askedAt' | 'ttlMs'> & { endedAt: number; endingFrom: number }>();
  readonly #invokes: SiteInvoke[] = [];
  readonly #sent = new Map<string, Sent>();
  readonly #viewers: { readonly viewer: Viewer; readonly given: Given }[] = [];
  /** What was received with tickets. */
  readonly #seen: Seen[] = [];
  #events = 0;
  #unanswered = 0;
  #isOver = false;
  readonly broken: string[] = [];

  constructor(relays: Relays) {
    this.#relays = relays;
    const { simulation } = relays;
    const living = (): readonly (Door & HttpDoor)[] => [...this.#doors].filter(({ process }) => !process.isDead);
    this.#links = new LinkNetwork(simulation, living);
    this.#network = new HttpNetwork(simulation, living);
    const parts = {
      ...{ simulation, network: this.#links },
      report: (fault: string) => relays.mayBeLost(0, simulation.now) || this.#report(fault),
      ...{ count: relays.count, expiring: () => 0 },
    };
    this.#hosts = USERS.map((userId) => new SiteHost(userId, parts));
  }

  get acknowledged(): number {
    return this.#invokes.filter(({ answer }) => answer !== null).length;
  }

  get open(): number {
    return this.#unanswered;
  }

  async onOpened(relay: OpenRelay): Promise<void> {
    relay.process.onDeath = () => {
      this.#links.relayDied(relay.process);
      this.#network.relayDied(relay.process);
    };
    this.#doors.add(
      await openEntry(
        relay,
        faultLog(this.#relays, relay.process, (fault) => this.#report(fault)),
      ),
    );
  }

  onGone(_relay: Relay): void {
    // Requests and links to it break when its process dies.
  }

  act(): void {
    for (const host of this.#hosts) host.start();
    const kind = this.#random();
    const given = this.#pickGiven();
    if (kind < 0.1 || !given) void this.#open(pick(this.#random, USERS));
    else if (kind < 0.2) void this.#share(given);
    else if (kind < 0.5) void this.#invoke(given);
    else if (kind < 0.7) void this.#publish(pick(this.#random, USERS));
    else if (kind < 0.8) this.#view(given);
    else if (kind < 0.86) void this.#takeTicket(given);
    else if (kind < 0.91) void this.#end(given);
    else if (kind < 0.96) void this.#look(given);
    if (this.#random() < 0.05) this.#trouble();
  }

  finish(): void {
    this.#isOver = true;
    this.#links.heal();
    this.#network.heal();
    for (const host of this.#hosts) host.start();
  }

  isDone(): boolean {
    return this.#hosts.every(({ isIdle }) => isIdle);
  }

  async judge(): Promise<readonly string[]> {
    const { simulation } = this.#relays;
    await simulation.run(NOTICED_MS);
    await simulation.run(HEAL_MS, () => this.#hosts.every(({ isConnected }) => isConnected));
    let isDone = false;
    void this.#useAll().then(() => (isDone = true));
    const broken: string[] = [];
    if (!(await simulation.run(HEAL_MS, () => isDone))) broken.push('the grants could not be used in time');
    for (const one of this.#invokes) {
      const ran = this.#hosts.flatMap((host) => host.ran).filter(({ commandId }) => commandId === one.commandId);
      if (!this.#mayBeLost(one.given)) broken.push(...invokeFaults(one, ran));
    }
    const names = new Set(this.#hosts.flatMap((host) => host.ran).map(({ commandId }) => commandId));
    for (const { commandId } of this.#invokes) names.delete(commandId);
    if (names.size > 0) broken.push(`the host ran what nobody invoked: ${[...names].join()}`);
    for (const { viewer, given } of this.#viewers)
      for (const { id, at } of viewer.segments.flatMap(({ got }) => got)) this.#judgeSeen({ given, id, at }, broken);
    for (const seen of this.#seen) this.#judgeSeen(seen, broken);
    return broken;
  }

  get #random(): () => number {
    return this.#relays.simulation.random;
  }

  #report(fault: string): void {
    this.#relays.trace(fault);
    this.broken.push(fault);
  }

  /** Whether a grant, or its end, may be lost. A session whose end is lost may get further grants. */
  #mayBeLost({ askedAt, endingFrom }: Given): boolean {
    return this.#relays.mayBeLost(Math.min(askedAt, endingFrom), this.#relays.simulation.now);
  }

  #token(userId: string): string {
    return userToken(this.#relays.simulation, userId, ['invoke', 'host'], between(this.#random, 20_000, 90_000));
  }

  /** One of the newest grants: some of them are over. */
  #pickGiven(): Given | undefined {
    const newest = this.#given.slice(-GRANTS * USERS.length);
    return newest.length === 0 ? undefined : pick(this.#random, newest);
  }

  async #ask(what: string, target: Parameters<typeof ask>[1], relay?: string): Promise<HttpAnswer | null> {
    this.#unanswered++;
    const answer = await ask(this.#network, target, { relay, withinMs: ASK_MS });
    this.#unanswered--;
    this.#relays.count(`${what}: ${answer ? (refusalOf(answer) ?? answer.status) : 'unreachable'}`);
    return answer;
  }

  // Owners.

  /** What a new grant allows: a part of what its giver may give. */
  #part(events: readonly string[] | null, actions: readonly string[]) {
    const some = <T>(list: readonly T[]): readonly T[] => list.filter(() => this.#random() < 0.7);
    const named = some(events ?? SITE_EVENTS);
    return {
      events:
        this.#random() < 0.4
          ? events
          : named.length > 0
            ? named
            : [SITE_EVENTS[0]].filter((one) => (events ?? SITE_EVENTS).includes(one)),
      actions: some(actions),
      ttlSeconds: between(this.#random, TTL.least, TTL.most),
    };
  }

  async #open(userId: string): Promise<void> {
    if (this.#isOver) return;
    const { events, actions, ttlSeconds } = this.#part(null, SITE_ACTIONS);
    const body = { ttl_seconds: ttlSeconds, events, actions };
    const { now: askedAt } = this.#relays.simulation;
    const target = sending('POST', `/sites/${SITE}/sessions`, { token: this.#token(userId), body });
    const opened = await this.#ask('open', target);
    const told = toldGrant(opened);
    if (!told) return;
    const sessionId = String(memberAt(opened?.body, 'session_id'));
    const own = { sessionId, userId, events, actions, share: true, parentId: null, askedAt, ttlMs: ttlSeconds * 1000 };
    this.#sessions.set(sessionId, {
      ...{ askedAt, ttlMs: ttlSeconds * 1000, endedAt: Infinity, endingFrom: Infinity },
    });
    this.#given.push({ ...told, ...own, toldAt: this.#relays.simulation.now, endedAt: Infinity, endingFrom: Infinity });
  }

  /** The owner or the holder of a grant shares a session. */
  async #share(giver: Given): Promise<void> {
    const isOwner = this.#random() < 0.5;
    const { events, actions, ttlSeconds } = this.#part(
      isOwner ? null : giver.events,
      isOwner ? SITE_ACTIONS : giver.actions,
    );
    const share = this.#random() < 0.5;
    const { sessionId, userId } = giver;
    const { now: askedAt } = this.#relays.simulation;
    const token = isOwner ? this.#token(userId) : giver.token;
    const body = { events, actions, share, ttl_seconds: ttlSeconds };
    const shared = await this.#ask('share', sending('POST', `/site-sessions/${sessionId}/grants`, { token, body }));
    const told = toldGrant(shared);
    if (!told) return;
    if (!isOwner && (!giver.share || isOver(giver, askedAt)) && !this.#mayBeLost(giver))
      this.#report(`${giver.grantId} may not share, and has given ${told.grantId}`);
    const session = this.#sessions.get(sessionId);
    if (!session) return;
    const own = { sessionId, userId, events, actions, share, parentId: isOwner ? null : giver.grantId };
    // It lasts no longer than its session, and the grant that it derives from.
    const above = isOwner ? [session] : [session, giver];
    const lasts = Math.min(askedAt + ttlSeconds * 1000, ...above.map((one) => one.askedAt + one.ttlMs));
    const endedAt = Math.min(...above.map((one) => one.endedAt));
    const endingFrom = Math.min(...above.map((one) => one.endingFrom));
    const { now: toldAt } = this.#relays.simulation;
    const ttlMs = Math.max(0, lasts - askedAt);
    this.#given.push({ ...told, ...own, askedAt, toldAt, ttlMs, endedAt, endingFrom });
  }

  /** Ends a grant, or the whole session. */
  async #end({ sessionId, userId, grantId }: Given): Promise<void> {
    const isSession = this.#random() < 0.4;
    const path = `/site-sessions/${sessionId}${isSession ? '' : `/grants/${grantId}`}`;
    const { now: from } = this.#relays.simulation;
    const concerned = (one: Given): boolean =>
      one.sessionId === sessionId && (isSession || this.#derives(one, grantId));
    const session = this.#sessions.get(sessionId);
    for (const one of this.#given) if (concerned(one)) one.endingFrom = Math.min(one.endingFrom, from);
    if (isSession && session) session.endingFrom = Math.min(session.endingFrom, from);
    const answer = await this.#ask('end', sending('DELETE', path, { token: this.#token(userId), body: {} }));
    if (answer?.status !== 200) return;
    const { now } = this.#relays.simulation;
    this.#relays.trace(`${isSession ? sessionId : grantId} has ended`);
    if (isSession && session) session.endedAt = Math.min(session.endedAt, now);
    for (const one of this.#given) if (concerned(one)) one.endedAt = Math.min(one.endedAt, now);
  }

  #derives(one: Given, from: string): boolean {
    if (one.grantId === from) return true;
    const parent = this.#given.find(({ grantId }) => grantId === one.parentId);
    return parent !== undefined && this.#derives(parent, from);
  }

  async #publish(userId: string): Promise<void> {
    const host = this.#hosts.find((one) => one.userId === userId);
    const [id, name] = [`event-${this.#events++}`, pick(this.#random, SITE_EVENTS)];
    this.#sent.set(id, { userId, name, sentAt: this.#relays.simulation.now });
    const from = { client_id: CLIENT, instance_id: host?.instanceId ?? '' };
    const message = {
      message_id: id,
      kind: 'event',
      stream_suffix: `sites/${SITE}/events`,
      ...from,
      payload: { name },
    };
    await this.#ask('ingest', sending('POST', '/ingest', { token: this.#token(userId), body: message }));
  }

  // Holders of grants.

  async #invoke(
    given: Given,
    action = pick(this.#random, [...SITE_ACTIONS, ...SITE_ACTIONS, OTHER_ACTION]),
    relay?: string,
  ) {
    const { now: sentAt } = this.#relays.simulation;
    const one: SiteInvoke = { commandId: `site-call-${this.#invokes.length}`, action, given, sentAt, answer: null };
    this.#invokes.push(one);
    const body = { command_id: one.commandId, connect_within_ms: CONNECT_MS, respond_within_ms: RESPOND_MS };
    const target = sending('POST', `/site-sessions/${given.sessionId}/actions/${action}`, { token: given.token, body });
    const answer = await this.#ask('invoke', target, relay);
    if (answer)
      one.answer = { status: answer.status, code: refusalOf(answer), outcome: memberAt(answer.body, 'outcome') };
    return one.answer;
  }

  /** A session that is told must be what its owner made, and over once its end was told. */
  async #look(given: Given): Promise<void> {
    const began = this.#relays.simulation.now;
    const isAdmin = this.#random() < 0.3;
    const token = isAdmin ? ADMIN_TOKEN : given.token;
    const answer = await this.#ask('look', get(`/site-sessions/${given.sessionId}`, token));
    if (!answer || this.#mayBeLost(given) || isAdmin) return;
    const state = memberAt(answer.body, 'state');
    if (isOver(given, began) && (state === 'active' || state === 'suspended'))
      this.#report(`${given.grantId} is over, and sees its session as ${state}`);
    const actions = memberAt(answer.body, 'site', 'actions');
    if (Array.isArray(actions) && actions.some((name) => !given.actions.includes(String(name))))
      this.#report(`${given.grantId} sees the actions ${actions.join()}`);
  }

  #view(given: Given): void {
    if (this.#isOver) return;
    const { sessionId, token, grantId } = given;
    const viewer = new Viewer({
      ...{ name: `viewer of ${grantId}`, network: this.#network, sessionId, names: null },
      trace: this.#relays.trace,
      by: this.#random() < 0.6 ? 'site' : 'live',
      token: () => token,
      onEnd: (code) => {
        this.#relays.count(`viewer ended: ${code.slice(0, 60)}`);
        if (code.startsWith('a mistake')) this.#report(code);
        if (isLasting(given, this.#relays.simulation.now) && !this.#mayBeLost(given) && given.events?.length !== 0)
          this.#report(`the stream of ${grantId} has ended: ${code}`);
      },
    });
    this.#viewers.push({ viewer, given });
  }

  /** An `EventSource` with a ticket: it connects again with the same one. */
  async #takeTicket(given: Given): Promise<void> {
    const { sessionId, token } = given;
    const began = this.#relays.simulation.now;
    const taken = await this.#ask('ticket', sending('POST', `/site-sessions/${sessionId}/ticket`, { token, body: {} }));
    const ticket = memberAt(taken?.body, 'ticket');
    if (typeof ticket !== 'string') return;
    if (isOver(given, began) && !this.#mayBeLost(given)) this.#report(`${given.grantId} is over, and got a ticket`);
    this.#listen({ given, ticket, lastId: null }, between(this.#random, 1, 3));
  }

  #listen(source: { readonly given: Given; readonly ticket: string; lastId: string | null }, tries: number): void {
    const { given, ticket, lastId } = source;
    const headers: Record<string, string> = lastId === null ? {} : { 'last-event-id': lastId };
    const path = `/site-sessions/${given.sessionId}/events?ticket=${ticket}`;
    const read = createEventReader();
    const again = (): void => {
      if (tries > 1 && !this.#isOver)
        this.#relays.simulation.after(between(this.#random, 100, 3_000), 'connects again', () =>
          this.#listen(source, tries - 1),
        );
    };
    const exchange: Exchange = this.#network.send(
      { method: 'GET', path, headers, body: null },
      {
        onHead: (status) => this.#relays.count(`ticket stream: ${status}`),
        onText: (text) => {
          for (const { event, id } of read(text)) {
            if (event === 'callboard.closed') exchange.hangUp();
            if (id === null) continue;
            source.lastId = id;
            this.#seen.push({ given, id, at: this.#relays.simulation.now });
          }
        },
        onEnd: () => {},
        onLost: again,
      },
    );
  }

  // Judges.

  #judgeSeen({ given, id, at }: Seen, broken: string[]): void {
    if (this.#mayBeLost(given)) return;
    const sent = this.#sent.get(id);
    const what = `${given.grantId} got ${id}`;
    if (!sent) return void broken.push(`${what}, which nobody sent`);
    if (sent.userId !== given.userId) broken.push(`${what} of ${sent.userId}`);
    if (given.events !== null && !given.events.includes(sent.name))
      broken.push(`${what}, whose name ${sent.name} it may not see`);
    const isCalm = this.#relays.calmFrom < given.endedAt;
    if (isCalm && sent.sentAt > given.endedAt + ENDS_MS) broken.push(`${what}, which was sent after its end, at ${at}`);
  }

  /** Uses each of the newest grants at each relay, once nothing is wrong: those that are over do nothing. */
  async #useAll(): Promise<void> {
    for (const { process } of this.#relays.living)
      for (const given of this.#given.slice(-GRANTS)) {
        const action = given.actions[0] ?? OTHER_ACTION;
        const began = this.#relays.simulation.now;
        const answer = await this.#invoke(given, action, process.name);
        const mustRun = action !== OTHER_ACTION && isLasting(given, began + ASK_MS) && !this.#mayBeLost(given);
        if (mustRun && answer?.outcome !== 'completed')
          this.#report(`${given.grantId} lasts, and its call at ${process.name} is ${JSON.stringify(answer)}`);
      }
  }

  // Troubles of connections and hosts, besides the faults of the deployment.

  #trouble(): void {
    if (this.#isOver) return;
    const ms = between(this.#random, 50, TROUBLE_MS);
    const host = pick(this.#random, this.#hosts);
    const kind = pick(this.#random, ['lost', 'up', 'down', 'slow', 'host starts again', 'host pauses'] as const);
    this.#relays.count(`trouble: ${kind}`);
    this.#relays.simulation.note(`${kind} ${ms}`);
    if (kind === 'host starts again') return host.restart();
    if (kind === 'host pauses') return host.pause(ms, false);
    const { open } = this.#network;
    if (open.length === 0) return;
    const exchange = pick(this.#random, open);
    if (kind === 'lost') return exchange.break('both');
    if (kind === 'slow') return exchange.slow(ms);
    exchange.stall(kind, ms);
  }
}

function toldGrant(answer: HttpAnswer | null): Pick<Given, 'grantId' | 'token'> | null {
  const [grantId, token] = [memberAt(answer?.body, 'grant_id'), memberAt(answer?.body, 'token')];
  return typeof grantId === 'string' && typeof token === 'string' ? { grantId, token } : null;
}

/**
 * A workload of revocations: callers call actions of clients, over links and over HTTP, others read, send events and
 * follow streams, and people revoke the tokens of all of them. A revoked token does nothing after the answer.
 */
import type { Command } from '../../src/core/commands/command.ts';
import type { RevocationTarget } from '../../src/core/revocations/revocation.ts';
import { SUBPROTOCOL } from '../../src/protocol/frames.ts';
import { between, pick } from '../lib/random.ts';
import { CallingUsers, TROUBLE_MS, USERS } from './calling-users.ts';
import { ADMIN_TOKEN, openEntry } from './entry.ts';
import { HeldTokens, type HeldToken } from './held-tokens.ts';
import { HttpCaller } from './http-caller.ts';
import { HttpNetwork, type HttpDoor } from './http-network.ts';
import { ask, get, graphql, memberAt, refusalOf, sending, type HttpAnswer } from './http-requests.ts';
import type { Call } from './ledger.ts';
import { BALANCER_URL, LinkNetwork, type Connection, type Door } from './link-network.ts';
import { SimulatedProcess, START } from './process.ts';
import { CLIENT, ClientProgram, Program, TIMES, type Answer } from './programs.ts';
import { faultLog, type OpenRelay, type Relay, type Relays } from './relays.ts';
import { RevocationLedger, type Revoked, type Use } from './revocation-ledger.ts';
import { headerOf, TokenLinks } from './token-links.ts';
import { HEAL_MS, type Workload } from './world.ts';

/** How often an act is also a revocation, a use of some token, a new stream, and a trouble of a connection. */
const REVOKING = 0.07;
const USING = 0.5;
const STREAMING = 0.1;
const TROUBLING = 0.05;
/** How many streams are open at once, at most. */
const STREAMS = 6;
/** After how long a person whose link was ended signs in again, in milliseconds. */
const SIGN_IN_MS = { least: 200, most: 4_000 } as const;
/** How long before the request the time of a revocation by time is, at most, in milliseconds. */
const ISSUED_BEFORE_MS = 20_000;
/** Within what time a revocation must be answered, or counts as not answered, in milliseconds. */
const ANSWER_MS = 20_000;
/** Within what time after the answer links and streams have ended, once nothing is wrong, in milliseconds. */
const ENDED_MS = 5_000;
/** How long after the answer streams of the token that asked for it may last: its own answer has to leave. */
const BY_ITSELF_MS = 1_000;
/** How long after the answer a command may be written that was dispatched before it: a lease, and its record. */
const DISPATCHED_MS = 3_000;
/** How far the clock of the deployment may be ahead of that of a relay, in milliseconds. */
const CLOCKS_MS = 1_500;
/** Within what time programs have noticed what is over, a call is answered once nothing is wrong, and any call ends. */
const NOTICED_MS = 25_000;
const SOON_MS = 6_000;
const CALL_MS = TIMES.connectWithinMs + TIMES.respondWithinMs;
/** How often a request is repeated at the end that a relay could not answer, with a second between. */
const AGAIN = 10;
/** How many tokens are tried at each relay at the end. */
const JUDGED_TOKENS = 12;

const EVENTS = 'subscription Events { commandEvents { stage record { commandId } } }';
const VIEWER = 'query Viewer { viewer { tokenId } }';
/** What a relay may write to a link that it ends. */
const LAST_FRAMES: ReadonlySet<unknown> = new Set(['bye', 'refused', 'replaced']);

/** A request over HTTP that invokes, once. */
type Errand = { readonly call: Call; readonly token: HeldToken; readonly relay: string; readonly sentAt: number };
type Stream = { readonly token: HeldToken; readonly relay: string; readonly sentAt: number };

export class Revocations implements Workload {
  readonly #relays: Relays;
  readonly #network: LinkNetwork;
  readonly #http: HttpNetwork;
  readonly #httpCaller: HttpCaller;
  readonly #doors = new Set<Door & HttpDoor>();
  readonly #ledger: RevocationLedger;
  readonly #tokens: HeldTokens;
  readonly #links: TokenLinks;
  readonly #streams = new Set<Stream>();
  readonly #users: CallingUsers;
  readonly #errands = new Map<string, Errand>();
  readonly #thief: SimulatedProcess;
  /** When each command was first written to a client. */
  readonly #written = new Map<string, number>();
  /** The clock of the deployment when a revocation was answered. */
  readonly #answeredAt = new Map<Revoked, number>();
  #openRevocations = 0;
  readonly broken: string[] = [];

  constructor(relays: Relays) {
    this.#relays = relays;
    const { simulation } = relays;
    const living = (): readonly (Door & HttpDoor)[] => [...this.#doors].filter(({ process }) => !process.isDead);
    this.#ledger = new RevocationLedger((from, to) => relays.mayBeLost(from, to));
    this.#tokens = new HeldTokens(simulation);
    this.#links = new TokenLinks((text) => this.#tokens.byText(text));
    this.#network = new LinkNetwork(simulation, living);
    this.#network.onWritten = (text, relay, connection) => this.#linkWritten(text, relay, connection);
    this.#network.onReceived = (text, connection) => this.#links.received(text, connection, simulation.now);
    this.#http = new HttpNetwork(simulation, living);
    this.#thief = new SimulatedProcess(simulation, 'thief');
    const report = (fault: string): void => this.#reportUnlessLost(fault);
    this.#httpCaller = new HttpCaller({ network: this.#http, report, count: (what) => relays.count(what) });
    this.#users = new CallingUsers({
      ...{ relays, network: this.#network, report },
      tokenOf: (program, wish) => this.#tokens.forProgram(program, wish).text,
      onClosed: (program, reason) => this.#programClosed(program, reason),
    });
  }

  get acknowledged(): number {
    return this.#users.acknowledged;
  }

  get open(): number {
    return this.#users.open;
  }

  async onOpened(relay: OpenRelay): Promise<void> {
    relay.process.onDeath = () => {
      this.#network.relayDied(relay.process);
      this.#http.relayDied(relay.process);
    };
    const log = faultLog(this.#relays, relay.process, (fault) => this.#report(fault));
    this.#doors.add(await openEntry(relay, log));
  }

  onGone(_relay: Relay): void {}

  act(): void {
    this.#users.start();
    const random = this.#random;
    if (random() < 0.5) this.#users.call(pick(random, USERS));
    if (random() < USING) this.#use();
    if (random() < STREAMING) this.#follow();
    if (random() < REVOKING) this.#revoke();
    if (random() < TROUBLING) this.#trouble();
  }

  finish(): void {
    this.#users.start();
    this.#network.heal();
    this.#http.heal();
  }

  isDone(): boolean {
    return this.#openRevocations === 0 && this.open === 0;
  }

  async judge(): Promise<readonly string[]> {
    // Programs notice which links are gone, and people sign in again.
    await this.#relays.simulation.run(NOTICED_MS);
    this.#judgeEnded(null);
    await this.#judgeTokens();
    await this.#judgeClients();
    await this.#judgeErrands();
    return this.#users.judge();
  }

  get #random(): () => number {
    return this.#relays.simulation.random;
  }

  get #now(): number {
    return this.#relays.simulation.now;
  }

  // Tokens.

  /** A token for requests of a user over HTTP that was not revoked. */
  #tokenFor(userId: string): HeldToken {
    return this.#tokens.forRequest(userId, (token) => !this.#ledger.mayCover(useOf(token)));
  }

  /** Whether every token of a use has been revoked since it began. */
  #holding(uses: readonly Use[], relay: string | null, began = this.#now): Revoked | undefined {
    const times = { began, now: this.#now };
    if (uses.length === 0) return undefined;
    const found = uses.map((use) => this.#ledger.holding(use, relay, times));
    return found.every((one) => one !== undefined) ? found[0] : undefined;
  }

  // What people revoke.

  #revoke(): void {
    const random = this.#random;
    const userId = pick(random, USERS);
    const target = this.#targetOf(userId);
    const isByItself = target.userId === userId && random() < 0.3;
    const by = isByItself ? this.#tokenFor(userId) : null;
    const relay = this.#anyRelay();
    if (relay === null) return;
    const revoked = this.#ledger.ask(target, by, this.#now);
    const { issuedBefore } = target;
    const body = {
      ...{ user_id: target.userId, client_id: target.clientId, token_id: target.tokenId, reason: 'simulated' },
      issued_before: issuedBefore === null ? null : new Date(issuedBefore).toISOString(),
    };
    this.#relays.trace(`${by?.id ?? 'ada'} revokes at ${relay}: ${JSON.stringify(body)}`);
    this.#openRevocations++;
    const request = sending('POST', '/revocations', { token: by?.text ?? ADMIN_TOKEN, body });
    void ask(this.#http, request, { relay, withinMs: ANSWER_MS }).then((answer) => {
      this.#openRevocations--;
      this.#answered(revoked, answer);
    });
  }

  #targetOf(userId: string): RevocationTarget {
    const random = this.#random;
    const nothing = { userId: null, clientId: null, tokenId: null, issuedBefore: null };
    const form = pick(random, ['user', 'client', 'token', 'token', 'time'] as const);
    this.#relays.count(`revoke: by ${form}`);
    if (form === 'user') return { ...nothing, userId };
    if (form === 'client') return { ...nothing, userId, clientId: CLIENT };
    if (form === 'token') {
      const tokens = this.#tokens.all.slice(-20);
      const token = tokens.length > 0 ? pick(random, tokens) : this.#tokenFor(userId);
      return { ...nothing, tokenId: token.id, userId: random() < 0.5 ? token.userId : null };
    }
    const issuedBefore = START + Math.floor(this.#now) - between(random, -1_000, ISSUED_BEFORE_MS);
    return { ...nothing, userId: random() < 0.8 ? userId : null, issuedBefore };
  }

  #answered(revoked: Revoked, answer: HttpAnswer | null): void {
    const { simulation, count, trace } = this.#relays;
    const shown = memberAt(answer?.body, 'revocation');
    if (!answer || !shown) return count(`revoke: ${answer ? (refusalOf(answer) ?? answer.status) : 'unreachable'}`);
    const time = memberAt(shown, 'issued_before');
    revoked.target = { ...revoked.target, issuedBefore: typeof time === 'string' ? Date.parse(time) : null };
    // One that is dead is silent, and does nothing.
    const dead = new Set([...this.#doors].flatMap(({ process }) => (process.isDead ? [process.name] : [])));
    revoked.silent = new Set(textsOf(memberAt(answer.body, 'silent')).filter((name) => !dead.has(name)));
    revoked.from = simulation.now;
    const [relay] = this.#relays.living;
    this.#answeredAt.set(revoked, relay?.clock.now() ?? Infinity);
    trace(`revoked: ${JSON.stringify(revoked.target)}: ${JSON.stringify({ ...answer.body, revocation: null })}`);
    count(revoked.silent.size > 0 ? 'revoke: named silent relays' : 'revoke: everywhere');
    for (const what of ['links', 'sockets', 'cancelled'] as const)
      if (Number(memberAt(answer.body, what)) > 0) count(`revoke: ended ${what}`);
    this.#judgeEndedLater(revoked);
  }

  /** Judges some time after the answer that links and streams have ended, once nothing has been wrong for as long. */
  #judgeEndedLater(revoked: Revoked): void {
    const { simulation, calmFrom } = this.#relays;
    const dueAt = Math.max(revoked.from, calmFrom) + ENDED_MS;
    simulation.after(dueAt - simulation.now, 'looks at what was revoked', () => {
      if (Math.max(revoked.from, this.#relays.calmFrom) + ENDED_MS > simulation.now) this.#judgeEndedLater(revoked);
      else this.#judgeEnded(revoked);
    });
  }

  #judgeEnded(revoked: Revoked | null): void {
    const says = revoked ? ` after ${JSON.stringify(revoked.target)}` : ' at the end';
    const began = this.#now - ENDED_MS;
    for (const uses of this.#links.openSince(began))
      if (this.#holding(uses, null, began))
        this.#report(`a link of ${uses[0]?.token.id} (${uses[0]?.clientId}) is open${says}`);
    // The requester of a stream may not notice that its relay is dead.
    const living = new Set(this.#relays.living.map(({ process }) => process.name));
    for (const { token, sentAt, relay } of this.#streams)
      if (sentAt <= began && living.has(relay) && this.#holding([useOf(token)], null, began))
        this.#report(`a stream of ${token.id} at ${relay} is open${says}`);
  }

  // Links.

  /** A relay has written this to a program, or to a thief. */
  #linkWritten(text: string, relay: string, connection: Connection): void {
    const frame = headerOf(text);
    const type = frame?.['type'];
    if (type === 'command') this.#commandWritten(String(frame?.['command_id']), relay);
    const uses = this.#links.usesOf(connection);
    const [use] = uses;
    if (!use || !frame) return;
    const holding = this.#holding(uses, relay);
    const what = `${relay} wrote ${type} to a link of ${use.token.id} (${use.clientId})`;
    if (holding && !LAST_FRAMES.has(type))
      this.#report(`${what} at ${this.#now}, which is revoked since ${holding.from}: ${text.slice(0, 120)}`);
    const isRefusal = type === 'refused' && (frame['code'] === 'unauthenticated' || frame['code'] === 'forbidden');
    if (isRefusal && !this.#mayBeRefused(uses)) this.#reportUnlessLost(`${what}: ${text}, and nobody revoked it`);
    if (type === 'bye' && frame['reason'] === 'forbidden') this.#relays.count('link ended: revoked');
    this.#links.written(type, connection);
  }

  #mayBeRefused(uses: readonly Use[]): boolean {
    const now = START + this.#now;
    return uses.some((use) => this.#ledger.mayCover(use) || use.token.expiresAt < now + CLOCKS_MS * 2);
  }

  /** A link was closed for good: its person signs in again after a while. Returns whether that may be. */
  #programClosed(program: Program, reason: string): boolean {
    const clientId = program instanceof ClientProgram ? CLIENT : null;
    const uses = this.#tokens.ofProgram(program.name).map((token) => ({ token, clientId }));
    if (!this.#mayBeRefused(uses)) return false;
    this.#relays.count(`link closed: ${reason}`);
    const ms = between(this.#random, SIGN_IN_MS.least, SIGN_IN_MS.most);
    this.#relays.simulation.after(ms, 'signs in again', () => program.restart());
    return true;
  }

  /** Somebody who has a token opens a link with it. */
  #openLink(token: HeldToken): void {
    const Socket = this.#network.socketsOf(this.#thief, () => () => {});
    const socket = new Socket(BALANCER_URL, SUBPROTOCOL);
    socket.addEventListener('open', () => socket.send(`{"type":"hello","token":"${token.text}"}`));
    this.#thief.after(TROUBLE_MS, 'leaves', () => socket.close(1000));
  }

  // Requests over HTTP.

  /** Uses some token at some relay: one that is held, or one that was revoked and that somebody else has. */
  #use(): void {
    const random = this.#random;
    const relay = this.#anyRelay();
    if (relay === null) return;
    const isStolen = random() < 0.4;
    const stolen = isStolen ? this.#tokens.all.filter((token) => this.#ledger.mayCover(useOf(token))) : [];
    const token = stolen.length > 0 ? pick(random, stolen) : this.#tokenFor(pick(random, USERS));
    const way = pick(random, ['call', 'call', 'read', 'ingest', 'link'] as const);
    if (this.#holding([useOf(token)], relay)) this.#relays.count(`revoked token: ${way}`);
    if (way === 'call') this.#errand(token, relay);
    else if (way === 'link') this.#openLink(token);
    else void this.#request(token, relay, way);
  }

  /** Sends a request and judges its answer. Returns its status; null: none. */
  async #request(token: HeldToken, relay: string, way: 'read' | 'ingest'): Promise<number | null> {
    const sentAt = this.#now;
    const target = way === 'ingest' ? this.#event(token) : this.#reading(token);
    const answer = await ask(this.#http, target, { relay });
    if (!answer) return null;
    const refusal = refusalOf(answer);
    this.#relays.count(`${way}: ${refusal ?? 'answered'}`);
    this.#judgeAnswer({ token, relay, sentAt }, refusal, way);
    return refusal === null ? 200 : answer.status;
  }

  #reading(token: HeldToken) {
    return this.#random() < 0.5
      ? get(`/pauses?user_id=${token.userId}`, token.text)
      : graphql(token.text, { query: VIEWER, variables: {} });
  }

  #event(token: HeldToken) {
    const id = `event-${this.#now}-${Math.floor(this.#random() * 1e9)}`;
    const from = { client_id: CLIENT, instance_id: 'desk-1' };
    const event = { message_id: id, kind: 'event', stream_suffix: 'sites/board/events', ...from };
    return sending('POST', '/ingest', { token: token.text, body: [{ ...event, payload: { id } }] });
  }

  /** Judges an answer by what was revoked when its request began. `refusal`: null if the request was served. */
  #judgeAnswer({ token, relay, sentAt }: Stream, refusal: string | null, what: string): void {
    const use = useOf(token);
    const holding = this.#holding([use], relay, sentAt);
    if (holding && refusal === null)
      this.#report(`${relay} served a ${what} of ${token.id} of ${sentAt}, which is revoked since ${holding.from}`);
    if (refusal === 'unauthenticated' && !this.#mayBeRefused([use]))
      this.#reportUnlessLost(`${relay} refused a ${what} of ${token.id}, which nobody revoked`);
  }

  /** Invokes once over HTTP. */
  #errand(token: HeldToken, relay: string): void {
    const call = this.#users.newCall(token.userId);
    const sentAt = this.#now;
    this.#errands.set(call.commandId, { call, token, relay, sentAt });
    call.open++;
    const answered = (answer: Answer): void => {
      call.open--;
      const refusal = 'failed' in answer ? answer.failed : null;
      if ('told' in answer) call.told.push(answer.told);
      else this.#relays.count(`errand: ${answer.failed}`);
      call.toldAt = this.#now;
      if (refusal === null || refusal === 'unauthenticated')
        this.#judgeAnswer({ token, relay, sentAt }, refusal, `call (${call.commandId})`);
    };
    this.#httpCaller.invoke(call, answered, { relay, token: token.text });
  }

  /** Follows the commands of a user by an event stream. */
  #follow(): void {
    const relay = this.#anyRelay();
    if (relay === null || this.#streams.size >= STREAMS) return;
    const token = this.#tokenFor(pick(this.#random, USERS));
    const stream: Stream = { token, relay, sentAt: this.#now };
    const target = graphql(token.text, { query: EVENTS, variables: {} });
    const headers = { ...target.headers, accept: 'text/event-stream' };
    const ended = (): void => {
      if (this.#streams.delete(stream) && this.#ledger.mayCover(useOf(token)))
        this.#relays.count('stream ended: revoked');
    };
    const events = {
      onHead: (status: number) => {
        if (status === 200) this.#streams.add(stream);
        this.#relays.count(`stream: ${status}`);
        this.#judgeAnswer(stream, status === 200 ? null : status === 401 ? 'unauthenticated' : 'other', 'stream');
      },
      onText: (text: string) => this.#streams.has(stream) && this.#streamed(stream, text),
      ...{ onEnd: ended, onLost: ended },
    };
    this.#http.send({ ...target, headers }, events, relay);
  }

  /** Something came over a stream. */
  #streamed({ token, relay }: Stream, text: string): void {
    const holding = this.#holding([useOf(token)], relay);
    if (!holding || (holding.by === token && this.#now < holding.from + BY_ITSELF_MS)) return;
    this.#report(
      `a stream of ${token.id} at ${relay}, which is revoked since ${holding.from}, says ${text.slice(0, 80)}`,
    );
  }

  /** A command left a relay for a client. */
  #commandWritten(commandId: string, relay: string): void {
    const errand = this.#errands.get(commandId);
    const isFirst = !this.#written.has(commandId);
    if (isFirst) this.#written.set(commandId, this.#now);
    if (!errand || !isFirst) return;
    const { token, sentAt } = errand;
    const at = `${relay} wrote ${commandId} at ${this.#now}, which was invoked at ${sentAt} with ${token.id}`;
    const late = this.#holding([useOf(token)], errand.relay, sentAt);
    if (late) this.#report(`${at}, after it was revoked at ${late.from}`);
    const queued = this.#holding([useOf(token)], null, this.#now - DISPATCHED_MS);
    if (queued && queued.silent.size === 0 && queued.askedAt > sentAt)
      this.#report(`${at}, and was queued when that was revoked at ${queued.from}`);
  }

  #trouble(): void {
    this.#users.trouble(['stalled request'], (_, ms) => {
      const { open } = this.#http;
      if (open.length > 0) pick(this.#random, open).stall(pick(this.#random, ['up', 'both']), ms);
    });
  }

  // What is judged at the end.

  /** Every relay refuses what is revoked, and serves every other token. */
  async #judgeTokens(): Promise<void> {
    for (const { process } of this.#relays.living)
      for (const token of this.#tokens.ofRequests.slice(-JUDGED_TOKENS)) {
        const isRevoked = this.#holding([useOf(token)], null) !== undefined;
        if (this.#ledger.mayCover(useOf(token)) && !isRevoked) continue;
        const status = await this.#untilAnswered(token, process.name);
        // Many invalid tokens from one address are refused unread.
        if (isRevoked ? status === 401 || status === 429 : status === 200) continue;
        this.#reportUnlessLost(`at the end ${process.name} answers ${token.id} with ${status}, revoked: ${isRevoked}`);
      }
  }

  async #untilAnswered(token: HeldToken, relay: string): Promise<number | null> {
    const { simulation } = this.#relays;
    for (let tries = 1; ; tries++) {
      let status: number | null | undefined;
      void this.#request(token, relay, 'read').then((told) => (status = told));
      await simulation.run(HEAL_MS, () => status !== undefined);
      if (status === 200 || status === 401 || tries === AGAIN) return status ?? null;
      await simulation.run(1_000);
    }
  }

  /** Each client has a link, and calls complete. */
  async #judgeClients(): Promise<void> {
    // A token may expire just now, and a program that was refused waits before it tries again.
    await this.#relays.simulation.run(HEAL_MS, () => this.#users.areConnected);
    for (const { name, isConnected } of this.#users.clients)
      if (!isConnected) this.#report(`${name} has no link at the end`);
    const calls = USERS.map((userId) => this.#users.call(userId));
    await this.#relays.simulation.run(SOON_MS, () => calls.every(({ open }) => open === 0));
    for (const { commandId, told } of calls)
      if (told[0]?.outcome !== 'completed') this.#report(`${commandId}, of the end: ${JSON.stringify(told)}`);
  }

  /** What was queued by a revoked token has ended as cancelled, and nothing was admitted with it after the answer. */
  async #judgeErrands(): Promise<void> {
    const [relay] = this.#relays.living;
    if (!relay) return;
    for (const { call, token, sentAt } of this.#errands.values()) {
      const revoked = this.#holding([useOf(token)], null);
      const at = revoked && this.#answeredAt.get(revoked);
      if (!revoked || at === undefined || revoked.silent.size > 0) continue;
      const command = await this.#record(relay, call);
      const until = Math.max(revoked.from, call.toldAt) + CALL_MS;
      const hasKeptTime = this.#relays.hasKeptTime(Math.min(sentAt, revoked.askedAt), until);
      if (!command || !hasKeptTime || this.#relays.mayBeLost(sentAt, Infinity)) continue;
      const { admittedAt, dispatchedAt, terminalAt, outcome } = command;
      const says = `${call.commandId} of ${token.id}, which was revoked at ${at}`;
      if (admittedAt > at + CLOCKS_MS) this.#report(`${says}, was admitted at ${admittedAt}`);
      if (dispatchedAt !== null) continue;
      if ((terminalAt ?? Infinity) > at + CLOCKS_MS && outcome !== 'cancelled')
        this.#report(`${says}, was never dispatched, and is ${outcome} at ${terminalAt}`);
      if (outcome === 'cancelled') this.#relays.count('revoked: a queued call was cancelled');
    }
  }

  async #record({ backend }: OpenRelay, { userId, commandId }: Call): Promise<Command | null> {
    let found: readonly (Command | null)[] | undefined;
    const read = async (): Promise<void> => {
      found = await backend.commands.get([{ userId, clientId: CLIENT, commandId }]);
    };
    void read();
    await this.#relays.simulation.run(HEAL_MS, () => found !== undefined);
    return found?.[0] ?? null;
  }

  #anyRelay(): string | null {
    const relays = this.#relays.living.filter(({ core }) => core !== null);
    return relays.length === 0 ? null : pick(this.#random, relays).process.name;
  }

  #reportUnlessLost(fault: string): void {
    if (!this.#relays.mayBeLost(0, this.#now)) this.#report(fault);
  }

  #report(fault: string): void {
    this.#relays.trace(fault);
    this.broken.push(fault);
  }
}

/** A use over HTTP. */
function useOf(token: HeldToken): Use {
  return { token, clientId: null };
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

/** Generates hostile links, frame by frame, from a seed. */
import { UP } from '../../src/protocol/frames.ts';
import { hostileText, KNOWN, likelyText, someUser } from './hostile.ts';
import { jsonText, objectText } from './json-text.ts';
import { mutate } from './mutate.ts';
import { Draw } from '../lib/random.ts';

/**
 * One link from its hello to its end. `frames`: are sent after the relay's answer to the hello. A Buffer is sent as a
 * binary frame.
 */
export type FrameSession = {
  readonly user: string;
  readonly hello: string;
  readonly frames: readonly (string | Buffer)[];
  readonly end: 'close' | 'terminate';
};

/**
 * The maximum number of frames in a session, including the hello. With more frames, a rate limit could end the link
 * before the last one is read.
 */
export const SESSION_FRAMES = 20;
/** The maximum number of unreadable frames in a session. The fifth within a minute closes a link. */
const WILD_FRAMES = 4;
const MIB = 1024 * 1024;
/** The maximum size of a payload in bytes, which leaves room for the frame's header. */
const PAYLOAD_MAX = MIB - 20_000;
const TYPES = Object.keys(UP).filter((type) => type !== 'hello');
const CLIENT_TYPES = ['browser', 'console', 'mobile', 'web'];

export function frameSession(seed: number, index: number, token: (user: string) => string): FrameSession {
  const draw = new Draw(seed, 'frames', index);
  const user = someUser(draw);
  const hello = makeHello(draw, token(user));
  const wild = new Set(Array.from({ length: WILD_FRAMES }, () => draw.int(0, SESSION_FRAMES - 2)));
  const frames = Array.from({ length: SESSION_FRAMES - 1 }, (_, i) =>
    wild.has(i) ? wildFrame(draw, token(user)) : knownFrame(draw, token(user)),
  );
  return { user, hello, frames, end: draw.chance(0.9) ? 'close' : 'terminate' };
}

/** Draws a hello. Nineteen of twenty are valid, so that the relay reads the frames after them. */
function makeHello(draw: Draw, token: string): string {
  const isClient = draw.chance(0.7);
  const client = isClient && {
    client_id: `hostile-${draw.int(0, 50)}`,
    instance_id: `i-${draw.int(0, 1e6)}`,
    client_type: draw.pick(CLIENT_TYPES),
  };
  const text = JSON.stringify({ type: 'hello', token, ...client }) + (isClient ? `\n${advertisement(draw)}` : '');
  return draw.chance(0.05) ? mutate(draw, text) : text;
}

function advertisement(draw: Draw): string {
  const action = (i: number): string =>
    `{"name":"action${i}","schema":${objectText(draw, 60_000)},"metadata":${jsonText(draw, 2_000)}}`;
  const actions = Array.from({ length: draw.size(30) }, (_, i) => action(i));
  return `{"metadata":${jsonText(draw, 15_000)},"actions":[${actions.join(',')}]}`;
}

/** Draws a frame whose header fits the table of frames, with hostile values wherever the table permits any text. */
function knownFrame(draw: Draw, token: string): string {
  const type = draw.pick(TYPES);
  const header = headerOf(draw, type, token);
  const payload = payloadOf(draw, type);
  return payload === null ? header : `${header}\n${payload}`;
}

function wildFrame(draw: Draw, token: string): string | Buffer {
  const frame = knownFrame(draw, token);
  const kind = draw.int(0, 9);
  if (kind === 0) return Buffer.from(frame.slice(0, 2_000));
  if (kind === 1) return draw.chance(0.1) ? tooLarge(draw, token) : hostileText(draw);
  if (kind === 2) return `{"type":${JSON.stringify(hostileText(draw, 2_000))}}\n${jsonText(draw, PAYLOAD_MAX)}`;
  if (kind === 3) return `${jsonText(draw, 20_000)}\n${jsonText(draw, PAYLOAD_MAX)}`;
  return mutate(draw, frame);
}

/** Draws a frame that is too large but has a header that the relay still reads. */
function tooLarge(draw: Draw, token: string): string {
  return `${headerOf(draw, draw.pick(TYPES), token)}\n"${'x'.repeat(MIB + draw.int(0, MIB / 2))}"`;
}

function headerOf(draw: Draw, type: string, token: string): string {
  const table: Readonly<Record<string, string>> = { ...Object.entries(UP).find(([name]) => name === type)?.[1] };
  const members = Object.entries(table)
    .filter(([, kind]) => !kind.endsWith('?') || draw.chance(0.3))
    .map(([name, kind]) => [name, memberOf(draw, name, kind.replace('?', ''), token)]);
  return JSON.stringify({ type, ...Object.fromEntries(members) });
}

function memberOf(draw: Draw, name: string, kind: string, token: string): unknown {
  if (draw.chance(0.04)) return draw.pick([null, hostileText(draw, 8_000), draw.int(-1e9, 1e9), true]);
  if (kind === 'token') return token;
  if (kind === 'int') return draw.int(0, 2_000);
  if (kind === 'user') return draw.chance(0.9) ? someUser(draw) : hostileText(draw, 128);
  if (kind === 'waitFor') return draw.pick(['admitted', 'acknowledged', 'completed']);
  if (kind === 'stages') return draw.pick(['first', 'all']);
  if (kind === 'siteOp') return draw.pick(['register', 'remove']);
  if (kind === 'pauseOp') return draw.pick(['pause', 'resume']);
  if (kind === 'pauseQueued') return draw.pick(['keep', 'cancel']);
  if (kind === 'pauseRunning') return draw.pick(['leave', 'cancel']);
  if (kind === 'name') return likelyText(draw, KNOWN.action);
  if (kind === 'prose' || kind === 'text') return hostileText(draw, 1_100);
  if (name === 'client_id') return draw.chance(0.5) ? KNOWN.client : `hostile-${draw.int(0, 50)}`;
  if (name === 'command_id') return draw.chance(0.2) ? KNOWN.command : `c-${draw.int(0, 1e6)}`;
  if (name === 'site_id') return likelyText(draw, KNOWN.site);
  return `r-${draw.int(0, 1e6)}`;
}

function payloadOf(draw: Draw, type: string): string | null {
  if (draw.chance(0.05)) return jsonText(draw, PAYLOAD_MAX);
  if (type === 'progress' || type === 'result' || type === 'cancelled') return jsonText(draw, PAYLOAD_MAX);
  if (type === 'invoke') return objectText(draw, PAYLOAD_MAX);
  if (type === 'actions') return advertisement(draw);
  if (type === 'report') return report(draw);
  if (type === 'site')
    return `{"title":${JSON.stringify(hostileText(draw, 300))},"event_names":["site_changed"],"actions":["echo"],"capability_profile":{"action_invocation":true}}`;
  return null;
}

function report(draw: Draw): string {
  const context = (i: number): string =>
    `{"context_id":"t${i}","status":"idle","ownership":"worker","title":${JSON.stringify(hostileText(draw, 300))},"metadata":${jsonText(draw, 16_000)}}`;
  const contexts = Array.from({ length: draw.size(200) }, (_, i) => context(i));
  return `{"contexts":{"snapshot":${draw.chance(0.5)},"set":[${contexts.join(',')}]}}`;
}

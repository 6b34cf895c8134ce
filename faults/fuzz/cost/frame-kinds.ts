/** Defines the link frames of the cost mode: one kind for each frame type that a client or a caller sends. */
import type { WebSocket } from 'ws';
import { UP } from '../../../src/protocol/frames.ts';
import { openBareLink } from '../../lib/link.ts';
import { contextsReport, windowsReport } from '../../lib/stored-data.ts';
import type { Draw } from '../../lib/random.ts';
import { NotPrepared, type CostInput, type CostKind } from './cost.ts';
import { drawJson, growJson, type JsonGene, jsonOf, showJson } from '../json-text.ts';
import { OWNER, type CostTarget } from './cost-target.ts';

/** The payload of a frame: opaque JSON, a report of contexts or windows, or an advertisement of actions. */
type Payload =
  | { readonly form: 'json'; readonly json: JsonGene }
  | { readonly form: 'contexts'; readonly rows: number; readonly bytes: number }
  | { readonly form: 'windows'; readonly rows: number }
  | { readonly form: 'actions'; readonly rows: number; readonly json: JsonGene };

type FrameGene = {
  readonly type: string;
  readonly payload: Payload | null;
  /** The number of frames of the same kind that are sent and handled before the measured frame. */
  readonly before: number;
};

/** The frames that report about a command, which the client must have received. */
const ABOUT_COMMANDS = new Set(['ack', 'progress', 'result', 'error', 'cancelled']);
const ROWS_MAX: Readonly<Record<string, number>> = { contexts: 1_000, windows: 100, actions: 256 };
/** The maximum size of a frame, in bytes. */
const FRAME_MAX = 1_000_000;
const BEFORE_MAX = 20;
/** How long a link waits for its command, in milliseconds. */
const COMMAND_MS = 5_000;

export function frameKinds(target: CostTarget): readonly CostKind[] {
  return Object.keys(UP).map((type): CostKind => ({
    family: 'frames',
    name: type,
    sender: 'user',
    draw: (draw) => inputOf(target, { type, payload: drawPayload(draw, type), before: 0 }),
  }));
}

function drawPayload(draw: Draw, type: string): Payload | null {
  if (draw.chance(0.1)) return { form: 'json', json: drawJson(draw) };
  if (type === 'report')
    return draw.chance(0.7)
      ? { form: 'contexts', rows: draw.size(1_000), bytes: draw.size(1_000) }
      : { form: 'windows', rows: draw.size(100) };
  if (type === 'hello' || type === 'actions')
    return { form: 'actions', rows: draw.size(256), json: { ...drawJson(draw), bytes: draw.size(60_000) } };
  if (['progress', 'result', 'cancelled', 'invoke', 'site'].includes(type))
    return { form: 'json', json: drawJson(draw) };
  return null;
}

function grow(draw: Draw, gene: FrameGene): FrameGene {
  const { type, payload, before } = gene;
  const kind = draw.int(0, 5);
  if (kind === 0) return { ...gene, before: Math.min(BEFORE_MAX, Math.max(1, before * 2)) };
  if (payload === null || kind === 1) return { ...gene, payload: drawPayload(draw, type) };
  if (payload.form === 'json') return { ...gene, payload: { ...payload, json: growJson(draw, payload.json) } };
  const rows = Math.min(ROWS_MAX[payload.form] ?? 1, payload.rows * draw.pick([1, 2, 4]));
  if (payload.form === 'windows') return { ...gene, payload: { ...payload, rows } };
  if (payload.form === 'contexts') {
    const bytes = Math.min(16_000, payload.bytes * draw.pick([1, 2, 4]), FRAME_MAX / rows - 120);
    return { ...gene, payload: { ...payload, rows, bytes: Math.max(1, Math.floor(bytes)) } };
  }
  const json = growJson(draw, payload.json);
  const most = Math.min(64_000, FRAME_MAX / rows - 60);
  return { ...gene, payload: { ...payload, rows, json: { ...json, bytes: Math.max(1, Math.min(json.bytes, most)) } } };
}

function payloadText(payload: Payload): string {
  if (payload.form === 'json') return jsonOf(payload.json);
  if (payload.form === 'contexts') return contextsReport(0, payload.rows, payload.bytes);
  if (payload.form === 'windows') return windowsReport(0, payload.rows);
  const { rows, json } = payload;
  const schema = `{"enum":[${jsonOf(json)}]}`;
  return `{"actions":[${Array.from({ length: rows }, (_, i) => `{"name":"a${i}","schema":${schema}}`).join(',')}]}`;
}

function inputOf(target: CostTarget, gene: FrameGene): CostInput {
  const { type, payload, before } = gene;
  const open: WebSocket[] = [];
  const link = async (clientId: string, hello?: string): Promise<WebSocket> => {
    const opened = { token: target.token('user'), clientId, ...(hello !== undefined && { payload: hello }) };
    const socket = await openBareLink(target.linkUrl, opened).catch((error: unknown) => {
      throw new NotPrepared(String(error).slice(0, 80));
    });
    open.push(socket);
    socket.on('error', () => {});
    return socket;
  };
  const textOf = (commandId: string, ref: number): string => {
    const header = JSON.stringify({ type, ...headerOf(type, commandId, `r${ref}`, target) });
    return payload === null ? header : `${header}\n${payloadText(payload)}`;
  };
  return {
    async prepare() {
      const clientId = `cost-${target.next()}`;
      if (type === 'hello') {
        const text = payload ? payloadText(payload) : '{}';
        return async () => {
          await link(clientId, text);
          return 'welcome';
        };
      }
      const socket = await link(clientId);
      const commandId = ABOUT_COMMANDS.has(type) ? await commandFor(target, socket, clientId) : 'absent';
      for (let n = 0; n < before; n++) await send(socket, textOf(commandId, n + 1));
      const text = textOf(commandId, 0);
      return async () => {
        const answers: string[] = [];
        socket.on('message', (data) => answers.push(String(data).slice(0, 200)));
        await send(socket, text);
        const refused = answers.find((answer) => answer.startsWith('{"type":"refused"'));
        return refused ? (/"code":"(\w+)"/.exec(refused)?.[1] ?? 'refused') : 'sent';
      };
    },
    async finish() {
      for (const socket of open.splice(0)) socket.terminate();
    },
    mutate: (draw) => inputOf(target, grow(draw, gene)),
    show: () => showOf(gene),
  };
}

/** Calls the client of a link, and returns the command's id after the client has received the command. */
async function commandFor(target: CostTarget, socket: WebSocket, clientId: string): Promise<string> {
  const received = Promise.withResolvers<string>();
  received.promise.catch(() => {});
  const late = setTimeout(() => received.reject(new NotPrepared('the client received no command')), COMMAND_MS);
  socket.on('message', (data) => {
    const [, id] = /^\{"type":"command".*?"command_id":"([^"]+)"/.exec(String(data)) ?? [];
    if (id !== undefined) received.resolve(id);
  });
  const response = await fetch(`${target.url}/connections/${OWNER}/${clientId}/actions/echo`, {
    method: 'POST',
    headers: { authorization: `Bearer ${target.token('user')}`, 'content-type': 'application/json' },
    body: '{"params":{},"wait_for":"admitted"}',
  });
  await response.arrayBuffer();
  try {
    return await received.promise;
  } finally {
    clearTimeout(late);
  }
}

async function send(socket: WebSocket, text: string): Promise<void> {
  if (socket.readyState !== socket.OPEN) throw new NotPrepared('the link is closed');
  await new Promise<void>((done, failed) => socket.send(text, (error) => (error ? failed(error) : done())));
}

function headerOf(type: string, commandId: string, ref: string, target: CostTarget): object {
  const known: Readonly<Record<string, unknown>> = {
    ...{ command_id: commandId, ref, client_id: 'sink', action: 'echo', token: target.token('user') },
    ...{ code: 'handler_failed', message: 'm', op: 'register', site_id: `site-${ref}`, wait_for: 'completed' },
  };
  const table: Readonly<Record<string, string>> = { ...Object.entries(UP).find(([name]) => name === type)?.[1] };
  const names = Object.entries(table).filter(([name]) => name in known);
  const members = names.filter(([name]) => !(type === 'invoke' && name === 'command_id'));
  return Object.fromEntries(members.map(([name]) => [name, known[name]]));
}

function showOf({ type, payload, before }: FrameGene): string {
  const after = before > 0 ? `, after ${before} like it` : '';
  if (payload === null) return `${type}${after}`;
  if (payload.form === 'json') return `${type} with JSON ${showJson(payload.json)}${after}`;
  if (payload.form === 'windows') return `${type} of ${payload.rows} windows${after}`;
  if (payload.form === 'contexts')
    return `${type} of ${payload.rows} contexts with ${payload.bytes} bytes of metadata each${after}`;
  return `${type} of ${payload.rows} actions, each with a schema of JSON ${showJson(payload.json)}${after}`;
}

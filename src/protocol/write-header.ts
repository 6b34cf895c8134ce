/**
 * Writes the headers of the three most frequent frames by concatenation. The text is the same as that of `joinFrame`,
 * because ids contain no characters that JSON escapes.
 */
import { joinFrame } from './frame-codec.ts';
import type { DownFrame, DownHeader } from './frames.ts';

type HeaderOf<T extends DownFrame['type']> = Extract<DownHeader, { type: T }>;

/**
 * Writes a header line. Ids, names and state words are not escaped: a field of the kind `id` must match ID, and one of
 * the kind `name` must match NAME.
 */
export function writeHeader(header: DownHeader): string {
  if (header.type === 'command') return command(header);
  if (header.type === 'result_ack')
    return `{"type":"result_ack","command_id":"${header.command_id}","recorded":"${header.recorded}"}`;
  return header.type === 'outcome' ? outcome(header) : joinFrame(header);
}

function command({ command_id, action, remaining_ms, at_ms, context_id, ...trace }: HeaderOf<'command'>): string {
  const at = at_ms === undefined ? '' : `,"at_ms":${at_ms}`;
  const place = context_id === undefined ? '' : `,"context_id":"${context_id}"`;
  const ids = text('trace_id', trace.trace_id) + text('parent_span_id', trace.parent_span_id);
  const rest = text('trace_flags', trace.trace_flags) + text('trace_state', trace.trace_state);
  const start = `{"type":"command","command_id":"${command_id}","action":"${action}"`;
  return `${start},"remaining_ms":${remaining_ms}${at}${place}${ids}${rest}}`;
}

function outcome({ ref, command_id, rpc_id, stage, execution, ...more }: HeaderOf<'outcome'>): string {
  const rpc = rpc_id === undefined ? '' : `,"rpc_id":"${rpc_id}"`;
  const ended = more.outcome === undefined ? '' : `,"outcome":"${more.outcome}"`;
  const error = text('error_code', more.error_code) + text('error_message', more.error_message);
  const proven = more.last_proven_stage === undefined ? '' : `,"last_proven_stage":"${more.last_proven_stage}"`;
  const states = `${rpc}${ended},"stage":"${stage}"${proven},"execution":"${execution}"`;
  return `{"type":"outcome","ref":"${ref}","command_id":"${command_id}"${states}${error}}`;
}

/** Writes `,"name":"value"`; the empty text if the value is undefined. */
function text(name: string, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":${JSON.stringify(value)}`;
}

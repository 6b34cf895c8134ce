/**
 * Writes the three frames that the relay sends most often, once or more for each command, by concatenation. The text
 * equals that of `joinFrame`: ids contain no character that JSON escapes.
 */
import { joinFrame } from './frame.ts';
import type { DownFrame, DownHeader } from './frames.ts';

type HeaderOf<T extends DownFrame['type']> = Extract<DownHeader, { type: T }>;

/**
 * The text of a frame to a client or a caller. `payload` must be JSON text, and each field of kind `id` must match
 * `ID`, because ids are not escaped here.
 */
export function writeDown(header: DownHeader, payload: string | null): string {
  const head = headOf(header);
  if (head === null) return joinFrame(header, payload);
  return payload === null ? head : `${head}\n${payload}`;
}

function headOf(header: DownHeader): string | null {
  if (header.type === 'command') return command(header);
  if (header.type === 'result_ack') {
    return `{"type":"result_ack","command_id":"${header.command_id}","recorded":${JSON.stringify(header.recorded)}}`;
  }
  return header.type === 'outcome' ? outcome(header) : null;
}

function command({ command_id, action, remaining_ms, trace_id, parent_span_id }: HeaderOf<'command'>): string {
  const trace = text('trace_id', trace_id) + text('parent_span_id', parent_span_id);
  return `{"type":"command","command_id":"${command_id}","action":"${action}","remaining_ms":${remaining_ms}${trace}}`;
}

function outcome({ ref, command_id, rpc_id, stage, execution, ...more }: HeaderOf<'outcome'>): string {
  const ids = `"ref":"${ref}","command_id":"${command_id}"${text('rpc_id', rpc_id)}${text('outcome', more.outcome)}`;
  const error = text('error_code', more.error_code) + text('error_message', more.error_message);
  return `{"type":"outcome",${ids}${text('stage', stage)}${text('execution', execution)}${error}}`;
}

/** `,"name":"value"`, or an empty text when the value is undefined. */
function text(name: string, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":${JSON.stringify(value)}`;
}
